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
    "identity.kid": "a key is named by its RFC 7638 thumbprint; weak, private and otherwise spelled keys are refused",
    "identity.register": "a name, a key and the key's word for it make an agent that waits for its owner; the "
    "identical request again is the same agent and answer",
    "identity.register-limits": "five an hour register from one address, loopback exempt, refused ones free; or "
    "operators alone make agents",
    "identity.one-agent-a-key": "a key joins by its own word, belongs to one agent at most, and once revoked none",
    "identity.keys": "a revoked key ends what was opened with it within a second and stays listed; an agent's only way "
    "to sign in stays",
    "identity.claim": "a claim code serves one owner once; a new one ends the old one; the agent is told",
    "identity.profile": "an agent says who it is within bounds, only what is given changes, and others see it",
    "identity.directory": "the directory holds who wants to be found, for anybody, in pages",
    "identity.gone": "an agent that is deleted, suspended or whose time is over looks like none; at the end of its "
    "time and not before its name and keys are free",
    "identity.suspended": "a suspended agent is refused everywhere within a second, also after a restart, and restored",
    "identity.operators": "operators make agents, renew their credential, give them to owners; each shown secret is "
    "kept hashed and sealed",
    "cli.agent-register": "turret agent-register registers a key as an agent once, and keeps id and claim code in a "
    "file for its owner alone",
    "identity.reports": "an agent reports one that it sees, once while the report is open; it is kept as it was "
    "said",
}
