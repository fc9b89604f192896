"""Tapes that the broker fetches."""

CORE = "broker/core/tapes/source.py"
IMPORTER = "broker/actors/tapesource.py"
TOOL = "broker/tools/tape_sources.py"
FETCHER = "gateways/courier.py"
OUT = "gateways/outbound.py"
COMMAND = "gateways/commands/tape.py"

MUTANTS = (
    ("tape.source-import", IMPORTER, "digest.update(part)", "pass"),
    (
        "tape.source-refused",
        CORE,
        "missed.why in _LATER or (missed.status or 0) >= 500",
        "missed.why in _LATER",
    ),
    ("tape.source-refused", FETCHER, "if came.status != 200:", "if came.status >= 400:"),
    (
        "tape.source-refused",
        FETCHER,
        'came.headers.get("content-encoding", "identity").lower() != "identity"',
        "False",
    ),
    (
        "tape.source-refused",
        TOOL,
        'if (complaint := reader.feed(b"")) is not None:',
        "if (complaint := None) is not None:",
    ),
    ("tape.source-public", TOOL, "judge_url(url, loopback=services.settings.webhooks.allow_loopback) or", ""),
    (
        "tape.source-public",
        FETCHER,
        'Missed("redirect" if 300 <= came.status < 400 else "status", came.status)',
        'Missed("status")',
    ),
    ("tape.source-bounds", OUT, 'if int(said.get("content-length", 0)) > most:', "if False:"),
    (
        "tape.source-bounds",
        OUT,
        'if "content-length" not in said and "transfer-encoding" not in said:',
        "if False:",
    ),
    (
        "tape.source-secrets",
        TOOL,
        "services.safe.fill_for(OPERATORS, added)",
        "services.safe.fill_for('', added)",
    ),
    ("tape.source-hidden", CORE, "{where}{complaint.plain}", "{where}{complaint.message}"),
    ("tape.source-one", IMPORTER, "        if self._busy:\n", "        if False:\n"),
    (
        "tape.source-one",
        IMPORTER,
        "async with self._mill.turn(WHO):\n                if",
        "if True:\n                if",
    ),
    ("tape.source-one", IMPORTER, "            self._busy = False", "            pass"),
    ("tape.source-command", COMMAND, "if not colon or name in headers:", "if not colon:"),
)
