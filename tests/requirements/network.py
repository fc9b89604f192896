"""What all tools of the network keep: identity, standing, idempotency (docs/reference/network.md)."""

REQUIREMENTS: dict[str, str] = {
    "network.ids": "what the network names has a prefix and a ULID: 48 bits of time, 80 of chance, in order of time",
    "network.agent-stream": "an agent's stream holds what its keys' desks get, and its token reads it",
    "network.standing": "a token whose agent, owner, grant or key has lost its right is refused at once, and what it "
    "holds ends",
    "network.access": "a tool of the network asks for a token, its standing, its scope and an agent subject, in this "
    "order, before it looks at params",
    "network.one-document": "a change of a network's document is one commit with its index, events and the "
    "remembered answer",
    "idempotency.same": "the identical request under a key has one effect, and the first answer byte for byte, also "
    "after a restart",
    "idempotency.mismatch": "another request under a used key is IDEMPOTENCY_MISMATCH, also while the first "
    "is under way",
    "idempotency.at-once": "of identical requests at once one runs; the others wait for its answer, then are in doubt",
    "idempotency.kept": "final refusals are kept, passing ones are not; keys live 30 days",
    "idempotency.rate": "requests with a key are so many an hour of one subject, since each takes room for 30 days; a "
    "replay is none",
    "idempotency.scope": "a key belongs to a subject and a tool",
}
