"""The audit log."""

LOG = "broker/wire/auditlog.py"
CORE = "broker/core/audit.py"
AUDITOR = "broker/actors/auditor.py"
NOTES = "broker/actors/notes.py"
TOOLS = "broker/tools/auditing.py"
READING = "broker/tools/audits.py"

MUTANTS = (
    ("audit.chain", LOG, "if head.count != n:", "if False:"),
    ("audit.chain", LOG, "        if not sealed:\n", "        if False:\n"),
    (
        "audit.chain",
        LOG,
        "if self._last is not None and _hash(self._last, encode(members)) != head.hash:",
        "if False:",
    ),
    ("audit.chain", LOG, "        if n > self._next:\n", "        if False:\n"),
    ("audit.heads", LOG, "elif head is None or not head.is_signed(self._wires):", "elif head is None:"),
    ("audit.heads", LOG, "        elif head.count > rows:\n", "        elif False:\n"),
    ("audit.heads", LOG, "is not None and found != head.hash:", "is None:"),
    ("audit.rotation", LOG, " and head.wire not in self._used[:-1]", ""),
    (
        "audit.rotation",
        AUDITOR,
        'frozenset(row["pk"] for row in keyring.listing())',
        "frozenset({keyring.pk})",
    ),
    ("audit.refused", CORE, "min(OWN_A_MINUTE, OWN_AN_HOUR - self._spent)", "OWN_A_MINUTE"),
    ("audit.refused", CORE, "counts[each.kind] += each.count", "counts[each.kind] += 1"),
    ("audit.never-stops", CORE, "if len(encode(members)) <= LARGEST:", "if True:"),
    ("audit.crash", AUDITOR, "(found.near is None or head not in (None, found.near))", "False"),
    ("audit.alarm", AUDITOR, "        if state.beyond:\n", "        if False:\n"),
    ("audit.alarm", AUDITOR, "elif kept is not None and former is not None:", "elif False:"),
    ("audit.restored", AUDITOR, "        if found.restore is not None:\n", "        if False:\n"),
    ("audit.order", AUDITOR, "puts += [Put(WAITING, note.id, note.version, None) for note in notes]", "pass"),
    ("audit.secrets", TOOLS, "return name in NOTED and", "return"),
    (
        "audit.answer",
        TOOLS,
        "    with trio.move_on_after(WAIT_S):\n        for _ in",
        "    with trio.move_on_after(9):\n        for _ in",
    ),
    (
        "audit.order",
        TOOLS,
        "if isinstance(answer, Refusal) or _is_replay(answer):",
        "if isinstance(answer, Refusal):",
    ),
    ("audit.tools", READING, "due = max(due, n + 1)", "due = n + 1"),
    ("audit.tools", READING, "    await _look_at_list(services, verifier, there, wires)\n", ""),
    ("audit.tools", READING, 'name, value = "kind actor", f"{kind} {actor}"', 'name, value = "kind", kind'),
)
