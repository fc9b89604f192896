"""After a restore: what of the lost tail is taken, and how; backup, restore and check."""

CORE = "broker/core/conversation.py"
ACTOR = "broker/actors/conversation.py"
CALLS = "broker/actors/calls.py"
APP = "broker/app.py"
BACKUP = "broker/store/sqlite_backup.py"
CHECK = "broker/store/sqlite_check.py"
FILE = "broker/store/sqlite_file.py"
AUDIT = "broker/actors/check.py"
COMMANDS = "gateways/commands/"
CALL = "gateways/client/call.py"

MUTANTS = (
    ("retries.resubmit", APP, "calls.idle_s, restored)", "calls.idle_s)"),
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
    (
        "store.backup-whole",
        "broker/store/sqlite_tail.py",
        "self._beyond(STREAM_LAST, streams)",
        "streams.items()",
    ),
    ("store.restore-under-load", APP, "calls.idle_s, restored)", "calls.idle_s)"),
    ("store.backup-file", BACKUP, "os.O_EXCL, 0o600))", "os.O_EXCL, 0o644))"),
    (
        "store.backup-file",
        BACKUP,
        "        os.link(partial, file)\n",
        "        partial.replace(file)\n        partial.touch()\n",
    ),
    (
        "store.backup-file",
        BACKUP,
        "            path.with_name(path.name + ending).unlink(missing_ok=True)\n",
        "            pass\n",
    ),
    ("store.backup-is-no-store", FILE, "    if is_backup:\n", "    if False:\n"),
    ("store.backup-is-no-store", BACKUP, "    if at is None:\n", "    if False:\n"),
    ("store.restored", BACKUP, "    sqlite_file.renew_secret(db)\n", ""),
    ("store.restored", BACKUP, "IN ('backup', 'wire.key')", "IN ('backup')"),
    ("store.restored", BACKUP, "Restored(found.at, now_ms)", "Restored(now_ms, now_ms)"),
    ("store.restored", BACKUP, "1 + coalesce(", "1 + 0 * coalesce("),
    ("store.restore-empty", BACKUP, "if not fresh and any(directory.iterdir()):", "if False:"),
    ("store.restore-empty", BACKUP, "        (directory / sqlite_file.LOCK).unlink(missing_ok=True)\n", ""),
    (
        "store.check",
        CHECK,
        "        if (waiting := self._tail.streams.get(stream)) is not None:\n",
        "        if False:\n",
    ),
    ("store.check", AUDIT, "{*wires, row.wire}", "{*wires}"),
    ("store.check-schema", CHECK, "if (type, name) not in have:", "if False:"),
    ("store.check-pages", CHECK, '            yield from self._pages("quick_check")\n', ""),
    ("store.check-streams", CHECK, "if due is None and run.first > removed + 1:", "if False:"),
    ("store.check-streams", CHECK, "elif due is not None and run.first != due:", "elif False:"),
    ("store.check-streams", CHECK, "if told is None and not may_lack:", "if False:"),
    ("store.check-streams", CHECK, "if told is None and not may_lack:", "if told is None:"),
    ("store.check-call", AUDIT, "    if verdict.broken is not None:\n", "    if False:\n"),
    ("store.check-document", AUDIT, "        if getattr(row, name) != value:\n", "        if False:\n"),
    ("store.check-document", AUDIT, "len(timed) != (not ended)", "False"),
    ("store.check-document", AUDIT, "marks - timed != want or", "False or"),
    ("store.check-document", AUDIT, "(stored := snapshot.count_rows()) != seen", "False"),
    ("store.check-document", AUDIT, "    for log in sorted(logs):\n", "    for log in ():\n"),
    ("cli.backup-key", COMMANDS + "backup.py", " if with_key else None\n", "\n"),
    ("cli.restore-key", COMMANDS + "restore.py", "    if kept is None:\n", "    if False:\n"),
    ("cli.restore-key", COMMANDS + "restore_key.py", "if not set(known) <= set(pks):", "if False:"),
    (
        "cli.restore-checks",
        COMMANDS + "restore.py",
        "            if not looked.ok:\n",
        "            if False:\n",
    ),
    ("cli.restore-checks", COMMANDS + "restore.py", "    if not anyway:\n", "    if False:\n"),
    ("cli.check", COMMANDS + "check.py", "return 0 if found.ok else REFUSED", "return 0"),
    ("cli.check", COMMANDS + "check.py", "        number += len(schema)\n", ""),
    ("cli.progress", COMMANDS + "backup.py", "if quiet or not sys.stderr.isatty():", "if quiet:"),
    ("client.restored", CALL, "if page.head is not None and page.head.n < ours:", "if False:"),
    ("client.restored", CALL, "self.transcript.rows[head.n + 1 :]", "self.transcript.rows[head.n + 2 :]"),
    ("client.restored", CALL, "        self._lost = why\n", ""),
    ("store.restored", BACKUP, "    sqlite_file.bring_up(db, found.version)\n", ""),
    ("store.check-schema", CHECK, 'COMMENT.sub("", sql)', "sql"),
    (
        "store.check-sums",
        CHECK,
        "if total != sum_of(told, data):",
        "if total != sum_of(told, data) and False:",
    ),
    ("store.check-sums", CHECK, "if total != sum_of(data):", "if False:"),
    ("store.check-sums", AUDIT, "        snapshot.sums,\n", ""),
)
