"""What holds when the disk, the machine or its clock fails."""

READER = "broker/store/sqlite_reader.py"

MUTANTS = (
    (
        "faults.stopped",
        "gateways/dealing.py",
        "                self._seen = ping_at = now\n",
        "                pass\n",
    ),
    (
        "faults.descriptors",
        "gateways/descriptors.py",
        "return error.errno not in (errno.EMFILE, errno.ENFILE)",
        "return True",
    ),
    ("faults.named", "broker/store/complaints.py", "now - before < QUIET_S", "now - before < 0"),
    ("faults.damage", READER, "if (owner, n) != (log, number) or not", "if not"),
    ("faults.damage", READER, "_tells(told, (id, position, kind, own))", "True"),
    ("faults.damage", "broker/store/sums.py", "total = crc32(part, total)", "total = 0"),
    (
        "faults.damage",
        "broker/actors/timers.py",
        "                refused = True\n            looked",
        "                raise\n            looked",
    ),
    (
        "faults.disk-full",
        "broker/store/sqlite_writer.py",
        "if _is_of_a_write(error) and",
        "if False and",
    ),
    (
        "faults.damage",
        "broker/store/stored.py",
        "    except UNREADABLE as error:",
        "    except ZeroDivisionError as error:",
    ),
    ("faults.damage", "broker/actors/calls.py", "        await without_rows(store, row)\n", ""),
    (
        "faults.damage",
        "broker/tools/transcripts.py",
        "    if not head:\n        await without_rows(store, row)\n",
        "    if not head:\n",
    ),
    ("faults.damage", "broker/actors/timers.py", "PAGE + len(after)", "1"),
    ("faults.damage", READER, "if self._judge and not _is_whole(total, digest, outcome):", "if False:"),
    ("store.check-sums", "broker/store/sqlite_check.py", "if total != sum_of(digest, outcome):", "if False:"),
    (
        "call.idle-by-the-monotonic-clock",
        "broker/actors/conversation.py",
        "since >= self._rules.window_s and not stepped:",
        "since >= self._rules.window_s:",
    ),
)
