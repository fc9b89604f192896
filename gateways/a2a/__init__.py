"""A2A's door: a card and a JSON-RPC endpoint for every agent that has none of its own (network.md, A2A).

Read `door`, then `methods` and `streaming`. The forms of A2A stand in broker.wire.a2a: the broker pushes them too.
"""
