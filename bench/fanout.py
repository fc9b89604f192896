"""What does it cost to tell many readers, and how long does the last one wait?

`python -m bench.fanout` has one dealer write, over the dealing port, and measures how its events reach followers:

- `one`: all follow one stream, over WebSocket on the dealing port, over the public port's /ws, or over SSE (/rings);
- `many`: it writes to as many desks in turn, each with one follower: every event has an encoding of its own;
- `--channel` instead: the owner of a channel sends, and so many other members follow it (SSE: /channels), each an agent
  with a token of its own.

Where the next event is written when the last follower has this one (`idle`), latencies are looked at: until the
acknowledgement, from there until the last follower (0: it had it before), and of both together (`whole`). Several
under way (`full`) give the events a second and the CPU of each. Every follower must get every event of its stream, once
and in order, or the benchmark fails with exit code 1.

    python -m bench.fanout --json
    python -m bench.fanout --followers 1 100 --over sse --shapes one
    python -m bench.fanout --channel --followers 100 1000 --over ws sse

With --json the last line of stdout is one object.
"""

import argparse
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.channel import Channel, Room, prepare
from bench.fan import Event, Fan
from bench.followers import Follower, SseFollower, WebSocketFollower
from bench.kit import plot
from bench.kit.machine import about, cpu_s, verifications_per_s
from bench.kit.parties import Dealer, Line, check_transcripts, codes
from bench.kit.report import Lag, finish, percentile, say, table
from bench.kit.server import Broker, turret
from bench.kit.websocket import Lost, Refused

OVER: Final = ("dealing", "ws", "sse")
SHAPES: Final = ("one", "many")
CHANNEL: Final = "channel"
UNDER_WAY: Final = 16
"""Events under way in a full run."""
COLUMNS: Final = (
    "shape", "over", "followers", "events_per_s", "deliveries_per_s", "cpu_us_per_event", "cpu_us_per_delivery",
    "cpu_us_per_further", "ack_p50_ms", "idle_p50_ms", "idle_p99_ms", "whole_p50_ms", "whole_p99_ms", "full_p50_ms",
    "full_p99_ms", "lag_p99_ms",
)  # fmt: skip


class Row(msgspec.Struct, kw_only=True):
    """What one shape, one way and one number of followers gave."""

    shape: str
    over: str
    followers: int
    deliveries_per_s: float
    """Events that followers got in a second of a full run."""
    events_per_s: float = 0.0
    """Events that were everywhere in a second of it."""
    cpu_us_per_event: float
    """The broker's CPU in a full run, verifying and storing included."""
    cpu_us_per_delivery: float
    cpu_us_per_further: float | None = None
    """What one more follower costs: against the same with the fewest followers."""
    ack_p50_ms: float
    """With one event under way: from writing until the acknowledgement."""
    idle_p50_ms: float
    """The same, from the acknowledgement until the last follower has it; the load's own reading is in it."""
    idle_p99_ms: float
    whole_p50_ms: float = 0.0
    """The same, from writing until the last follower has it."""
    whole_p99_ms: float = 0.0
    full_p50_ms: float
    full_p99_ms: float
    lag_p99_ms: float
    events: int


class Conversations(Fan):
    """One dealer who writes both sides of some conversations, and the followers of the desks called: all of them of a
    single conversation, or each of one of its own."""

    def __init__(self, writer: Dealer, called: Sequence[Dealer]) -> None:
        """Dial each of them and pick up. Nobody follows yet. Raises Lost."""
        super().__init__(writer.socket)
        self.lines = [Line(at, writer, dealer) for at, dealer in enumerate(called)]
        self.run(0.0, UNDER_WAY, 2 * len(called))

    def counts(self) -> list[int]:
        """Envelopes that were acknowledged in each conversation."""
        return [self._n(at) for at in range(len(self.lines))]

    def _n(self, at: int) -> int:
        """How many envelopes of the conversation `at` are written."""
        return (self.written + len(self.lines) - 1 - at) // len(self.lines)

    def plan(self, most: int) -> deque[Event]:
        """They go round the conversations."""
        lines = self.lines
        for at, line in enumerate(lines):
            line.rewind(self._n(at))
            line.sign(most // len(lines) + 1)
        alone = len(lines) == 1
        plan: deque[Event] = deque()
        for number in range(self.written, self.written + most):
            at, n = number % len(lines), number // len(lines)
            to = self.followers if alone else self.followers[at : at + 1]
            plan.append(Event(at << 24 | n, lines[at].frames[n], lines[at].chains[n], to))
        return plan


class Bench:
    """The rows of one broker. A desk's code is used once."""

    def __init__(self, broker: Broker, seconds: float, v: float) -> None:
        self.latencies: dict[str, list[float]] = {}
        self._broker = broker
        self._seconds = seconds
        self._v = v
        self._codes = codes()

    def row(self, shape: str, over: str, count: int) -> Row:
        """One idle and one full run. Raises Lost, Refused."""
        dealing = self._broker.dealing
        writer = Dealer(dealing, next(self._codes), follow=False)
        called = [
            Dealer(dealing, next(self._codes), follow=False) for _ in range(count if shape == "many" else 1)
        ]
        fan = Conversations(writer, called)
        followers = [self._follower(over, called[at % len(called)]) for at in range(count)]
        fan.follow(followers)
        try:
            row = self._measure(fan, shape, over, count)
            wrong = check_transcripts(writer.socket, fan.lines, fan.counts())
            if wrong:
                raise Lost(wrong[0])
            return row
        finally:
            for follower in followers:
                follower.close()
            for dealer in (writer, *called):
                dealer.socket.close()

    def channel_row(self, over: str, count: int, room: Room) -> Row:
        """The same for a channel with so many followers. Raises Lost, Refused."""
        fan = Channel(room, self._broker)
        members = fan.members(count, over)
        fan.follow(members)
        try:
            return self._measure(fan, CHANNEL, over, count)
        finally:
            for each in members:
                each.close()
            fan.close()

    def _follower(self, over: str, dealer: Dealer) -> Follower:
        if over == "sse":
            return SseFollower(self._broker.http, dealer)
        return WebSocketFollower(self._broker.ws if over == "ws" else self._broker.dealing, dealer)

    def _measure(self, fan: Fan, shape: str, over: str, count: int) -> Row:
        readers = 1 if shape == "many" else count
        most = int(self._v * self._seconds / max(1, readers // 8)) + UNDER_WAY
        idle, _ = fan.run(self._seconds / 2, 1, most)
        acked, whole = sorted(fan.acked), sorted(fan.whole)
        lag, scraped, cpu = Lag(), self._broker.metrics(), cpu_s(self._broker.pid)
        full, took = fan.run(self._seconds, UNDER_WAY, most)
        cpu = cpu_s(self._broker.pid) - cpu
        lag.add(scraped, self._broker.metrics())
        self.latencies[f"{shape}, {over}, {count}"] = idle
        events = len(full)
        return Row(
            shape=shape,
            over=over,
            followers=count,
            deliveries_per_s=round(events * readers / took, 1),
            cpu_us_per_delivery=round(cpu / events / readers * 1e6, 2),
            cpu_us_per_event=round(cpu / events * 1e6, 1),
            ack_p50_ms=round(percentile(acked, 0.5), 3),
            idle_p50_ms=round(percentile(idle, 0.5), 3),
            idle_p99_ms=round(percentile(idle, 0.99), 3),
            events_per_s=round(events / took, 1),
            whole_p50_ms=round(percentile(whole, 0.5), 3),
            whole_p99_ms=round(percentile(whole, 0.99), 3),
            full_p50_ms=round(percentile(full, 0.5), 3),
            full_p99_ms=round(percentile(full, 0.99), 3),
            lag_p99_ms=lag.ms(0.99),
            events=events,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit code: 1 where an event was lost, came twice or out of order."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _options(given)
    if options.plot:
        plot.need()
    rows: list[Row] = []
    errors: list[str] = []
    with prepare(max(options.followers) if options.channel else 0) as (data, room), turret(data) as broker:
        v = verifications_per_s()
        bench = Bench(broker, options.seconds, v)
        for shape, over, count in _plan(options):
            try:
                if room is not None:
                    rows.append(bench.channel_row(over, count, room))
                else:
                    rows.append(bench.row(shape, over, count))
            except (Lost, Refused, OSError) as fault:
                errors.append(f"{shape}, {over}, {count} followers: {fault}")
                say(f"FAILED: {errors[-1]}")
                continue
            say(f"{shape}, {over}, {count}: {rows[-1].deliveries_per_s:,.0f} deliveries/s")
    compare(rows)
    if options.plot:
        plot.distribution(
            options.plot, bench.latencies, "Acknowledgement to the last follower, one event under way"
        )
    report: dict[str, Any] = {
        "ok": not errors,
        "errors": errors,
        "verifications_per_s": round(v, 1),
        "rows": msgspec.to_builtins(rows),
        "about": about("bench.fanout", given, ("trio", "websockets", "hypercorn")),
    }
    _show(report)
    finish(report, as_json=options.json)
    return 0 if report["ok"] else 1


def compare(rows: Sequence[Row]) -> None:
    """Fill in what one more follower costs."""
    for row in rows:
        alike = [each for each in rows if (each.shape, each.over) == (row.shape, row.over)]
        base = min(alike, key=lambda each: each.followers)
        if row.shape != "many" and row.followers > base.followers:
            further = (row.cpu_us_per_event - base.cpu_us_per_event) / (row.followers - base.followers)
            row.cpu_us_per_further = round(further, 2)


def _plan(options: argparse.Namespace) -> list[tuple[str, str, int]]:
    """One stream with each number of followers, and as many desks as the most of them; or a channel with each."""
    if options.channel:
        return [(CHANNEL, over, count) for over in options.over for count in options.followers]
    plan = [("one", over, count) for over in options.over for count in options.followers]
    plan += [("many", over, max(options.followers)) for over in options.over]
    return [each for each in plan if each[0] in options.shapes]


def _show(report: dict[str, Any]) -> None:
    for name, value in report["about"].items():
        print(f"- {name}: {value}")
    if report["rows"]:
        print(table(report["rows"], COLUMNS))
    print(f"V = {report['verifications_per_s']:,.0f} verifications/s on one core")
    for fault in report["errors"]:
        print(f"FAILED: {fault}")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.fanout", description=summary)
    parser.add_argument("--followers", type=int, nargs="+", default=[1, 100], metavar="N", help="(1 100)")
    parser.add_argument("--over", nargs="+", choices=OVER, default=list(OVER))
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument(
        "--channel", action="store_true", help="a channel's followers, in place of the shapes"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="of each full run (1)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="latency distribution; .png or .svg")
    parser.add_argument("--json", action="store_true", help="the last line of stdout is one object")
    options = parser.parse_args(arguments)
    if min(options.followers) < 1 or options.seconds <= 0:
        parser.error("--followers must be at least 1, --seconds more than 0")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
