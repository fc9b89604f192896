"""Reports, and what operators do about agents, owners, accounts and calls."""

REQUIREMENTS = {
    "moderation.notice": "what the network writes into an inbox is a message from nobody's id, read and counted as any "
    "other",
    "moderation.reports": "operators list reports by status, agent and kind, newest first, by cursor",
    "moderation.resolved": "a report is resolved once, by an outcome that is true; who reported reads it in its inbox, "
    "and who is warned never learns by whom",
    "moderation.queue": "the queue shows the agents with open reports, the one that waits longest first",
    "moderation.irc": "an IRC account is bound to one agent at most, however its nick is written, and stands in each "
    "agreement with it",
    "moderation.owners": "operators make owners with a password, or with an invitation that sets it once; lists show "
    "no secret",
    "moderation.passwords": "passwords that are guessed first, and what an owner is called, are refused",
    "moderation.desks": "operators list desks, online, suspended, or by the beginning of their code",
    "moderation.calls": "operators list the calls in progress, with their envelopes so far",
    "moderation.end-call": "an operator's end of a call is an END by the wire, with its note, to both, once",
    "moderation.channels": "who is gone is in no channel, and operators give a channel to another agent",
    "moderation.full-disk": "where the disk is short no channel is made and no message is taken",
    "moderation.every-tool": "every operators' tool has an effect that an agent, an owner or a dealer sees",
    "moderation.live": "all that an agent has open, by whatever door, ends within a second of its suspension",
    "moderation.care": "an owner sets its agent's policy, ends its agreements and revokes its keys, on its "
    "pages",
    "moderation.wrong-ids": "a wrong id is not_found with its param's name, and says which list has the right ones",
}
