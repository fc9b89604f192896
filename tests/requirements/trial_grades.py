"""Grades: what is graded, by whom it is asked for, and how it is shown."""

REQUIREMENTS: dict[str, str] = {
    "trial.grade-replay": "what is graded was done again; an artifact that differs is refused by what differs",
    "trial.grade-kind": "what is no trial's artifact is refused as what it is, whatever its bytes",
    "trial.grade-tape": "a tape made by rule is made again; another tape, or one that is gone, is refused",
    "trial.grade-slices": "grading goes on in pieces of bounded work, and is the same wherever it is cut",
    "trial.grade-turns": "one artifact is graded at a time, so many wait, and what was graded is not done again",
    "trial.grade-tool": "kestrel.grade tells the grades of a ref, or why there are none; no word of an agent",
    "trial.report": "a report shows a finished trial to who has its ref: graded, of much the extremes, and escaped",
    "trial.report-door": "/artifact/<ref>/report is a page for who has the ref, and says why where there is none",
    "trial.report-console": "operators look at a finished trial by its ref, as whoever has the ref does",
    "trial.grade-pythons": "the same tape and calls have the same ref and the same grades on every Python",
    "trial.grade-command": "`turret grade` grades by ref or by file, on the tape that the artifact names alone",
    "trial.picture": "a trial is drawn in SVG with a title and a description, true to its numbers, decimated, in both "
    "schemes",
}
