"""Tapes."""

CSV = "broker/core/tapes/csvfile.py"
MADE = "broker/core/tapes/synthetic.py"
TAPE = "broker/core/tapes/tape.py"

ACCOUNT = "broker/core/trials/account.py"
RUN = "broker/core/trials/run.py"
GRADE = "broker/core/trials/grade.py"
SCRIPT = "broker/core/trials/script.py"

MUTANTS = (
    ("trial.calls", SCRIPT, "tif, self.place.tick - 1)", "tif, self.place.tick)"),
    ("trial.calls", SCRIPT, "None if plan.on == on else", "None if True else"),
    ("trial.artifact", SCRIPT, "step *= 2", "step *= 3"),
    ("trial.artifact", SCRIPT, "if encode(msgspec.json.decode(content)) != content:", "if False:"),
    ("trial.runs", RUN, "if made <= -self._bounds.loss:", "if made < -2 * self._bounds.loss:"),
    ("trial.runs", RUN, "elif tick >= self._bounds.until:", "elif False:"),
    ("trial.runs", RUN, "range(max(0, tick - program.reach), tick, at_once)", "range(0)"),
    ("trial.runs", RUN, "else tick + tif", "else tick + 1 + tif"),
    ("trial.runs", RUN, "why = place.over or place.closing", "why = place.over"),
    ("trial.past", RUN, "= tick, tape.bids[tick],", "= tick, tape.bids[min(tick + 1, len(tape) - 1)],"),
    ("trial.past", RUN, "= tape.sizes[tick]\n        view", "= tape.sizes[tick - 1]\n        view"),
    ("trial.past", RUN, "account.position, made", "account.position, 0"),
    ("trial.past", RUN, "tick - account.filled_at", "tick - account.filled_at + 1"),
    ("trial.grades", GRADE, "height = max(height, made)", "height = made"),
    ("trial.grades", GRADE, "brought > 0", "brought >= 0"),
    ("trial.grades", GRADE, "lots.popleft()", "lots.pop()"),
    ("trial.bounds", ACCOUNT, "room = bounds.position - held", "room = bounds.position"),
    ("trial.bounds", ACCOUNT, "account.sent >= bounds.orders", "account.sent > bounds.orders"),
    ("trial.fills", ACCOUNT, "there[order.side] -= part", "pass"),
    ("trial.fills", ACCOUNT, "order.dies > tick", "order.dies >= tick"),
    ("trial.fills", ACCOUNT, 'size if side == "buy" else -size\n    fee', "size\n    fee"),
    ("tape.import-errors", CSV, "if len(row) != len(at):", "if len(row) < len(at):"),
    ("tape.import-errors", CSV, "if ticks == MAX_TICKS:", "if False:"),
    ("tape.import-errors", CSV, "if not 0 < ticks <= MAX_PRICE:", "if not 0 < ticks:"),
    ("tape.import-errors", CSV, "        if bid > ask:", "        if False:"),
    ("tape.import-errors", CSV, "elif time - self._last != self._step:", "elif time - self._last < 0:"),
    ("tape.import-errors", CSV, "    if time.tzinfo is None:", "    if False:"),
    ("tape.import-errors", CSV, "        if left:", "        if False:"),
    ("tape.import-errors", CSV, 'words.replace(" %s", "")', "self.message"),
    ("tape.import", CSV, "block.removeprefix(_BOM)", "block"),
    ("tape.import", CSV, 'data.rfind(b"\\r", 0, len(data) - 1)', 'data.rfind(b"\\r")'),
    ("tape.seeded", MADE, "0x94D049BB133111EB", "0x94D049BB133111ED"),
    ("tape.one-form", TAPE, 'if b"".join(_lines(columns)) != lines:', "if False:"),
)
