"""What does one tools/call cost, and how does that compare with the official SDK's server?

`python -m bench.mcp [--json] [--seconds N] [--runs N]`. Every server is a process of its own on loopback, all of
them run all the time, and are measured in turn: one after the other in one era, then in the other, again and
again. So what else the machine does meets all of them.

CPU per call is the server's own time (all its threads, user and system, as the kernel counts it) over the answers
that were checked; the least of the runs, because what disturbs a run only adds. Calls per second: the median.
Linux alone: the times are read from /proc.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

from bench.kit.machine import about, cpu_s
from bench.kit.report import finish, say
from bench.kit.server import running
from bench.load import CONNECTIONS, ERAS, FIRST_ID, LEGACY, MODERN, drive

WARM_S: Final = 1.0
PACKAGES: Final = ("mcp", "uvicorn", "hypercorn", "trio", "h11")
OURS: Final = "turret serve"
YARDSTICK: Final = "SDK MCPServer, default"
TARGETS: Final = {MODERN: 2.0, LEGACY: 3.0}
"""How many times less CPU per call than the yardstick."""
SDK: Final = {YARDSTICK: "default", "SDK MCPServer, JSON": "json", "SDK lowlevel Server, JSON": "lowlevel"}


class Run(NamedTuple):
    """One server in one era for some seconds."""

    calls: int
    seconds: float
    cpu_s: float


class Figure(NamedTuple):
    """What the runs of one server in one era say; the ratios are to the yardstick's, more is better."""

    server: str
    era: str
    cpu_us: float
    cpu_us_median: float
    calls_per_s: float
    cpu_ratio: float
    calls_ratio: float


def commands(data: str) -> dict[str, list[str]]:
    """How each server is started; one line of JSON on its stdout says that it is ready, and its `http` address."""
    ours = [
        "bench.turret_server", "serve", "--json", "--data", data,
        "--bind", "127.0.0.1:0", "--dealing-bind", "127.0.0.1:0",
    ]  # fmt: skip
    return {OURS: ours, **{name: ["bench.sdk_server", mode] for name, mode in SDK.items()}}


def measure(seconds: float, runs: int) -> list[Figure]:
    """Start the servers, measure each `runs` times for so many seconds in both eras, and end them."""
    found: dict[tuple[str, str], list[Run]] = {}
    next_id = FIRST_ID
    with ExitStack() as stack:
        data = stack.enter_context(tempfile.TemporaryDirectory())
        servers = {
            name: stack.enter_context(running(command)) for name, command in commands(f"{data}/data").items()
        }
        for at in range(-1, runs):  # the first round warms up and does not count
            for era in ERAS:
                for name, server in servers.items():
                    before = cpu_s(server.pid)
                    url, length = f"{server.ready['http']}/mcp", min(WARM_S, seconds) if at < 0 else seconds
                    calls, took = drive(url, era, length, next_id)
                    next_id += calls + CONNECTIONS
                    run = Run(calls, took, cpu_s(server.pid) - before)
                    if at >= 0:
                        found.setdefault((name, era), []).append(run)
                    said = f"{run.cpu_s / calls * 1e6:.0f} us CPU a call, {calls / took:.0f} calls/s"
                    turn = f"run {at + 1}/{runs}" if at >= 0 else "warm-up"
                    say(f"{turn} {era} {name}: {said}")
    return figures(found)


def figures(found: Mapping[tuple[str, str], list[Run]]) -> list[Figure]:
    """The runs of each server and era in one line each, in the order in which they came."""
    made: list[Figure] = []
    for (name, era), runs in found.items():
        least, speed = _least(runs), _speed(runs)
        base = found[YARDSTICK, era]
        made.append(
            Figure(
                server=name,
                era=era,
                cpu_us=round(least * 1e6, 1),
                cpu_us_median=round(statistics.median(each.cpu_s / each.calls for each in runs) * 1e6, 1),
                calls_per_s=round(speed, 1),
                cpu_ratio=round(_least(base) / least, 2) if least else 0.0,
                calls_ratio=round(speed / _speed(base), 2),
            )
        )
    return made


def _least(runs: list[Run]) -> float:
    return min(each.cpu_s / each.calls for each in runs)


def _speed(runs: list[Run]) -> float:
    return statistics.median(each.calls / each.seconds for each in runs)


def table(made: list[Figure], facts: Mapping[str, str]) -> str:
    """The figures as Markdown, and whether the targets were met."""
    lines = [f"- {name}: {value}" for name, value in facts.items()]
    lines += [
        "",
        "| server | era | CPU per call, us (median) | calls per second | CPU, times better | calls, times better |",
        "|---|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {each.server} | {each.era} | {each.cpu_us:.0f} ({each.cpu_us_median:.0f}) | {each.calls_per_s:.0f} "
        f"| {each.cpu_ratio:.2f} | {each.calls_ratio:.2f} |"
        for each in made
    ]
    verdicts = [
        f"{each.era}: {each.cpu_ratio:.2f} of {TARGETS[each.era]:g} times less CPU per call than the SDK's "
        f"default, {'met' if each.cpu_ratio >= TARGETS[each.era] else 'missed'}"
        for each in made
        if each.server == OURS
    ]
    return "\n".join([*lines, "", *verdicts])


def main(arguments: list[str]) -> int:
    """Measure and print. Exit code 0 however the figures came out; a wrong answer raises RuntimeError."""
    parser = argparse.ArgumentParser(prog="python -m bench.mcp", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true", help="end with one line that holds one JSON object")
    parser.add_argument("--seconds", type=float, default=3.0, help="the length of a run (3)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each server in each era (5)")
    options = parser.parse_args(arguments)
    if options.seconds <= 0 or options.runs < 1:
        parser.error("--seconds must be more than 0, --runs at least 1")
    made = measure(options.seconds, options.runs)
    facts = about("bench.mcp", arguments, PACKAGES)
    print(table(made, facts))
    report: dict[str, Any] = {
        **facts,
        "seconds": options.seconds,
        "runs": options.runs,
        "connections": CONNECTIONS,
        "figures": [each._asdict() for each in made],
    }
    finish(report, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
