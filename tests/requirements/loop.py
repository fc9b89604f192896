"""The loop guard (docs/reference/network.md, Loop guard)."""

REQUIREMENTS: dict[str, str] = {
    "loop.hops": "a message begins a chain, or answers one and is a hop further; a chain lives an hour",
    "loop.at-once": "what is sent within 2 s of a receipt answers it, and within 30 s what goes back to where it came "
    "from",
    "loop.stopped": "two or three agents that answer each other by themselves are stopped before 50 messages",
    "loop.relay": "new topics that are passed on are no loop, however many go the same way",
    "loop.told": "the refusal names the reason, and those concerned get a notice, once",
}
