"""Grades of what was never done, by others' tapes, or in one long piece."""

REVIEW = "broker/core/trials/review.py"
GRADE = "broker/core/trials/grade.py"
GRADER = "broker/actors/grader.py"
TOOL = "broker/tools/grading.py"
REPORT = "broker/core/trials/report.py"
EQUITY = "gateways/pages/equity.py"
PAGE = "gateways/pages/trialreport.py"
DOOR = "gateways/trialreports.py"
CONSOLE = "gateways/console/trials.py"
COMMAND = "gateways/commands/grade.py"

MUTANTS = (
    ("trial.report", PAGE, "money(grades.max_drawdown)", "money(grades.pnl)"),
    (
        "trial.report",
        PAGE,
        "report.naive, report.aside)]\n    rows",
        "report.aside, report.naive)]\n    rows",
    ),
    ("trial.picture", EQUITY, '_line("maker", report.maker, scale)', '_line("maker", report.curve, scale)'),
    ("trial.grades", GRADE, "plan.bound.loss, 2 *", "10**15, 2 *"),
    ("trial.grades", GRADE, "ticks + 2, plan.bound.until)", "ticks + 2, 10**6)"),
    ("trial.grades", GRADE, "avoided=place.account.avoided", "avoided=0"),
    ("trial.grades", GRADE, "NAIVE_PART: Final = 10", "NAIVE_PART: Final = 9"),
    ("trial.grades", GRADE, "+ 2 * tape.about.fee)", "+ tape.about.fee)"),
    ("trial.grade-replay", REVIEW, "        if one != other:\n", "        if False:\n"),
    ("trial.grade-replay", REVIEW, "    if len(said) != len(found):\n", "    if False:\n"),
    ("trial.grade-replay", REVIEW, "        if said[name] != value:\n", "        if False:\n"),
    ("trial.grade-replay", REVIEW, "artifact.calls, done) != content:", "artifact.calls, done) == b'':"),
    ("trial.grade-replay", REVIEW, 'return Fault("plan", checked[0].message, n)\n', "pass\n"),
    ("trial.grade-replay", REVIEW, "= first or call.plan, cost", "= call.plan, cost"),
    ("trial.grade-kind", REVIEW, "    if artifact.fills_model != MODEL:\n", "    if False:\n"),
    ("trial.grade-tape", REVIEW, "    if tape.ref() != entry.ref:\n", "    if False:\n"),
    ("trial.grade-slices", REVIEW, "first or call.plan, cost(call.plan)", "first or call.plan, 0"),
    (
        "trial.grade-slices",
        REVIEW,
        "        yield before + trial.place.tick\n",
        "    yield before + trial.place.tick\n",
    ),
    ("trial.grade-turns", GRADER, "        if who in self._asking:\n", "        if False:\n"),
    ("trial.grade-turns", GRADER, "len(self._asking) >= most:", "False:"),
    ("trial.grade-turns", GRADER, "            async with self._one:\n", "            if True:\n"),
    (
        "trial.grade-turns",
        GRADER,
        "                    self._known[ref] = found\n",
        "                    pass\n",
    ),
    ("trial.grade-tape", GRADER, "misfit(artifact.entry, tape)) is not None:", "None) is not None:"),
    ("trial.grade-kind", TOOL, "reason=fault.what", "reason='form'"),
    ("trial.grade-tool", TOOL, "ref.removeprefix(PREFIX)", "ref"),
    ("trial.grade-tool", TOOL, "streams=True,", "streams=False,"),
    ("trial.report", REPORT, "        if place not in seen:\n", "        if True:\n"),
    ("trial.report", REPORT, "            held[-1] += size\n", "            held[-1] = size\n"),
    (
        "trial.report",
        PAGE,
        "<pre><bdi>{escape(_safe(text))}</bdi></pre>",
        "<pre><bdi>{_safe(text)}</bdi></pre>",
    ),
    ("trial.report", PAGE, "<bdi>{escape(_safe(value))}</bdi>", "<bdi>{escape(value)}</bdi>"),
    ("trial.report-door", DOOR, '"content-security-policy": trialreport.policy(),', ""),
    (
        "trial.report-door",
        DOOR,
        "response = answer(trialreport.refused(*told(found)), found.status)",
        "response = answer(trialreport.refused(*told(found)), 200)",
    ),
    ("trial.report-console", CONSOLE, "(?:kestrel://artifact/)?", ""),
    ("trial.picture", EQUITY, "        height = max(height, made)\n", "        height = made\n"),
    ("trial.picture", EQUITY, "bisect_right(at, fill.tick) - 1", "bisect_right(at, fill.tick) - 2"),
    (
        "trial.picture",
        EQUITY,
        '<title id="equity-title">{escape(TITLE)}</title>',
        "<title>{escape(TITLE)}</title>",
    ),
    ("trial.grade-slices", REVIEW, "            yield trial.place.tick  #", "            pass  #"),
    (
        "trial.grade-replay",
        REVIEW,
        "(ran := trial.place.tick - began) != call.ticks",
        "(ran := 0) > call.ticks",
    ),
    (
        "trial.grade-command",
        COMMAND,
        "market if isinstance(market, Fault) else review",
        "market if False else review",
    ),
    (
        "trial.grade-command",
        COMMAND,
        '            options.show({"ref": ref, "fault": found})\n',
        "            pass\n",
    ),
    ("trial.grade-tool", "gateways/mcp/tools.py", "waits = tool.streams or ", "waits = "),
)
