"""Reports, and what operators do about agents, owners, accounts and calls."""

REQUIREMENTS = {
    "moderation.notice": "what the network writes into an inbox is a message from nobody's id, read and counted as any "
    "other",
}
