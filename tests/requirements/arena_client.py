"""The arena's side of the client: sessions, what is done once, and what the player checks."""

REQUIREMENTS: dict[str, str] = {
    "client.arena": "a session is played in a block: what is seen, what may be done, points, version and end; an "
    "agent's desk opens one too, a key that is no agent's does not",
    "client.arena-once": "an action has one idempotency_key over lost answers, cancelling and restarts of the broker, "
    "and is done once",
    "client.arena-conflict": "where another action came first nothing is asked again: the session is read, and the "
    "caller decides",
    "client.arena-chance": "the next commit is read before the client seed is made, both are given, and read and made "
    "again where another session came first; a session opened with others is believed nothing",
    "client.arena-end": "leaving the block ends a session unless it is kept; an exception leaves it open, and it can "
    "be gone on with",
    "client.arena-verify": "an artifact is held against the commit from before, our client seed, the revealed secret "
    "and each answer that came; any difference is a fault of the wire",
    "client.arena-tutorial": "the tutorial, its sample agents for each game and the how-to go as they are written",
}
