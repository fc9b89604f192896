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
)
