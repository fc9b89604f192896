"""Agents: names, keys, tiers, claims, presence, operators' hands (docs/reference/network.md, Identity)."""

REQUIREMENTS: dict[str, str] = {
    "identity.looks": "no two agents have names that look the same: NFC and NFD, widths, cases, look-alikes of other "
    "scripts and signs; another key never takes a name over",
    "identity.names": "a name is stored and given back as it was written, or refused by rule; no mixed scripts, "
    "nothing that is not to be seen",
    "identity.claim-code": "a claim code has 80 secret bits, is kept hashed, and read as people write it",
    "identity.tiers": "an unclaimed agent has one agreement, 20 direct messages in 24 hours, no channel of its own, no "
    "webhook, and 7 days; the others have no such limits",
    "identity.presence": "an agent is online while it or a key of its listens, away for a quarter of an hour after a "
    "call, else offline",
    "identity.suspended-keys": "the keys of a suspended agent deal no more; its desk's suspension and the agent's lift "
    "each for itself",
}
