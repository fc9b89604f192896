"""How many actions a second does the arena take, how long does each last, and what do 10,000 open sessions cost?

`python -m bench.arena` plays 64 sessions of Hi-Lo in 64 connections of 16 agents, once over WebSocket (/ws) and once
over MCP (Streamable HTTP), to their end and then the next ones: a session has 51 actions, and opening and publishing it
is part of the load. The broker is a process of its own with default settings but for its limits (--unsafe-limits), on a
disk; an action counts when it was acknowledged: its event, its points and the answer under its key are durable then.

Every answer must follow from the one before (version, odds, change, balance); the last one of each connection is asked
for again, and must be the same bytes. At the end the store is read: all sessions are as they were acknowledged, the
ledger's sum is 0, all artifacts are verified. What does not hold ends the benchmark with exit code 1.

    python -m bench.arena --runs 5 --json      closed loop: each connection has one action under way
    python -m bench.arena --rate 30%           open loop at 30 % of that: latency from the schedule
    python -m bench.arena --mode persistent    with the agents' own accounts; of one agent one action at a time
    python -m bench.arena --open 10000         so many open sessions: time and memory each, and actions over all of them

With --json the last line of stdout is one object.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

from bench.books import audit
from bench.hall import Hall, Run
from bench.kit.agents import prepared
from bench.kit.machine import about, fsync_ms, rss_mib
from bench.kit.report import finish, percentile, say, table
from bench.kit.server import Broker, turret
from bench.kit.websocket import Lost, Refused
from bench.seats import OVER

POINTS: Final = 1_000_000
"""arena.points of the measured broker: no agent plays its account empty."""
AWAKE_S: Final = 3_600
"""actors.idle_s with --open: no session leaves the memory while it is measured."""
COLUMNS: Final = Run.__struct_fields__
SUMMED: Final = ("over", "actions_per_s", "p50_ms", "p99_ms", "lag_p99_ms", "others_cores")
"""What the report itself has, of the first door and loop."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit code: 1 where data was lost or an answer was wrong."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _options(given)
    report: dict[str, Any] = {"about": about("bench.arena", given, ("trio", "websockets", "msgspec"))}
    with prepared(options.agents) as (data, agents):
        try:
            report |= _on_broker(data, agents, options)
        except RuntimeError as fault:  # it did not start, or ended by itself
            say(f"FAILED: {fault}")
            return 2
    _show(report)
    finish(report, as_json=options.json)
    return 0 if report["ok"] else 1


def _on_broker(data: Path, agents: Sequence[str], options: argparse.Namespace) -> dict[str, Any]:
    settings = {"arena.points": POINTS, **({"actors.idle_s": AWAKE_S} if options.open else {})}
    report: dict[str, Any] = {"mode": options.mode, "rows": [], "errors": []}
    halls: list[Hall] = []
    with turret(data, settings=settings) as broker:
        try:
            for over in options.over:
                sessions = options.open or options.sessions
                halls.append(Hall(broker, agents, over, options.connections, sessions, options.mode))
                _measure(broker, halls[-1], options, report)
        except (Lost, Refused, TimeoutError) as fault:
            report["errors"] = [f"{type(fault).__name__}: {fault}"]
        finally:
            for hall in halls:
                hall.close()
        report["fsync"] = msgspec.to_builtins(fsync_ms(broker.data))
    report["medians"] = medians = _medians(report["rows"])
    if medians:
        report |= {name: medians[0][name] for name in SUMMED}
    if not report["errors"]:
        _check(data, halls, options, report)
    return {**report, "ok": not report["errors"]}


def _measure(broker: Broker, hall: Hall, options: argparse.Namespace, report: dict[str, Any]) -> None:
    players, rows = hall.players, report["rows"]
    if options.open:
        report.setdefault("open", []).append(_many(broker, hall, options, rows))
    else:
        players.open()
        players.spread_out()
        most = len(players.closed_loop(min(1.0, options.seconds)).latencies) / min(1.0, options.seconds)
        runs = []
        if not options.rate or options.rate.endswith("%"):
            runs = [
                hall.measure("closed", lambda: players.closed_loop(options.seconds))
                for _ in range(options.runs)
            ]
            most = statistics.median(each.actions_per_s for each in runs)
        if options.rate.endswith("%"):
            rate = max(1.0, most * float(options.rate[:-1]) / 100)  # a machine may have had no time at all
        else:
            rate = float(options.rate or 0)
        if rate:
            name = f"open, {rate:,.0f}/s"
            runs += [
                hall.measure(name, lambda: players.open_loop(rate, options.seconds))
                for _ in range(options.runs)
            ]
        rows += msgspec.to_builtins(runs)
    report["asked_again"] = report.get("asked_again", 0) + players.ask_again()


def _many(broker: Broker, hall: Hall, options: argparse.Namespace, rows: list[Any]) -> dict[str, Any]:
    """Open them all, wake them all by an action each, and play them all in turn."""
    players, count, empty = hall.players, options.open, rss_mib(broker.pid)
    opened = players.open()
    lying = rss_mib(broker.pid)
    say(f"{count} opened in {opened.seconds:.1f} s")
    rows.append(msgspec.to_builtins(hall.measure("first action in each", players.each_once)))
    awake = rss_mib(broker.pid)
    for _ in range(options.runs):
        run = hall.measure("closed, all in turn", lambda: players.closed_loop(options.seconds))
        rows.append(msgspec.to_builtins(run))
    return {
        "sessions": count,
        "open_s": round(opened.seconds, 2),
        "opened_per_s": round(count / opened.seconds, 1),
        "open_p50_ms": round(percentile(opened.opened, 0.5), 3),
        "open_p99_ms": round(percentile(opened.opened, 0.99), 3),
        "kib_each_opened": round((lying - empty) * 1024 / count, 2),
        "kib_each_in_play": round((awake - empty) * 1024 / count, 2),
        "rss_mib": round(awake, 1),
    }


def _medians(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each door and loop the median of each figure over its runs, in the order in which they came."""
    kinds = list(dict.fromkeys((row["over"], row["loop"]) for row in rows))
    found = []
    for kind in kinds:
        same = [row for row in rows if (row["over"], row["loop"]) == kind]
        figures = {name: round(statistics.median(row[name] for row in same), 3) for name in COLUMNS[2:]}
        found.append({"over": kind[0], "loop": kind[1], **figures, "runs": len(same)})
    return found


def _check(data: Path, halls: Sequence[Hall], options: argparse.Namespace, report: dict[str, Any]) -> None:
    known = {name: each for hall in halls for name, each in hall.players.known.items()}
    moved: dict[str, int] = {}
    if options.mode == "persistent":
        for hall in halls:
            for player in hall.players.players:
                moved.setdefault(player.agent_id, 0)
            for agent_id, change in hall.players.moved.items():
                moved[agent_id] += change
    books = trio.run(audit, data, known, moved, POINTS)
    report["errors"] += books.wrong[:10]
    report["checked"] = {
        "sessions": books.sessions,
        "events": books.events,
        "artifacts": books.artifacts,
        "ledger_sum": books.ledger_sum,
    }


def _show(report: dict[str, Any]) -> None:
    for name, value in report["about"].items():
        print(f"- {name}: {value}")
    if report["rows"]:
        print(
            table(
                [*report["rows"], *(row for row in report["medians"] if row["runs"] > 1)], (*COLUMNS, "runs")
            )
        )
    if "open" in report:
        print(table(report["open"]))
    if "checked" in report:
        print(", ".join(f"{name}: {value}" for name, value in report["checked"].items()))
    print(f"write + fdatasync alone: p50 {report['fsync']['p50_ms']} ms, p99 {report['fsync']['p99_ms']} ms")
    for each in report["errors"]:
        print(f"FAILED: {each}")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.arena", description=summary)
    parser.add_argument(
        "--over", nargs="+", choices=OVER, default=list(OVER), help="the doors; one after the other"
    )
    parser.add_argument("--sessions", type=int, default=64, metavar="M", help="played at once")
    parser.add_argument("--connections", type=int, default=64, metavar="N")
    parser.add_argument("--agents", type=int, default=16, metavar="N")
    parser.add_argument("--mode", choices=("simulation", "persistent"), default="simulation")
    parser.add_argument("--open", type=int, default=0, metavar="N", help="have so many sessions open")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    parser.add_argument("--runs", type=int, default=1, metavar="N")
    parser.add_argument(
        "--rate", default="", metavar="R", help="open loop: actions/s, or N%% of the closed loop"
    )
    parser.add_argument("--json", action="store_true", help="the last line of stdout is one object")
    options = parser.parse_args(arguments)
    options.connections = min(options.connections, options.open or options.sessions)
    if options.connections < 1 or options.agents < 1 or options.seconds <= 0:
        parser.error("there must be a session, an agent and some time")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
