"""What does a broker do with three times the load that it can sustain?

`python -m bench.overload` finds what the broker sustains (closed loop, 64 conversations) and how late it then is (open
loop at a part of that), offers three times as much for some seconds, and then the first load again. It tells how soon
refusals came, how late what was accepted was, what memory it took, and when the broker was itself again. The load is
open: each envelope falls due at its time. Where its conversation still waits for an answer it is the same request that
is due, and nothing is sent; where it was refused the same bytes are sent again. At the end all that was acknowledged is
read back and proven.

    python -m bench.overload --json
    python -m bench.overload --times 5 --seconds 10

The targets: p99 of what is accepted under 5 times the normal one, recovery within 5 s. What is missed, lost, or
answered otherwise than by an acknowledgement, overloaded or rate_limited, is exit code 1. With --json the last line
of stdout is one object.
"""

import argparse
import gc
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from bench.dealers import Field
from bench.kit.machine import about, busy_s, cpu_s, rss_mib
from bench.kit.parties import Dealer, Line, check_transcripts, codes
from bench.kit.report import Lag, finish, percentile, say, table
from bench.kit.run import Measured
from bench.kit.server import Broker, turret
from bench.kit.websocket import READ_BYTES, SILENCE_S, Lost, Refused, control, measure
from broker.config import Settings

CONVERSATIONS: Final = 64
SHARE: Final = 0.7
"""Of what is sustained: the load whose p99 is the normal one; the best of three runs, since neighbours only add."""
LATER_TIMES: Final = 5.0
"""How many times the normal p99 what is accepted may take."""
RECOVERY_S: Final = 5.0
REFUSAL_MS: Final = 100.0
"""Within this a refusal is quick."""
GROWTH_MIB: Final = 200.0
"""Memory that an overload may take, beside what was there."""
BEFORE_S: Final = 2.0
"""Of the normal load on the same conversations, before the overload; later twice its p99 is recovered."""
PROBE_S: Final = 0.5
LOOK_S: Final = 0.2
_TAKEN: Final = frozenset({"overloaded", "rate_limited"})
_ID: Final = b'{"jsonrpc":"2.0","id":'


class _Data(msgspec.Struct):
    code: str
    retry_after_ms: int | None = None


class _Error(msgspec.Struct):
    data: _Data


class _Answer(msgspec.Struct):
    id: int
    error: _Error | None = None


class Talk:
    """A conversation under overload: its next envelope, and whether it waits for an answer."""

    __slots__ = ("line", "next", "sent_at")

    def __init__(self, line: Line, next_n: int) -> None:
        self.line = line
        self.next = next_n
        self.sent_at = 0.0
        """When the next one was sent; 0: it is not under way."""


class Flood(msgspec.Struct):
    """What came of an overload."""

    accepted_ms: list[float]
    refused_ms: list[float]
    codes: dict[str, int]
    due: int
    held: int
    """Due while the same conversation's last request was still not answered."""
    seconds: float
    spent: bool
    """Whether a conversation ran out of signed envelopes."""


class Storm:
    """Many conversations that are driven whether the broker keeps up or not. Their events are read, not looked at."""

    def __init__(self, url: str, conversations: int, dealers: int) -> None:
        free = codes()
        self.dealers = [Dealer(url, next(free)) for _ in range(dealers)]
        half = dealers // 2
        self.lines = [
            Line(at, self.dealers[at % half], self.dealers[half + (at + at // half) % half])
            for at in range(conversations)
        ]
        self.talks = [Talk(line, 0) for line in self.lines]
        self._by_fd = {each.socket.socket.fileno(): each for each in self.dealers}
        self._flood = Flood([], [], {}, 0, 0, 0.0, False)
        self._now = 0.0

    def open(self) -> None:
        """Dial and pick up, 32 at once."""
        for talk in self.talks:
            talk.line.sign(2)
        for _ in range(2):
            for at in range(0, len(self.talks), 32):
                self._all(self.talks[at : at + 32])

    def sign(self, each: int) -> None:
        """Have so many envelopes ready in each conversation."""
        for talk in self.talks:
            talk.line.rewind(talk.next)
            talk.line.sign(each)

    def drive(self, rate: float, seconds: float, look: Callable[[], None] = lambda: None) -> Flood:
        """`rate` envelopes a second fall due, for so long; then what is under way comes home. Raises Lost.

        `look` is called some times a second.
        """
        flood = self._flood = Flood([], [], {}, 0, 0, seconds, False)
        talks, step = self.talks, 1.0 / rate
        with self._watched() as epoll:
            began = self._now = time.perf_counter()
            end, look_at = began + seconds, began
            while self._now < end:
                if self._now >= look_at:
                    look()
                    look_at += LOOK_S
                while (due := began + flood.due * step) <= self._now and due < end:
                    talk = talks[flood.due % len(talks)]
                    flood.due += 1
                    if talk.sent_at:
                        flood.held += 1
                    elif talk.next >= len(talk.line.frames):
                        flood.spent = True
                    else:
                        self._send(talk)
                    if not flood.due & 15:
                        self._poll(epoll, 0)
                self._poll(epoll, 0.001)
                self._now = time.perf_counter()
            self._home(epoll, talks)
        return flood

    def close(self) -> None:
        """Close the sockets."""
        for dealer in self.dealers:
            dealer.socket.close()

    def _all(self, talks: Sequence[Talk]) -> None:
        """The next envelope of each, again where it is refused, until all were accepted."""
        goals = [talk.next + 1 for talk in talks]
        with self._watched() as epoll:
            while True:
                left = [talk for talk, goal in zip(talks, goals, strict=True) if talk.next < goal]
                if not left:
                    return
                for talk in left:
                    self._send(talk)
                self._home(epoll, left)

    def _home(self, epoll: select.epoll, talks: Sequence[Talk]) -> None:
        while any(talk.sent_at for talk in talks):
            if not self._poll(epoll, SILENCE_S):
                raise Lost(f"no answer for {SILENCE_S:.0f} s")

    @contextmanager
    def _watched(self) -> Iterator[select.epoll]:
        gc.collect()
        gc.disable()
        with select.epoll() as epoll:
            for number, dealer in self._by_fd.items():
                epoll.register(number, select.EPOLLIN)
                dealer.socket.socket.settimeout(0)
            try:
                yield epoll
            finally:
                gc.enable()
                for dealer in self.dealers:
                    dealer.socket.socket.settimeout(SILENCE_S)

    def _send(self, talk: Talk) -> None:
        socket = talk.line.parties[talk.next & 1].socket.socket
        data = talk.line.frames[talk.next]
        talk.sent_at = time.perf_counter()
        try:
            sent = socket.send(data)
        except BlockingIOError:
            sent = 0
        if sent != len(data):  # the broker does not read: its back-pressure is ours
            socket.settimeout(SILENCE_S)
            socket.sendall(data[sent:])
            socket.settimeout(0)

    def _poll(self, epoll: select.epoll, timeout_s: float) -> bool:
        ready = epoll.poll(timeout_s)
        self._now = time.perf_counter()
        for number, _ in ready:
            dealer = self._by_fd[number]
            data = dealer.socket.rest + dealer.socket.socket.recv(READ_BYTES)
            if len(data) == len(dealer.socket.rest):
                raise Lost("the broker closed a connection")
            at = 0
            while at < len(data):
                start, end = measure(data, at)
                if not end or end > len(data):
                    break
                if data[at] == 0x81:
                    self._answer(data[start:end])
                else:
                    dealer.socket.socket.send(control(data[at], data[start:end]))
                at = end
            dealer.socket.rest = data[at:]
        return bool(ready)

    def _answer(self, text: bytes) -> None:
        if not text.startswith(_ID):
            return
        answer = msgspec.json.decode(text, type=_Answer)
        talk, n = self.talks[answer.id >> 24], answer.id & 0xFFFFFF
        if n != talk.next or not talk.sent_at:
            raise Lost(f"{n} of {talk.line.conv} was answered, {talk.next} was due")
        took = (self._now - talk.sent_at) * 1000
        talk.sent_at = 0.0
        if answer.error is None:
            if talk.line.chains[n] not in text:
                raise Lost(f"{n} of {talk.line.conv} has another chain: {text!r}")
            talk.next += 1
            self._flood.accepted_ms.append(took)
            return
        code = answer.error.data.code
        if code not in _TAKEN or not answer.error.data.retry_after_ms:
            raise Lost(f"{n} of {talk.line.conv} was answered {text!r}")
        self._flood.codes[code] = self._flood.codes.get(code, 0) + 1
        self._flood.refused_ms.append(took)


def measure_normal(broker: Broker, seconds: float) -> dict[str, Any]:
    """What a broker sustains, and how late it is with a part of that. Raises Lost, Refused."""
    field = Field(broker.dealing, CONVERSATIONS, CONVERSATIONS // 4)
    measured = Measured(broker, field.load, CONVERSATIONS)
    measured.warm_up(min(1.0, seconds))
    most = measured.closed(seconds)
    rate = most.envelopes_per_s * SHARE
    normal = min((measured.open(rate, seconds) for _ in range(3)), key=lambda run: run.p99_ms)
    field.close()
    say(f"sustained {most.envelopes_per_s:,.0f}/s; at {rate:,.0f}/s p99 {normal.p99_ms:.2f} ms")
    return {
        "sustained_per_s": most.envelopes_per_s,
        "sustained_p99_ms": most.p99_ms,
        "normal_per_s": round(rate, 1),
        "normal_p50_ms": normal.p50_ms,
        "normal_p99_ms": normal.p99_ms,
    }


def measure_overload(broker: Broker, normal: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """More than a broker sustains, then the normal load again. Raises Lost, Refused."""
    storm = Storm(broker.dealing, options.conversations, options.dealers)
    storm.open()
    most, rate = normal["sustained_per_s"], normal["normal_per_s"]
    offered, probes = most * options.times, int(RECOVERY_S / PROBE_S) + 2
    ahead = most * 2.5 * options.seconds + rate * (BEFORE_S + PROBE_S * probes)
    storm.sign(int(ahead / options.conversations) + 8)
    before_ms = percentile(sorted(storm.drive(rate, BEFORE_S).accepted_ms), 0.99)
    say(f"offering {offered:,.0f}/s for {options.seconds:g} s")
    memory, lag, scraped = [rss_mib(broker.pid)], Lag(), broker.metrics()
    cpu, own, all_cpu = cpu_s(broker.pid), time.process_time(), busy_s()
    flood = storm.drive(offered, options.seconds, lambda: memory.append(rss_mib(broker.pid)))
    cpu, own, all_cpu = cpu_s(broker.pid) - cpu, time.process_time() - own, busy_s() - all_cpu
    lag.add(scraped, broker.metrics())
    recovered_s, later_ms, bound_ms = 0.0, 0.0, 2 * max(before_ms, normal["normal_p99_ms"])
    for at in range(probes):
        later = storm.drive(rate, PROBE_S)
        later_ms = percentile(sorted(later.accepted_ms), 0.99)
        flood.spent |= later.spent
        if later.refused_ms or later_ms > bound_ms:
            recovered_s = (at + 1) * PROBE_S
    say("reading transcripts back and proving them")
    counts = [talk.next for talk in storm.talks]
    wrong = check_transcripts(storm.dealers[0].socket, storm.lines, counts)
    storm.close()
    return {
        "errors": wrong,
        "before_p99_ms": round(before_ms, 3),
        **_figures(flood),
        "lag_p99_ms": lag.ms(0.99),
        "broker_cores": round(cpu / options.seconds, 2),
        "load_cores": round(own / options.seconds, 2),
        "others_cores": round(max(0.0, all_cpu - cpu - own) / options.seconds, 2),
        "rss_before_mib": round(memory[0], 1),
        "rss_grown_mib": round(max(memory) - memory[0], 1),
        "recovered_s": recovered_s,
        "recovered_p99_ms": round(later_ms, 3),
    }


def _figures(flood: Flood) -> dict[str, Any]:
    accepted, refused = sorted(flood.accepted_ms), sorted(flood.refused_ms)
    return {
        "due_per_s": round(flood.due / flood.seconds, 1),
        "sent_per_s": round((len(accepted) + len(refused)) / flood.seconds, 1),
        "accepted_per_s": round(len(accepted) / flood.seconds, 1),
        "accepted_p50_ms": round(percentile(accepted, 0.5), 3),
        "accepted_p99_ms": round(percentile(accepted, 0.99), 3),
        "refused": flood.codes,
        "refused_p50_ms": round(percentile(refused, 0.5), 3),
        "refused_p99_ms": round(percentile(refused, 0.99), 3),
        "held": flood.held,
        "spent": flood.spent,
    }


def judge(report: dict[str, Any]) -> list[str]:
    """Which targets were missed."""
    times = report["accepted_p99_ms"] / report["normal_p99_ms"]
    found = [
        (
            times < LATER_TIMES,
            f"p99 of what was accepted is {times:.1f} times the normal one, {LATER_TIMES:g} at most",
        ),
        (report["refused_p99_ms"] <= REFUSAL_MS, f"p99 of refusals is {report['refused_p99_ms']:.0f} ms"),
        (report["recovered_s"] <= RECOVERY_S, f"recovered after {report['recovered_s']:g} s"),
        (report["rss_grown_mib"] <= GROWTH_MIB, f"memory grew by {report['rss_grown_mib']:g} MiB"),
        (not report["spent"], "too few envelopes were signed ahead"),
    ]
    return [text for good, text in found if not good]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; the exit code: 1 where a target was missed, or an answer was wrong."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _options(given)
    report: dict[str, Any] = {"errors": [], "missed": []}
    try:
        with turret() as broker:
            report |= measure_normal(broker, options.measure_s)
        with turret(settings={"actors.late_s": Settings().actors.late_s}) as broker:
            report |= measure_overload(broker, report, options)
        report["missed"] = judge(report)
    except (Lost, Refused, RuntimeError, TimeoutError) as fault:
        report["errors"].append(f"{type(fault).__name__}: {fault}")
    report["ok"] = not report["errors"] and not report["missed"]
    report["about"] = about("bench.overload", given, ("trio", "websockets", "msgspec", "pynacl"))
    for name, value in report["about"].items():
        print(f"- {name}: {value}")
    rows = [
        {"figure": name, "value": value} for name, value in report.items() if isinstance(value, int | float)
    ]
    print(table(rows, ("figure", "value")))
    for text in [*report["errors"], *report["missed"]]:
        print(f"FAILED: {text}")
    finish(report, as_json=options.json)
    return 0 if report["ok"] else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.overload", description=summary)
    parser.add_argument("--times", type=float, default=3.0, metavar="N", help="as much as is sustained (3)")
    parser.add_argument("--seconds", type=float, default=8.0, help="of overload (8)")
    parser.add_argument(
        "--measure-s", type=float, default=4.0, metavar="S", help="of each load before it (4)"
    )
    parser.add_argument("--conversations", type=int, default=1024, metavar="M", help="that are driven (1024)")
    parser.add_argument("--dealers", type=int, default=128, metavar="N", help="with a socket each (128)")
    parser.add_argument("--json", action="store_true", help="the last line of stdout is one object")
    options = parser.parse_args(arguments)
    if options.dealers < 2 or options.dealers % 2 or options.conversations < 1 or options.times <= 0:
        parser.error("there must be a conversation, and an even number of dealers")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
