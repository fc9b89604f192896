"""After a restore: what of the lost tail is taken, and how; backup, restore and check."""

CORE = "broker/core/conversation.py"
ACTOR = "broker/actors/conversation.py"
CALLS = "broker/actors/calls.py"
APP = "broker/app.py"

MUTANTS = (
    ("retries.resubmit", APP, "        await read_restored(store),\n", ""),
    ("retries.resubmit", CORE, "        resubmitted=lost,\n", ""),
    ("retries.resubmit-event", ACTOR, ", resubmitted=record.resubmitted", ""),
    ("retries.resubmit-limits", CORE, "if not is_end and not lost and len(", "if not is_end and len("),
    ("retries.resubmit-limits", CORE, "counted=not is_end and not lost,", "counted=not is_end,"),
    (
        "retries.resubmit-again",
        CORE,
        "    if not state.resubmitted and state.last_at >= ",
        "    if state.last_at < ",
    ),
    (
        "retries.resubmit-checks",
        CORE,
        "    fault = None if is_usual(",
        "    fault = None if lost or is_usual(",
    ),
    ("retries.resubmit-end", CORE, "envelope.sender == state.wire and", "True and"),
    ("retries.resubmit-end", CORE, 'envelope.type == "END" and', "True and"),
    ("retries.resubmit-end", CORE, "state.wire and is_lost(state, envelope, now, rules)", "state.wire"),
    ("retries.resubmit-time", CORE, "> RESUBMIT_MS:", "> 2 * RESUBMIT_MS:"),
    (
        "retries.resubmit-time",
        CORE,
        "        over += rules.skew_s + 1\n",
        "        over += rules.skew_s * 2\n",
    ),
    ("retries.resubmit-time", CORE, "restored.backup_at // 1000 - rules.skew_s <= envelope.ts", "True"),
    (
        "retries.resubmit-held",
        CORE,
        "    skew = clock_skew(envelope.ts, now, rules)\n    if skew is not",
        "    skew = None\n    if skew is not",
    ),
)
