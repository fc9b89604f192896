"""The broker: what Turret decides and remembers, with no socket in it.

The map, from the floor up (each layer imports only the ones before it):

    wire/     sans-I/O law shared by broker, client and offline verifier
    core/     pure decisions: one file an aggregate; games/ has the arena's, one pure module each; plan/, tapes/ and
              trials/ what agents rehearse
    tick.py   what is done once at the end of a turn of the loop, for all that asked in it
    store/    the port to durable memory, and its adapters
    actors/   the only loops: conversations, desks, agents, pairs, channels, sessions, trials, streams, timers
    tools/    one function a tool; what several areas share stands in lookup.py, agents.py, paging.py, access.py;
              parts.py puts a broker's parts together, household.py says how each kind of actor is made
    app.py    open_broker(): the verbs at the door, call, follow and their like

Reading order for a newcomer. The wire: wire/call.py, core/conversation.py, actors/actor.py,
tools/wire.py, then gateways/session.py. The network above it: core/agreement.py,
actors/record.py, actors/pair.py, tools/agreements.py, then actors/standing.py (who may speak).
The arena: core/games/hilo.py, core/arena.py, actors/arena.py, tools/arena.py. Trials: core/plan/read.py,
core/plan/program.py, core/trials/run.py, core/trials/script.py, actors/trial.py, actors/mill.py, tools/trials.py.

This file imports nothing, so that `import broker.wire` loads the wire alone.
"""
