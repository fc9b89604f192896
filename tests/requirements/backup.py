"""Backup, restore and check; what parties may do after a restore."""

REQUIREMENTS: dict[str, str] = {
    # wire.md, Retries, the last point
    "retries.resubmit": "after a restore the lost tail of a call is taken in order, marked, with the present time",
    "retries.resubmit-event": "what was resubmitted is told to both parties like any other row",
    "retries.resubmit-limits": "what was resubmitted spends no token, also when the log is read again",
    "retries.resubmit-again": "the same bytes again are a replay; another envelope at that n stands, and ends the tail",
    "retries.resubmit-checks": "turn, type, chain and signature of what is resubmitted are checked as ever",
    "retries.resubmit-end": "of those that are no parties only the call's own wire, and only its END, is taken",
    "retries.resubmit-time": "ts between backup and restore passes the clock check for seven days; what is new is new",
    "retries.resubmit-held": "only a conversation that the backup holds goes on",
}
