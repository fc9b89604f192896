"""Play seeds of the simulation.

    python -m tests.simulation --seed N [--steps N | --only 1,5,9] [--trace]    one, again
    python -m tests.simulation --seconds 60 --from-seed 1                       many
    python -m tests.simulation --seeds 200                                      that many

A seed that fails is shrunk: the command that is printed replays the least of its plan that still fails.
"""

import argparse
import logging
import sys
import time

from tests.simulation.run import Outcome, Report, command, plan_of, play, shrink


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--seed", type=int, help="play this one")
    parser.add_argument("--steps", type=int, help="with --seed: the first steps of its plan alone")
    parser.add_argument("--only", help="with --seed: these steps of its plan alone, by number")
    parser.add_argument("--trace", action="store_true", help="with --seed: print what happened, and when")
    parser.add_argument("--seconds", type=float, default=60.0, help="play seeds for about this long")
    parser.add_argument("--seeds", type=int, help="play this many, however long it takes")
    parser.add_argument("--from-seed", type=int, default=1)
    parser.add_argument("--log", action="store_true", help="show what the broker logs")
    options = parser.parse_args(arguments)
    if not options.log:
        logging.disable(logging.CRITICAL)
    try:
        return _one(options) if options.seed is not None else _many(options)
    finally:
        logging.disable(logging.NOTSET)


def _many(options: argparse.Namespace) -> int:
    report, began, seed = Report(), time.monotonic(), options.from_seed
    while (
        report.seeds < options.seeds
        if options.seeds is not None
        else time.monotonic() - began < options.seconds
    ):
        outcome = play(plan_of(seed))
        report.add(outcome)
        if outcome.fault is not None:
            _show(outcome)
        seed += 1
    print(report.text())
    return 1 if report.failed else 0


def _one(options: argparse.Namespace) -> int:
    only = [int(each) for each in options.only.split(",") if each] if options.only is not None else None
    plan = plan_of(options.seed, options.steps, only)
    outcome = play(plan)
    if options.trace:
        print(*plan.steps, sep="\n")
        print(*outcome.trace, sep="\n")
    report = Report()
    report.add(outcome)
    print(report.text())
    print(f"trace {outcome.digest}, {len(outcome.trace)} lines")
    if outcome.fault is not None:
        print(f"FAILED: {outcome.fault}")
    return 1 if outcome.fault is not None else 0


def _show(outcome: Outcome) -> None:
    kept, shrunk = shrink(outcome.seed)
    print(f"seed {outcome.seed} FAILED: {outcome.fault}")
    print(f"  {command(outcome.seed)}")
    print(f"  shrunk to {len(kept)} of {outcome.steps} steps: {shrunk.fault}")
    print(f"  {command(outcome.seed, kept)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
