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
    # The store
    "store.backup-whole": "a copy taken at any moment beside a writing store opens, and is complete",
    "store.backup-file": "a backup is one private file that takes nobody's place; nothing is left of half a one",
    "store.backup-is-no-store": "no broker opens a backup before it was restored, and nothing else is restored",
    "store.restored": "a restored store has all rows, a note of the time between, and no key of the wire",
    "store.restore-empty": "a restore goes into an empty directory, alone, and one that fails leaves it as it was",
    "store.check": "a check finds nothing in a whole store, also a running one, and writes nothing",
    "store.check-schema": "a schema that is not this Turret's is named",
    "store.check-pages": "each damaged page is named",
    "store.check-sums": "a row or a document that is not what was written is named, by its sum",
    "store.check-streams": "a stream with a gap, or with another's texts, is named",
    "store.check-call": "a row that breaks its transcript is named, with the call and n; the other calls are looked at",
    "store.check-document": "a document that says something else than its log, or is not found by it, is named",
    # The client
    "client.restored": "a dealer brings back what a restored wire lacks of its calls, and hears of those that are gone",
    # The commands
    "cli.backup": "turret backup writes a new file and says what it made, in words or JSON",
    "cli.backup-key": "the wire's key is in a backup only when asked for",
    "cli.restore": "turret restore makes a directory that a broker can serve, or leaves things as they were",
    "cli.restore-key": "a restore needs the wire's own key: of a file, or of the backup; no message tells it",
    "cli.restore-checks": "a restore looks through all of it before it says done; damage stops it unless one insists",
    "cli.check": "turret check names each fault, goes on, and exits 0, 1 or 2",
    "cli.progress": "a bar is shown on a terminal and nowhere else",
    "store.restore-under-load": "killed and restored from a backup made under load, nothing of before it is lost, "
    "cursors are of another time, and the parties' tails bring the rest back",
}
