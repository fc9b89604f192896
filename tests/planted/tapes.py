"""Tapes."""

CSV = "broker/core/tapes/csvfile.py"
MADE = "broker/core/tapes/synthetic.py"
TAPE = "broker/core/tapes/tape.py"

MUTANTS = (
    ("tape.import-errors", CSV, "        if bid > ask:", "        if False:"),
    ("tape.import-errors", CSV, "elif time - last != step:", "elif time - last < 0:"),
    ("tape.import-errors", CSV, "    if time.tzinfo is None:", "    if False:"),
    ("tape.import-errors", CSV, "ticks.denominator != 1", "False"),
    ("tape.import", CSV, 'text.removeprefix("\\ufeff")', "text"),
    ("tape.seeded", MADE, "0x94D049BB133111EB", "0x94D049BB133111ED"),
    ("tape.one-form", TAPE, "    if tape.content() != content:", "    if False:"),
)
