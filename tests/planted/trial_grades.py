"""Grades of what was never done, by others' tapes, or in one long piece."""

REVIEW = "broker/core/trials/review.py"

MUTANTS = (
    ("trial.grade-replay", REVIEW, "        if one != other:\n", "        if False:\n"),
    ("trial.grade-replay", REVIEW, "    if len(said) != len(found):\n", "    if False:\n"),
    ("trial.grade-replay", REVIEW, "        if said[name] != value:\n", "        if False:\n"),
    ("trial.grade-replay", REVIEW, "artifact.calls, done) != content:", "artifact.calls, done) == b'':"),
    ("trial.grade-replay", REVIEW, '    return Fault("plan", checked[0].message, n)\n', "    return None\n"),
    ("trial.grade-replay", REVIEW, "        plan = plan or call.plan\n", "        plan = call.plan\n"),
    ("trial.grade-kind", REVIEW, "    if artifact.fills_model != MODEL:\n", "    if False:\n"),
    ("trial.grade-tape", REVIEW, " or tape.ref() != entry.ref:", ":"),
    ("trial.grade-slices", REVIEW, "Advance(min(pace, until", "Advance(min(10**9, until"),
    ("trial.grade-slices", REVIEW, "STEPS // (checked.cost + TICK_STEPS)", "STEPS // TICK_STEPS"),
)
