"""How many signed envelopes does a broker accept in a second, how long does each take, and what does it cost?

`python -m bench.dealers` dials 64 conversations between 16 dealers, each with a desk and a socket of its own on the
dealing port, and measures against V: the Ed25519 verifications that one core does in a second, in the same run. The
broker is a process of its own with default settings but for its limits (--unsafe-limits), on a disk; an envelope
counts when it was acknowledged: durable, and handed to both parties' streams. Every acknowledgement and event is
compared with what was signed; at the end all transcripts are read back and proven offline: what does not hold ends
the benchmark with exit code 1.

    python -m bench.dealers --runs 5 --json          closed loop: each conversation has one envelope under way
    python -m bench.dealers --rate 30%               open loop at 30 % of that: latency from the schedule
    python -m bench.dealers --helpers 1              the same with a verification helper process
    python -m bench.dealers --ws                     over the public port's /ws
    python -m bench.dealers --sweep --plot load.svg  throughput and p99 against offered load
    python -m bench.dealers --noisy                  bystanders' p99 with one dealer that misbehaves, and without
    python -m bench.dealers --ring                   from a call to its ring, on an idle broker

With --json the last line of stdout is one object.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from bench import noisy, ring
from bench.kit import plot
from bench.kit.load import Load
from bench.kit.machine import about, fsync_ms
from bench.kit.parties import Dealer, Line, check_transcripts, codes
from bench.kit.report import finish, say, spread, table
from bench.kit.run import Measured, Run, medians
from bench.kit.server import Broker, turret
from bench.kit.websocket import Lost, Refused

COLUMNS: Final = (
    "loop", "envelopes_per_s", "ratio_to_verify", "ratio_by_cpu", "p50_ms", "p99_ms", "lag_p99_ms",
    "cpu_us_per_envelope", "load_cpu_us_per_envelope", "others_cores", "rss_mib",
)  # fmt: skip
SPREAD: Final = (
    "envelopes_per_s",
    "ratio_to_verify",
    "p50_ms",
    "p99_ms",
    "lag_p99_ms",
    "cpu_us_per_envelope",
)
SWEEP: Final = (0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1)


class Field:
    """The dealers and conversations of a benchmark on one broker, ready to be driven."""

    def __init__(self, url: str, conversations: int, dealers: int) -> None:
        """Connect, open the desks, dial and pick up. Dealers are paired in turn where each has several calls."""
        free = codes()
        self.dealers = [Dealer(url, next(free)) for _ in range(dealers)]
        self.lines = [Line(at, *self._pair(at)) for at in range(conversations)]
        self.load = Load(self.lines)
        self.load.open()

    def _pair(self, at: int) -> tuple[Dealer, Dealer]:
        count = len(self.dealers)
        half = count // 2
        caller = at % half
        called = half + (caller + at // half) % (count - half)
        return self.dealers[caller], self.dealers[called]

    def check(self) -> list[str]:
        """Read all transcripts back and prove them; what is wrong. Raises Lost where the broker has gone."""
        return check_transcripts(self.dealers[0].socket, self.lines, self.load.counts)

    def close(self) -> None:
        """Close the sockets."""
        for dealer in self.dealers:
            dealer.socket.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit code: 1 where data was lost or an answer was wrong."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _options(given)
    if options.plot:
        plot.need()
    try:
        report = _on_broker(options)
    except RuntimeError as fault:  # it did not start, or ended by itself
        say(f"FAILED: {fault}")
        return 2
    report = {**report, "about": about("bench.dealers", given, ("trio", "websockets", "msgspec", "pynacl"))}
    _show(report)
    finish(report, as_json=options.json)
    return 0 if report["ok"] else 1


def _on_broker(options: argparse.Namespace) -> dict[str, Any]:
    with turret(helpers=options.helpers) as broker:
        url = broker.ws if options.ws else broker.dealing
        try:
            report = ring.measure(url) if options.ring else _measure(broker, url, options)
        except (Lost, Refused, TimeoutError) as fault:
            report = {"ok": False, "errors": [f"{type(fault).__name__}: {fault}"]}
        told: dict[str, Any] = {"port": "ws" if options.ws else "dealing", "helpers": options.helpers or 0}
        fsync = fsync_ms(broker.data)
        if report.get("loop") == "open":  # in a closed loop many envelopes share one
            told["fsync_share_of_p50"] = round(fsync.p50_ms / report["p50_ms"], 3)
        return {**report, **told, "fsync": msgspec.to_builtins(fsync)}


def _measure(broker: Broker, url: str, options: argparse.Namespace) -> dict[str, Any]:
    field = Field(url, options.conversations, options.dealers)
    try:
        measured = Measured(broker, field.load, options.conversations)
        most = measured.warm_up(min(1.0, options.seconds))
        say(f"warm-up: {most:,.0f} envelopes/s")
        report: dict[str, Any] = {"conversations": options.conversations, "dealers": options.dealers}
        if options.noisy:
            rate = _rate(options, most) or noisy.RATE
            report |= noisy.measure(measured, url, rate=rate, seconds=options.seconds, runs=options.runs)
        elif options.sweep:
            report |= _sweep(measured, options)
        else:
            report |= _runs(measured, options)
        say("reading transcripts back and proving them")
        wrong = field.check()
        report |= {"ok": not wrong, "errors": wrong, "proven_envelopes": sum(field.load.counts)}
        return report
    finally:
        field.close()


def _runs(measured: Measured, options: argparse.Namespace) -> dict[str, Any]:
    """The same `--runs` times; the medians, and each."""
    found: dict[str, Any] = {}
    if not options.rate or options.rate.endswith("%"):
        runs = _repeat(options.runs, "closed loop", lambda: measured.closed(options.seconds))
        found["closed_loop"] = medians(runs)
    rate = _rate(options, found["closed_loop"]["envelopes_per_s"] if found else 0.0)
    if rate:
        name = f"open loop, {rate:,.0f}/s"
        runs = _repeat(options.runs, name, lambda: measured.open(rate, options.seconds))
    if options.plot:
        plot.distribution(options.plot, {"acknowledgement": measured.latencies}, "Acknowledgement latency")
    told = {"loop": "open", "offered_per_s": round(rate, 1), **found} if rate else {"loop": "closed"}
    values = {name: [getattr(run, name) for run in runs] for name in SPREAD}
    spreads = {name: spread(each) for name, each in values.items()}
    return {**told, **medians(runs), "spread": spreads, "runs": msgspec.to_builtins(runs)}


def _rate(options: argparse.Namespace, most: float) -> float:
    """Envelopes a second that are asked for; 0: a closed loop."""
    text: str = options.rate
    return most * float(text[:-1]) / 100 if text.endswith("%") else float(text or 0)


def _repeat(count: int, name: str, run: Any) -> list[Run]:
    runs = []
    for at in range(count):
        one: Run = run()
        say(
            f"{name}, run {at + 1}/{count}: {one.envelopes_per_s:,.0f}/s, {one.ratio_to_verify:.2f} V, "
            f"p50 {one.p50_ms:.2f} ms, p99 {one.p99_ms:.2f} ms, {one.cpu_us_per_envelope:.0f} us CPU"
        )
        runs.append(one)
    return runs


def _sweep(measured: Measured, options: argparse.Namespace) -> dict[str, Any]:
    """Open loop at rising shares of what the closed loop gave; the report's own figures are the closed loop's."""
    closed = measured.closed(options.seconds)
    rows: list[dict[str, Any]] = []
    for share in SWEEP:
        rate = closed.envelopes_per_s * share
        one = _repeat(1, f"open loop at {share:.0%}", lambda rate=rate: measured.open(rate, options.seconds))[
            0
        ]
        rows.append(
            {"loop": f"open, {share:.0%}", "offered_per_s": round(rate, 1), **msgspec.to_builtins(one)}
        )
    if options.plot:
        plot.against_load(options.plot, rows, "Throughput and latency against load")
    return {"loop": "sweep", **medians([closed]), "sweep": rows}


def _show(report: dict[str, Any]) -> None:
    for name, value in report["about"].items():
        print(f"- {name}: {value}")
    rows = [{**each, "loop": f"run {at}"} for at, each in enumerate(report.get("runs", []), 1)]
    if "closed_loop" in report:
        rows.insert(0, {**report["closed_loop"], "loop": "closed, median"})
    if "envelopes_per_s" in report:
        rows.append({**report, "loop": f"{report['loop']}, median"})
    rows += report.get("sweep", [])
    rows += [{**each, "loop": kind} for kind, each in report.get("noise", {}).items()]
    if rows:
        print(table(rows, COLUMNS))
        print(
            f"V = {report['verifications_per_s']:,.0f} verifications/s on one core; others_cores: CPU of neighbours"
        )
    for name in (
        "fsync_share_of_p50",
        "p99_ratio",
        "added_p50_ms",
        "added_p99_ms",
        "ping_p50_ms",
        "ring_p50_ms",
    ):
        if name in report:
            print(f"{name}: {report[name]}")
    print(f"write + fdatasync alone: p50 {report['fsync']['p50_ms']} ms, p99 {report['fsync']['p99_ms']} ms")
    for each in report["errors"]:
        print(f"FAILED: {each}")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.dealers", description=summary)
    parser.add_argument("--conversations", type=int, default=64, metavar="M")
    parser.add_argument(
        "--dealers",
        type=int,
        metavar="N",
        help="keys with a desk and a socket; default M / 4: a key may hold 8 conversations",
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="medians of so many runs")
    parser.add_argument(
        "--rate", default="", metavar="R", help="open loop: envelopes/s, or N%% of the closed loop"
    )
    parser.add_argument("--ws", action="store_true", help="over the public port's /ws, not the dealing port")
    parser.add_argument(
        "--helpers", type=int, metavar="N", help="verification helper processes (verify.helpers)"
    )
    parser.add_argument("--noisy", action="store_true", help="bystanders beside a dealer that misbehaves")
    parser.add_argument("--ring", action="store_true", help="from a call to its ring, on an idle broker")
    parser.add_argument("--sweep", action="store_true", help="open loop at rising load")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="latency distribution, or the sweep; .png or .svg"
    )
    parser.add_argument("--json", action="store_true", help="the last line of stdout is one object")
    options = parser.parse_args(arguments)
    options.dealers = options.dealers or max(2, options.conversations // 4)
    if options.dealers < 2 or options.conversations < 1:
        parser.error("there must be a conversation and two dealers")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
