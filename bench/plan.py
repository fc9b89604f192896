"""How fast are plans read, and how fast do they run? `python -m bench.plan [--ticks 1000000] [--json]`.

Plans on a seeded tape: the program alone (nothing is filled), and a whole run with its orders, fills, bounds and marks.
CPU time of one core.
"""

import argparse
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Final

from bench.kit.report import finish, table
from broker.core.plan.limits import MAX_COST
from broker.core.plan.program import View, compile_plan
from broker.core.plan.read import Checked, read_plan
from broker.core.tapes.synthetic import KINDS, make
from broker.core.tapes.tape import Tape
from broker.core.trials.run import Place, Run

HEAD: Final = (
    "plan bench 1\non EURUSD\nbound position 3000000, loss 900000000, orders 10000, until 1000000\n"
    "let edge = 2\n"
)
QUIET: Final = HEAD + "when tick < 0: cancel\n"
TEN: Final = HEAD + (
    "when spread >= edge and position = 0: buy 1000000 at mid - 1\n"
    "when spread >= 3 and position = 0 and mid > avg(mid, 20): buy 1000000 at mid - 1\n"
    "when avg(mid, 5) < avg(mid, 50) and position > 0: sell position at mid + spread / 2\n"
    "when mid > max(mid[1], 100) or mid < min(mid[1], 100): cancel\n"
    "when abs(mid - mid[10]) > 40 and not resting = 0: cancel\n"
    "when fill_age > 30 and position != 0: flatten\n"
    "when ask - fill >= 8 and position > 0: sell position at bid\n"
    "when orders_left < 5 and resting > 0: cancel\n"
    "when pnl <= -800000000: stand_down\n"
    "when tick >= 999990: flatten\n"
)
PLAIN: Final = HEAD + "when spread >= edge and position > 0 and bid + 4 > ask: sell position at bid\n" * 10
DEAREST: Final = HEAD + ("when " + " or ".join(["abs(mid - bid) > 90000"] * 32) + ": cancel\n") * 5
LONG: Final = HEAD + "".join(
    f"when mid > max(mid, {4000 + each}) or mid < avg(mid, {4050 + each}): cancel\n" for each in range(10)
)
MOST: Final = HEAD + "".join(
    f"when max(mid, {2 + each}) < min(mid[1], {2 + each}): cancel\n" for each in range(20)
)
PLANS: Final = {
    "one rule": QUIET,
    "ten plain rules": PLAIN,
    "ten rules, seven looks back": TEN,
    "ten rules, twenty windows of 4,000 ticks": LONG,
    "nearly the most steps": DEAREST,
    "twenty rules, forty windows": MOST,
}


def measure(text: str, tape: Tape) -> dict[str, float | int]:
    """Reading, the whole tape through the program, and through a run."""
    reading = best(lambda: read_plan(text))
    checked = read_plan(text)
    if not isinstance(checked, Checked):
        raise SystemExit(f"no plan: {checked[0]}")
    compiling = best(lambda: compile_plan(checked.plan))
    program, view, actions = compile_plan(checked.plan), View(0, 0, 0), 0
    step = program.step
    began = time.process_time()
    for tick, (bid, ask) in enumerate(zip(tape.bids, tape.asks, strict=True)):
        view.tick, view.bid, view.ask = tick, bid, ask
        actions += len(step(view))
    seconds = time.process_time() - began
    run = Run(tape, checked.plan, Place(), array("q"))
    began = time.process_time()
    fills = run.advance(len(tape))
    ran = time.process_time() - began
    return {
        "steps": checked.cost,
        "read_ms": round(reading * 1e3, 2),
        "compile_ms": round(compiling * 1e3, 2),
        "us_per_tick": round(seconds / len(tape) * 1e6, 3),
        "s_per_million": round(seconds / len(tape) * 1e6, 2),
        "ns_per_step": round(seconds / len(tape) / checked.cost * 1e9, 1),
        "actions": actions,
        "run_s_per_million": round(ran / run.place.tick * 1e6, 2),
        "run_ticks": run.place.tick,
        "fills": len(fills),
    }


def best(function: Callable[[], object], rounds: int = 5) -> float:
    """The shortest CPU time of a few."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a table; with --json one object on the last line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ticks", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    tape = make(KINDS["trend"], 7, options.ticks)
    read_plan(QUIET)  # Lark's tables
    figures = {name: measure(text, tape) for name, text in PLANS.items()}
    print(table([{"plan": name, **row} for name, row in figures.items()]))
    finish({"ticks": options.ticks, "most_steps": MAX_COST, "plans": figures}, as_json=options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
