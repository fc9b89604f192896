"""What trials run on (docs/reference/trial.md, Tapes and Catalog)."""

REQUIREMENTS: dict[str, str] = {
    "tape.one-form": "a tape is written in one way only, and named by the hash of it",
    "tape.import": "a CSV file that is right is a tape in whole ticks, whatever its zones and the order of its columns",
    "tape.import-errors": "of a CSV file that is wrong the first wrong line is named, and nothing is taken",
    "tape.seeded": "a tape made by rule and seed is the same on every machine, for ever",
    "trial.fills": "an order acts from the next tick on, at that tick's price, up to its size, as long as it may",
    "trial.bounds": "no position beyond its bound, even if all that rests is filled; no more orders; closing always",
    "trial.runs": "a run is a function of tape, plan and calls, sees the past alone, and ends as plan and bounds say",
    "trial.past": "a rule sees this tick, those before it and its plan's own book as they are, and nothing to come",
    "trial.grades": "grades follow from profit and loss, fills and bounds, in whole numbers, beside two baselines",
    "trial.calls": "a trial is its calls: each fits or says why not, and it goes on from where it was put away",
    "trial.artifact": "an artifact is canonical, and the same for the same tape and calls on every Python",
}
