"""What does a socket cost that nobody uses: how much memory and CPU, and how long does it take to connect?

`python -m bench.idle` opens 10,000 WebSockets on the dealing port, one after the other, each by a key of its own that
proves itself and follows its stream, as a dealer's does; then, on another broker, as many that only connect. It lets
them idle for a little longer than the broker's ping interval, answering pings; asks on every one of them; has some of
them do much at once, and looks at the memory again; and stops the broker under all of them. A socket that was lost,
that got no ping or no right answer ends the benchmark with exit code 1.

    python -m bench.idle --json
    python -m bench.idle --sockets 1000 --kinds dealer --seconds 5

Memory is what the broker's resident set grew by, over the sockets. With --json the last line of stdout is one object.
"""

import argparse
import select
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final

import msgspec

from bench.kit.machine import about, cpu_s, rss_mib
from bench.kit.parties import Dealer
from bench.kit.report import Lag, finish, percentile, say, table
from bench.kit.server import Broker, raise_open_files, turret
from bench.kit.websocket import Lost, Refused, Socket, control, frame, measure, request
from broker.wire.keys import SigningKey

TARGET_KIB: Final = 40.0
SPARE_FILES: Final = 100
"""Files beside the sockets that either process has open."""
FIRST: Final = 20
"""Sockets that are opened before the memory is looked at: what the broker makes once is made then."""
SETTLE_S: Final = 0.5
BURSTS: Final = 500
"""Sockets, at most, that do much at once."""
ASKED: Final = 30
"""Requests of a burst: their answers fill one write of the broker's. A frame of LARGE bytes comes before them."""
LARGE: Final = 30_000
COLUMNS: Final = (
    "kind", "sockets", "kib_each", "kib_after_burst", "connect_p50_ms", "connect_p99_ms", "idle_cpu_percent",
    "idle_lag_p99_ms", "ask_p50_ms", "ask_p99_ms", "stop_s",
)  # fmt: skip


class Figures(msgspec.Struct, kw_only=True):
    """What one kind of sockets cost."""

    kind: str
    sockets: int
    kib_each: float
    """Growth of the broker's resident memory, once it had rested, over the sockets."""
    kib_after_burst: float
    """The same for a socket that did much at once and idles again."""
    connect_p50_ms: float
    """From the first SYN to the last answer: upgrade, hello, and for a dealer the proof and the stream."""
    connect_p99_ms: float
    connects_per_s: float
    connect_cpu_ms: float
    """CPU of the broker for one."""
    idle_cpu_percent: float
    """Of one core, for all of them together."""
    idle_lag_p99_ms: float
    pings: int
    """That the broker sent and that were answered while all idled."""
    ask_p50_ms: float
    """One request on each socket, one after the other."""
    ask_p99_ms: float
    stop_s: float = 0.0
    """From SIGTERM to the broker's end, with all of them open and none closing its side."""


def dealer(broker: Broker) -> Socket:
    """A socket that has proven a key and follows its stream."""
    return Dealer(broker.dealing, "IDLE", key=SigningKey.generate()).socket


def plain(broker: Broker) -> Socket:
    """A socket that has got the hello and has said nothing."""
    return Socket(broker.dealing)


KINDS: Final[dict[str, Callable[[Broker], Socket]]] = {"dealer": dealer, "plain": plain}


class Crowd:
    """Many idle sockets of one kind on one broker."""

    def __init__(self, broker: Broker, kind: str) -> None:
        self.broker = broker
        self.sockets: list[Socket] = []
        self._open = KINDS[kind]

    def open(self, count: int) -> list[float]:
        """Connect so many more, one after the other; ms of each, sorted. Raises Lost, Refused."""
        took: list[float] = []
        for _ in range(count):
            began = time.perf_counter()
            self.sockets.append(self._open(self.broker))
            took.append((time.perf_counter() - began) * 1000)
            if len(self.sockets) % 2000 == 0:
                say(f"{len(self.sockets)} sockets are open")
        return sorted(took)

    def idle(self, seconds: float) -> list[int]:
        """Answer pings for so long; how many came on each socket. Raises Lost where anything else comes."""
        pings = [0] * len(self.sockets)
        end = time.perf_counter() + seconds
        with select.epoll() as epoll:
            at = {each.socket.fileno(): number for number, each in enumerate(self.sockets)}
            for number in at:
                epoll.register(number, select.EPOLLIN)
            while (left := end - time.perf_counter()) > 0:
                for number, _ in epoll.poll(left):
                    pings[at[number]] += attend(self.sockets[at[number]])
        return pings

    def ask(self) -> list[float]:
        """One request on each, one after the other; ms of each, sorted. Raises Lost, Refused."""
        took: list[float] = []
        for each in self.sockets:
            began = time.perf_counter()
            answer = each.ask("ping", {})
            took.append((time.perf_counter() - began) * 1000)
            if "time" not in answer:
                raise Lost(f"a ping was answered {answer}")
        return sorted(took)

    def burst(self, count: int) -> None:
        """Have `count` sockets do much at once: a large frame that is refused, and ASKED requests behind it."""
        asked = b"".join(frame(request(id, "wire_info", {})) for id in range(1, ASKED + 1))
        for each in self.sockets[:count]:
            each.socket.sendall(frame(request(0, "x" * LARGE, {})) + asked)
            answers = {answer["id"]: answer for answer in (each.receive() for _ in range(ASKED + 1))}
            told = [id for id, answer in answers.items() if answer.get("result", {}).get("wire")]
            if sorted(told) != list(range(1, ASKED + 1)) or "error" not in answers[0]:
                raise Lost(f"of {ASKED} requests in one write {len(told)} were answered")

    def close(self) -> None:
        """Close all of them."""
        for each in self.sockets:
            each.close()


def attend(socket: Socket) -> int:
    """Take what has come on an idle socket, and answer it; how many pings it was. Raises Lost for anything else."""
    data = socket.rest + socket.socket.recv(4096)
    pings = at = 0
    if not data:
        raise Lost("the broker closed an idle connection")
    while at < len(data):
        start, end = measure(data, at)
        if not end or end > len(data):
            break
        socket.socket.sendall(control(data[at], data[start:end]))
        pings += 1
        at = end
    socket.rest = data[at:]
    return pings


def measure_kind(kind: str, count: int, seconds: float, ping_s: float) -> Figures:
    """A broker of its own, and `count` sockets of this kind on it. Raises Lost, Refused."""
    with ExitStack() as stack:
        broker = stack.enter_context(turret(settings={"streams.ping_s": ping_s}))
        crowd = Crowd(broker, kind)
        try:
            figures = _measure(crowd, kind, count, seconds, ping_s)
            say(f"{kind}: stopping the broker")
            began = time.perf_counter()
            stack.close()
            figures.stop_s = round(time.perf_counter() - began, 2)
            return figures
        finally:
            crowd.close()


def _measure(crowd: Crowd, kind: str, count: int, seconds: float, ping_s: float) -> Figures:
    broker = crowd.broker
    crowd.open(FIRST)
    say(f"{kind}: connecting {count}")
    rss, cpu, began = rss_mib(broker.pid), cpu_s(broker.pid), time.perf_counter()
    connects = crowd.open(count)
    took, connect_cpu = time.perf_counter() - began, cpu_s(broker.pid) - cpu
    crowd.idle(SETTLE_S)
    each = (rss_mib(broker.pid) - rss) * 1024 / count
    say(f"{kind}: {each:.1f} KiB each; idle for {seconds:g} s")
    lag, scraped, cpu, began = Lag(), broker.metrics(), cpu_s(broker.pid), time.perf_counter()
    pings = crowd.idle(seconds)
    idle_cpu = (cpu_s(broker.pid) - cpu) / (time.perf_counter() - began)
    lag.add(scraped, broker.metrics())
    if seconds > ping_s and not min(pings):
        raise Lost(f"{pings.count(0)} sockets got no ping in {seconds:g} s")
    asked = crowd.ask()
    bursts = min(BURSTS, len(crowd.sockets))
    before = rss_mib(broker.pid)
    crowd.burst(bursts)
    crowd.idle(SETTLE_S)
    grown = (rss_mib(broker.pid) - before) * 1024 / bursts
    return Figures(
        kind=kind,
        sockets=count,
        kib_each=round(each, 1),
        kib_after_burst=round(each + grown, 1),
        connect_p50_ms=round(percentile(connects, 0.5), 2),
        connect_p99_ms=round(percentile(connects, 0.99), 2),
        connects_per_s=round(count / took, 1),
        connect_cpu_ms=round(connect_cpu / count * 1000, 3),
        idle_cpu_percent=round(idle_cpu * 100, 2),
        idle_lag_p99_ms=lag.ms(0.99),
        pings=sum(pings),
        ask_p50_ms=round(percentile(asked, 0.5), 3),
        ask_p99_ms=round(percentile(asked, 0.99), 3),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit code: 1 where a socket was lost or an answer was wrong."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _options(given)
    found: list[Figures] = []
    report: dict[str, Any] = {"ok": True, "errors": []}
    for kind in options.kinds:
        try:
            found.append(measure_kind(kind, options.sockets, options.seconds, options.ping_s))
        except (Lost, Refused, OSError) as fault:
            say(f"FAILED: {kind}: {fault}")
            report = {"ok": False, "errors": [*report["errors"], f"{kind}: {fault}"]}
    report |= {"target_kib_each": TARGET_KIB, "seconds": options.seconds, "ping_s": options.ping_s}
    report |= {each.kind: msgspec.to_builtins(each) for each in found}
    report["about"] = about("bench.idle", given, ("trio", "websockets"))
    _show(report, found)
    finish(report, as_json=options.json)
    return 0 if report["ok"] else 1


def _show(report: dict[str, Any], found: Sequence[Figures]) -> None:
    for name, value in report["about"].items():
        print(f"- {name}: {value}")
    if found:
        print(table([msgspec.to_builtins(each) for each in found], COLUMNS))
    for each in found:
        if each.kind == "dealer":
            verdict = "met" if each.kib_each <= TARGET_KIB else "missed"
            print(f"{each.kib_each:g} of at most {TARGET_KIB:g} KiB for an idle dealer's socket: {verdict}")
    for fault in report["errors"]:
        print(f"FAILED: {fault}")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.idle", description=summary)
    parser.add_argument("--sockets", type=int, default=10_000, metavar="N", help="of each kind (10,000)")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--seconds", type=float, default=22.0, help="how long they idle (22)")
    parser.add_argument("--ping-s", type=float, default=20.0, help="the broker's streams.ping_s (20)")
    parser.add_argument("--json", action="store_true", help="the last line of stdout is one object")
    options = parser.parse_args(arguments)
    most = raise_open_files() - SPARE_FILES
    if not 1 <= options.sockets <= most:
        parser.error(f"a process may open {most:,} sockets here (ulimit -n): --sockets from 1 to that")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
