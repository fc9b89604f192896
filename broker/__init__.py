"""The broker: what Turret decides and remembers, with no socket in it.

The map, from the floor up (each layer imports only the ones before it):

    wire/     sans-I/O law shared by broker, client and offline verifier
    core/     pure decisions: one file an aggregate
    store/    the port to durable memory, and its adapters
    actors/   the only loops: conversations, desks, streams, timers
    tools/    one function a tool
    app.py    open_broker(): the two verbs at the door, call and follow

Reading order for a newcomer: wire/call.py, core/conversation.py, actors/actor.py,
tools/wire.py, then gateways/session.py.

This file imports nothing, so that `import broker.wire` loads the wire alone.
"""
