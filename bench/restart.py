"""How soon does a broker with a long history serve again, what does history cost, and what if all come back at once?

`python -m bench.restart` makes a store with a million envelopes between 1,000 dealers (a minute or two), and measures

- the time from the start of `turret serve` until /readyz says yes and a dealing socket is greeted, with the store's
  file out of the system's cache, beside a store with 1,000 envelopes; and the memory of both;
- the same after a SIGKILL in the middle of a busy day, with what was acknowledged before it read back and proven;
- a resume storm: all dealers come back at once, each with a cursor that is 100 events behind. Until the last has
  caught up; every event must be the one that is due, none may be missing and none come twice.

    python -m bench.restart --json
    python -m bench.restart --envelopes 50000 --clients 200 --behind 50

What does not hold ends the benchmark with exit code 1. With --json the last line of stdout is one object.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import trio

from bench.history import Party, make
from bench.kit import plot
from bench.kit.load import Load
from bench.kit.machine import about, cpu_s, disk_directory, rss_mib
from bench.kit.parties import Dealer, Line, check_transcripts, codes
from bench.kit.report import Lag, finish, percentile, say, table
from bench.kit.server import ROOT, Broker, turret
from bench.kit.websocket import Lost, Refused, Socket
from bench.storm import Returning, storm

TARGET_S: Final = 3.0
SMALL: Final = 1_000
"""Envelopes of the store that the large one is compared with."""
CONVERSATIONS: Final = 16
"""That are under way before the SIGKILL."""
SETTLE_S: Final = 0.3


class Start:
    """What starts of one store took: `serving_s` of each, the CPU in it, and the memory (MiB) right after."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.serving_s: list[float] = []
        self.cpu_s: list[float] = []
        self.rss_mib: list[float] = []

    def figures(self) -> dict[str, Any]:
        """The medians."""
        return {
            "start": self.name,
            "serving_s": round(statistics.median(self.serving_s), 3),
            "serving_s_max": round(max(self.serving_s), 3),
            "cpu_s": round(statistics.median(self.cpu_s), 2),
            "rss_mib": round(statistics.median(self.rss_mib), 1),
        }


@contextmanager
def started(data: Path, start: Start) -> Iterator[Broker]:
    """A broker on `data` for the length of the block, its start measured. Raises Lost where it does not serve."""
    forget(data)
    began = time.perf_counter()
    with turret(data) as broker:
        with urllib.request.urlopen(f"{broker.http}/readyz", timeout=10) as answer:
            ready = answer.status == 200
        Socket(broker.dealing).close()
        start.serving_s.append(time.perf_counter() - began)
        start.cpu_s.append(cpu_s(broker.pid))
        if not ready:
            raise Lost("/readyz does not say yes")
        time.sleep(SETTLE_S)
        start.rss_mib.append(rss_mib(broker.pid))
        say(f"{start.name}: serving after {start.serving_s[-1]:.2f} s, {start.rss_mib[-1]:.1f} MiB")
        yield broker


@contextmanager
def killed(data: Path, start: Start) -> Iterator[Broker]:
    """As `started`, and at the end of the block the broker is killed (SIGKILL)."""
    done = False
    try:
        with started(data, start) as broker:
            yield broker
            os.kill(broker.pid, signal.SIGKILL)
            done = True
    except RuntimeError:  # it has ended by itself: so it should, now
        if not done:
            raise


def forget(data: Path) -> None:
    """Put the store's file on the disk and out of the system's cache, as after a reboot."""
    for path in data.glob("turret.db*"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def imports_s() -> float:
    """Seconds that a start takes before the program does anything: the interpreter and its imports."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import gateways.serve"], cwd=ROOT, check=True)
    return time.perf_counter() - began


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All of it, with its data in `folder`. Raises Lost, Refused."""
    small, large, again = (
        Start(f"{SMALL:,} envelopes"),
        Start(f"{options.envelopes:,} envelopes"),
        Start("after SIGKILL"),
    )
    trio.run(partial(make, folder / "small", SMALL, 20, 1))
    imports = []
    for _ in range(options.runs):
        imports.append(imports_s())
        with started(folder / "small", small):
            pass
    say(f"making {options.envelopes:,} envelopes between {options.clients} dealers")
    began = time.perf_counter()
    parties = trio.run(
        partial(make, folder / "large", options.envelopes, options.clients, options.behind, _made)
    )
    made_s = time.perf_counter() - began
    clients: list[Returning] = []
    found: dict[str, Any] = {}
    for at in range(options.runs):
        with killed(folder / "large", large) as broker:
            clients = clients or meet(broker, parties)
            lines, counts = busy(broker, options.seconds, at)
        with started(folder / "large", again) as broker:
            with closing(Socket(broker.dealing)) as reader:
                wrong = check_transcripts(reader, lines, counts)
            if wrong:
                raise Lost(f"after SIGKILL: {wrong[0]}")
            if at == options.runs - 1:
                found = come_back(broker, clients, options)
    starts = [small.figures(), large.figures(), again.figures()]
    return {
        "starts": starts,
        "serving_s": max(starts[1]["serving_s"], starts[2]["serving_s"]),
        "imports_s": round(statistics.median(imports), 3),
        "history_mib": round(starts[1]["rss_mib"] - starts[0]["rss_mib"], 1),
        "made_s": round(made_s, 1),
        "store_mib": round(
            sum(each.stat().st_size for each in (folder / "large").glob("turret.db*")) / 1024**2
        ),
        "storm": found,
    }


def _made(count: int) -> None:
    say(f"{count:,} envelopes are written")


def meet(broker: Broker, parties: Sequence[Party]) -> list[Returning]:
    """Each dealer looks where its stream stands, as it did before the broker went. Raises Lost, Refused."""
    clients = []
    for party in parties:
        dealer = Dealer(broker.dealing, party.code, follow=False, key=party.key)
        clients.append(Returning(party, dealer.socket.ask("follow", {})["head"]))
        dealer.socket.close()
    return clients


def busy(broker: Broker, seconds: float, at: int) -> tuple[list[Line], list[int]]:
    """New conversations under full load for a moment; what must be there afterwards. `at`: the how-manieth time it is.

    Raises Lost, Refused.
    """
    free = islice(codes(), 2 * CONVERSATIONS * at, None)
    lines = [
        Line(number, Dealer(broker.dealing, next(free)), Dealer(broker.dealing, next(free)))
        for number in range(CONVERSATIONS)
    ]
    load = Load(lines)
    load.open()
    load.sign(int(2000 * seconds))
    result = load.closed_loop(seconds)
    say(f"{result.per_s:,.0f} envelopes/s, then SIGKILL")
    for line in lines:
        for party in line.parties:
            party.socket.close()
    return lines, load.counts


def come_back(broker: Broker, clients: Sequence[Returning], options: argparse.Namespace) -> dict[str, Any]:
    """The resume storm, and its figures. Raises Lost."""
    say(f"{len(clients)} clients come back at once, {options.behind} events behind")
    lag, scraped, cpu = Lag(), broker.metrics(), cpu_s(broker.pid)
    with ExitStack() as stack:
        for client in clients:
            stack.callback(client.close)
        took = storm(broker.dealing, clients)
        rss = rss_mib(broker.pid)
    cpu = cpu_s(broker.pid) - cpu
    lag.add(scraped, broker.metrics())
    events = sum(client.got for client in clients)
    greeted = sorted(client.greeted_at * 1000 for client in clients)
    done = sorted(client.done_at * 1000 for client in clients)
    if options.plot:
        plot.distribution(
            options.plot, {"greeted": greeted, "caught up": done}, f"{len(clients)} clients come back at once"
        )
    return {
        "clients": len(clients),
        "events": events,
        "seconds": round(took, 3),
        "events_per_s": round(events / took, 1),
        "greeted_p50_ms": round(percentile(greeted, 0.5), 1),
        "greeted_p99_ms": round(percentile(greeted, 0.99), 1),
        "caught_up_p50_ms": round(percentile(done, 0.5), 1),
        "caught_up_p99_ms": round(percentile(done, 0.99), 1),
        "lag_p99_ms": lag.ms(0.99),
        "cpu_ms_per_client": round(cpu / len(clients) * 1000, 3),
        "rss_mib": round(rss, 1),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit code: 1 where something was lost, came twice or did not serve."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _options(given)
    if options.plot:
        plot.need()
    report: dict[str, Any] = {"ok": True, "errors": []}
    with tempfile.TemporaryDirectory(prefix="turret-bench-", dir=disk_directory()) as folder:
        try:
            report |= measure(Path(folder), options)
        except (Lost, Refused, OSError) as fault:
            say(f"FAILED: {fault}")
            report = {"ok": False, "errors": [str(fault)]}
    report |= {"target_s": TARGET_S, "envelopes": options.envelopes, "behind": options.behind}
    report["about"] = about("bench.restart", given, ("trio", "websockets", "msgspec"))
    _show(report)
    finish(report, as_json=options.json)
    return 0 if report["ok"] else 1


def _show(report: dict[str, Any]) -> None:
    for name, value in report["about"].items():
        print(f"- {name}: {value}")
    if report["ok"]:
        print(table(report["starts"]))
        verdict = "met" if report["serving_s"] <= TARGET_S else "missed"
        print(
            f"serving after {report['serving_s']:g} of at most {TARGET_S:g} s: {verdict}; {report['imports_s']:g} s"
        )
        print(
            f"of it are the interpreter and its imports. History costs {report['history_mib']:g} MiB of memory"
        )
        print(f"(a store of {report['store_mib']:,} MiB, made in {report['made_s']:g} s).\n")
        print(table([report["storm"]]))
    for fault in report["errors"]:
        print(f"FAILED: {fault}")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.restart", description=summary)
    parser.add_argument("--envelopes", type=int, default=1_000_000, metavar="N", help="stored (1,000,000)")
    parser.add_argument(
        "--clients", type=int, default=1_000, metavar="N", help="that come back at once (1,000)"
    )
    parser.add_argument(
        "--behind", type=int, default=100, metavar="N", help="events that each has missed (100)"
    )
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="starts of each kind (3)")
    parser.add_argument("--seconds", type=float, default=0.5, help="of load before each SIGKILL (0.5)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="the storm's distribution; .png or .svg")
    parser.add_argument("--json", action="store_true", help="the last line of stdout is one object")
    options = parser.parse_args(arguments)
    if min(options.envelopes, options.behind, options.runs) < 1 or options.clients < 2:
        parser.error("--envelopes, --behind and --runs must be at least 1, --clients at least 2")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
