"""Tapes."""

CSV = "broker/core/tapes/csvfile.py"
MADE = "broker/core/tapes/synthetic.py"
TAPE = "broker/core/tapes/tape.py"

ACCOUNT = "broker/core/trials/account.py"

MUTANTS = (
    ("trial.bounds", ACCOUNT, "room = bounds.position - exposed(account, side)", "room = bounds.position"),
    ("trial.bounds", ACCOUNT, "account.sent >= bounds.orders", "account.sent > bounds.orders"),
    ("trial.fills", ACCOUNT, "there[order.side] -= part", "pass"),
    ("trial.fills", ACCOUNT, "order.dies > tick", "order.dies >= tick"),
    ("trial.fills", ACCOUNT, "size if side == \"buy\" else -size\n    fee", "size\n    fee"),
    ("tape.import-errors", CSV, "        if bid > ask:", "        if False:"),
    ("tape.import-errors", CSV, "elif time - last != step:", "elif time - last < 0:"),
    ("tape.import-errors", CSV, "    if time.tzinfo is None:", "    if False:"),
    ("tape.import-errors", CSV, "ticks.denominator != 1", "False"),
    ("tape.import", CSV, 'text.removeprefix("\\ufeff")', "text"),
    ("tape.seeded", MADE, "0x94D049BB133111EB", "0x94D049BB133111ED"),
    ("tape.one-form", TAPE, "    if tape.content() != content:", "    if False:"),
)
