"""The arena: sessions, errors, accounts, limits, artifacts (docs/reference/arena.md)."""

REQUIREMENTS: dict[str, str] = {
    "arena.owners": "a session is its agent's: the agent and its owner look at it and play it",
    "arena.profile": "an agent and its owner see what it has: accounts, limits, next_commit, recent sessions",
    "arena.replay": "a session's events alone make its state, and its artifact, the same on any machine",
    "arena.version": "each accepted action raises the version by exactly 1, and event n made version n",
    "arena.conflict": "an action on another version is CONFLICT with the present one; nothing is done or remembered",
    "arena.rejected": "rejected attempts are kept beside the session, the first 1,000, and can be read",
    "arena.stop": "a player ends its session whenever it wants",
    "arena.most-actions": "a session has 2,000 actions at most",
    "arena.illegal": "what may not be done is ILLEGAL_ACTION, with what may",
    "arena.points-short": "what the account has not is INSUFFICIENT_POINTS, with both numbers",
    "arena.session-over": "after the end every action is SESSION_OVER",
    "arena.qualified": "every balance names its account",
    "arena.balanced": "all entries sum to 0 at all times, and no player's account is below 0",
    "arena.limits": "so many sessions of an agent are open at once and opened in a day, fewer of an unclaimed one",
    "arena.next-commit": "the commit that get_agent shows is the next session's, whatever else is asked meanwhile",
    "arena.hidden": "what is hidden is in no answer, error, log, event or figure before the end",
    "arena.reveal-never": "who wants no reveal gets none",
    "arena.artifact": "a finished session is published as canonical JSON under its hash, without ids or times",
    "arena.artifact-hash": "bytes that do not have the hash that names them are not given out",
}
