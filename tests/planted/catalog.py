"""The catalog of tapes."""

CORE = "broker/core/tapes/catalog.py"
STORE = "broker/actors/tapestore.py"
TAPES = "broker/actors/tapes.py"
TOOLS = "broker/tools/tapes.py"
CHECK = "broker/actors/check_tapes.py"
RESOURCES = "gateways/mcp/trial_resources.py"
COMMAND = "gateways/commands/tape.py"

MUTANTS = (
    ("catalog.whole", CORE, "if digest.hexdigest() != ref:", "if False:"),
    ("catalog.whole", CORE, "    return wrong or tape", "    return tape if tape else str(wrong)"),
    ("catalog.whole", CORE, "if not 0 < bid <= ask <= MAX_PRICE:", "if not 0 < bid <= MAX_PRICE:"),
    ("catalog.entry", CORE, "FIRST: Final = 100", "FIRST: Final = 4"),
    (
        "catalog.import",
        STORE,
        'return row if row is not None and row.state == "here" else None',
        "return row",
    ),
    ("catalog.broken-import", STORE, "if kept.data == command.rows:", "if True:"),
    (
        "catalog.broken-import",
        STORE,
        "if isinstance(tape, str):\n            refused",
        "if False:\n            refused",
    ),
    ("catalog.remove", STORE, "self.clock.now_ms(), index=row.index)", "self.clock.now_ms())"),
    ("catalog.bound", STORE, "if part == 0 and await self._full():", "if False:"),
    ("catalog.bound", STORE, "if await self._full():  # the parts", "if False:  # the parts"),
    ("catalog.bound", TAPES, "sum(map(len, self._kept.values())) > KEPT_TICKS", "False"),
    (
        "catalog.verified",
        STORE,
        "if isinstance(tape, str):\n        raise damaged",
        "if tape is None:\n        raise damaged",
    ),
    (
        "catalog.scope",
        TOOLS,
        "    if refused is not None:\n        return refused\n    services",
        "    services",
    ),
    (
        "catalog.audited",
        TOOLS,
        'title="Import a tape", keyed=True)',
        'title="Import a tape", keyed=True, audited=False)',
    ),
    ("catalog.resources", RESOURCES, "(0|[1-9][0-9]{0,8})", "([0-9]+)"),
    (
        "catalog.command",
        COMMAND,
        'where = f"{file}:{found.line}" if found.line else str(file)',
        "where = str(file)",
    ),
    ("catalog.check", CHECK, "if len(entries) != row.parts:", "if len(entries) < row.parts:"),
    (
        "catalog.check",
        CHECK,
        "        if isinstance(tape, str):\n            yield Fault",
        "        if tape is None:\n            yield Fault",
    ),
    ("catalog.killed", STORE, "if kept.data == command.rows:", "if False:"),
)
