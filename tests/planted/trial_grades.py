"""Grades of what was never done, by others' tapes, or in one long piece."""

REVIEW = "broker/core/trials/review.py"

MUTANTS = (
    ("trial.grade-replay", REVIEW, "        if one != other:\n", "        if False:\n"),
    ("trial.grade-replay", REVIEW, "    if len(said) != len(found):\n", "    if False:\n"),
    ("trial.grade-replay", REVIEW, "        if said[name] != value:\n", "        if False:\n"),
    ("trial.grade-replay", REVIEW, "artifact.calls, done) != content:", "artifact.calls, done) == b'':"),
    ("trial.grade-replay", REVIEW, '    return Fault("plan", checked[0].message, n)\n', "    return None\n"),
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
)
