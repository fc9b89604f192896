"""Where does an envelope's time go? What each stage costs, in microseconds and beside one verification.

`python -m bench.micro` takes one signed envelope of about 600 bytes through every stage of the broker, each by itself,
again and again; then the whole way in one process, without the kernel's sockets, 64 conversations at once, over a store
in memory and over the embedded one on a disk. What the whole way costs beyond its stages is the rest: turns of the
loop, what holds the stages together, and that the processor's caches are not each stage's own there: the same work
takes up to twice as long.

All of it is CPU time, threads included, with the garbage collector off; medians of rounds that take the stages in turn.
Every stage's result is checked, and of the whole way every answer and event; what is wrong is exit code 1.

    python -m bench.micro --json

With --json the last line of stdout is one object.
"""

import argparse
import gc
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

from bench.kit.machine import about, disk_directory, verifications_per_s
from bench.kit.report import finish, say, table
from bench.kit.websocket import Lost
from bench.stages import Stage, stages
from bench.store_cost import store
from bench.whole import CONVERSATIONS, opened

ROUNDS: Final = 5
UNITS: Final = 4096
"""Units of a round of the embedded store."""
SUMMED: Final = (
    "frame", "request", "envelope", "verify", "decide", "fold", "row", "actor hop", "append, SQLite",
    "event", "answer",
)  # fmt: skip
"""What an envelope passes through once, over the embedded store. Its event is made for each of two streams."""
WHOLE: Final = ("whole, memory", "whole, SQLite")


class Figure(msgspec.Struct, kw_only=True):
    """One line: microseconds of CPU, and verifications in the same round."""

    stage: str
    us: float
    ratio_to_verify: float
    what: str = ""


class Rounds:
    """What the rounds found: microseconds by stage, and V at the time."""

    def __init__(self) -> None:
        self.us: dict[str, list[float]] = {}
        self.ratios: dict[str, list[float]] = {}

    def add(self, name: str, us: float, v: float) -> None:
        """One more; `v` verifications a second."""
        self.us.setdefault(name, []).append(us)
        self.ratios.setdefault(name, []).append(us * v / 1e6)

    def figure(self, name: str, what: str) -> Figure:
        """The medians."""
        us, ratio = statistics.median(self.us[name]), statistics.median(self.ratios[name])
        return Figure(stage=name, us=round(us, 2), ratio_to_verify=round(ratio, 3), what=what)


def measure(made: Sequence[Stage], seconds: float, rounds: int, found: Rounds) -> None:
    """Each stage for so long in each round, by turns. Raises Lost where a stage gives what it should not."""
    for stage in made:
        stage.check()
    counts = {stage.name: _enough(stage, seconds) for stage in made}
    for at in range(rounds):
        v = verifications_per_s(0.1)
        for stage in made:
            found.add(stage.name, _timed(stage, counts[stage.name]) / counts[stage.name] * 1e6, v)
        cost = store(CONVERSATIONS, UNITS)
        found.add("append, SQLite", cost.loop_us + cost.thread_us, v)
        say(f"stages, round {at + 1}/{rounds}")


def _timed(stage: Stage, count: int) -> float:
    """CPU seconds of so many."""
    gc.collect()
    gc.disable()
    try:
        return stage.run(count)
    finally:
        gc.enable()


def _enough(stage: Stage, seconds: float) -> int:
    """How many take about so long."""
    count = 64
    while (took := _timed(stage, count)) < seconds / 4 and count < 1 << 20:
        count *= 2
    return max(1, round(count * seconds / max(took, 1e-6))) if took < seconds else count


async def whole(name: str, directory: Path | None, seconds: float, rounds: int, found: Rounds) -> None:
    """The whole way, so long in each round. Raises Lost, alone or grouped."""
    async with opened(directory) as way:
        count, cpu = await way.run(4)
        turns = max(1, round(seconds / (cpu / count * CONVERSATIONS)))
        for at in range(rounds):
            v = verifications_per_s(0.1)
            count, cpu = await way.run(turns)
            found.add(name, cpu / count * 1e6, v)
            say(f"{name}, round {at + 1}/{rounds}: {cpu / count * 1e6:.0f} us")
        await way.prove()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit code: 1 where a stage or the whole way gave what it should not."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _options(given)
    report: dict[str, Any] = {"ok": True, "errors": []}
    try:
        report |= _measure(options.seconds, options.rounds)
    except* Lost as faults:
        report = {"ok": False, "errors": _words(faults)}
        say(f"FAILED: {report['errors']}")
    report["about"] = about("bench.micro", given, ("trio", "websockets", "msgspec", "pynacl"))
    _show(report)
    finish(report, as_json=options.json)
    return 0 if report["ok"] else 1


def _words(faults: BaseExceptionGroup[Lost]) -> list[str]:
    found: list[str] = []
    for fault in faults.exceptions:
        found += _words(fault) if isinstance(fault, BaseExceptionGroup) else [str(fault)]
    return found


def _measure(seconds: float, rounds: int) -> dict[str, Any]:
    found, made = Rounds(), stages()
    v = verifications_per_s()
    measure(made, seconds, rounds, found)
    trio.run(partial(whole, WHOLE[0], None, seconds, rounds, found))
    with tempfile.TemporaryDirectory(prefix="turret-bench-", dir=disk_directory()) as folder:
        trio.run(partial(whole, WHOLE[1], Path(folder), seconds, rounds, found))
    what: Mapping[str, str] = {
        **{stage.name: stage.what for stage in made},
        "append, SQLite": f"a row, two events; {CONVERSATIONS} units a commit, the thread's part included",
        WHOLE[0]: f"{CONVERSATIONS} conversations at once, each party reading its stream",
        WHOLE[1]: "the same over the embedded store, durable before it is answered",
    }
    figures = [found.figure(name, what[name]) for name in found.us]
    by_name = {each.stage: each for each in figures}
    total = sum(by_name[name].us * (2 if name == "event" else 1) for name in SUMMED)
    rest = by_name[WHOLE[1]].us - total
    verify = by_name["verify"]
    for name, us, words in (
        ("stages together", total, "those that an envelope passes once; its event twice"),
        (
            "the rest",
            rest,
            "whole, SQLite, without them: the loop, what holds them together, caches that they share",
        ),
    ):
        ratio = us / verify.us * verify.ratio_to_verify
        figures.append(Figure(stage=name, us=round(us, 2), ratio_to_verify=round(ratio, 3), what=words))
    return {"verifications_per_s": round(v, 1), "figures": msgspec.to_builtins(figures)}


def _show(report: dict[str, Any]) -> None:
    for name, value in report["about"].items():
        print(f"- {name}: {value}")
    if report["ok"]:
        print(table(report["figures"]))
        print(f"V = {report['verifications_per_s']:,.0f} verifications/s on one core")
    for fault in report["errors"]:
        print(f"FAILED: {fault}")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.micro", description=summary)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each stage in each round (0.2)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"medians of so many ({ROUNDS})")
    parser.add_argument("--json", action="store_true", help="the last line of stdout is one object")
    options = parser.parse_args(arguments)
    if options.seconds <= 0 or options.rounds < 1:
        parser.error("--seconds must be more than 0, --rounds at least 1")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
