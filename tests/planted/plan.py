"""The plan language."""

FOLDER = "broker/core/plan/"

MUTANTS = (
    ("plan.bounds", FOLDER + "check.py", "            if word not in values:", "            if False:"),
    ("plan.bounds", FOLDER + "check.py", "size // 2 > bound.position", "size > bound.position * 9"),
    ("plan.bounded", FOLDER + "check.py", "(steps := cost(plan)) > MAX_COST", "(steps := cost(plan)) < 0"),
    (
        "plan.bounded",
        FOLDER + "check.py",
        "value is None or abs(value) <= 2 * MOST",
        "True",
    ),
    (
        "plan.bounded",
        FOLDER + "limits.py",
        "ago + valued(look.ticks, values) - 1",
        "valued(look.ticks, values) - 1",
    ),
    ("plan.canonical", FOLDER + "printer.py", "expression(right, own + 1)", "expression(right, own)"),
    ("plan.diagnostics", FOLDER + "diagnostics.py", 'self._text.count("\\n", 0, at.start) + 1', "1"),
    (
        "plan.halves",
        FOLDER + "emit.py",
        'return f"({left} {calc.sign} {right})"',
        'return f"(abs({left}) {calc.sign} {right})"',
    ),
    ("plan.halves", FOLDER + "emit.py", 'up = " + 1" if order.side == "buy" else ""', 'up = ""'),
    (
        "plan.halves",
        FOLDER + "emit.py",
        '"mid": "view.bid + view.ask"',
        '"mid": "(view.bid + view.ask) // 2 * 2"',
    ),
    ("plan.hostile", FOLDER + "read.py", "    if len(text) > MAX_TEXT:", "    if False:"),
    (
        "plan.kinds",
        FOLDER + "kinds.py",
        "if mine._kind and theirs._kind and mine._kind != theirs._kind",
        "if False",
    ),
    ("plan.meaning", FOLDER + "emit.py", 'f"seen > {needed}"', 'f"seen >= {needed}"'),
    (
        "plan.meaning",
        FOLDER + "emit.py",
        '                yield "            return out"',
        "                pass",
    ),
    ("plan.meaning", FOLDER + "windows.py", "maxlen=ago + 1", "maxlen=ago + 2"),
    (
        "plan.no-text-runs",
        FOLDER + "limits.py",
        "2 * values[expr] if expr in values else None",
        "None",
    ),
    ("plan.one-judge", FOLDER + "read.py", "checked.plan != plan", "False"),
    ("plan.repairs", FOLDER + "statements.py", "token.type in _after(state, names[text])", "False"),
    (
        "plan.round-trip",
        FOLDER + "printer.py",
        "isinstance(of, int | Money | Neg | Calc)",
        "isinstance(of, Neg | Calc)",
    ),
    (
        "plan.windows",
        FOLDER + "windows.py",
        "until.append(self._now + self._ticks)",
        "until.append(self._now + self._ticks + 1)",
    ),
)
