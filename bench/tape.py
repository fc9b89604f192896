"""What does the operators' tape cost? With nobody who watches, and with operators who do.

`python -m bench.tape` gives the hub commits of 32 envelopes, each with its events for two streams that nobody reads,
and measures what the tape adds to each envelope: while nobody watches, with one watch, and with as many as there may
be. Then what one glance costs: the newest 40 envelopes read and made into a page's lines, which happens four times a
second at most, for each page that is open, however much is said (looking up the names of new conversations' desks comes
on top: eight of them a glance at most). CPU time, medians of rounds that take the cases in turn.

    python -m bench.tape --json
"""

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import trio

from bench.kit.machine import about
from bench.kit.report import finish, table
from broker.actors.streams import Hub
from broker.actors.tape import COALESCE_S, ROWS, WATCHERS, TapeWatch
from broker.clock import VirtualClock
from broker.config import Streams
from broker.store.memory import MemoryStore
from broker.store.port import Event
from gateways.console.site import template_shell

BATCH: Final = 32
"""Envelopes of one commit."""
RATE: Final = 5000
"""Envelopes a second for which a page's share of a core is told."""


def commits() -> list[Event]:
    """What one commit tells: BATCH envelopes, each on two streams."""
    found = []
    for n in range(BATCH):
        text = (
            b'{"chain":"%b","conv":"%016x","envelope":{"body":{"px":"1.0842"},"conv":"%016x","from":"%b","n":2,'
            b'"prev_sig":"%b","to":"%b","ts":1782345678,"type":"QUOTE"},"n":2,"sig":"%b"}'
            % (b"c" * 64, n, n, b"a" * 64, b"d" * 128, b"b" * 64, b"e" * 128)
        )
        found += [Event(f"pk:{who}", n, "env", who == "a", text, 1_782_345_678_000) for who in "ab"]
    return found


def per_envelope(committed: Callable[[Sequence[Event]], None], count: int) -> float:
    """CPU microseconds an envelope."""
    events = commits()
    gc.collect()
    began = time.process_time()
    for _ in range(count):
        committed(events)
    return (time.process_time() - began) * 1e6 / count / BATCH


def watching(hub: Hub, count: int) -> list[TapeWatch]:
    """So many watches of the tape."""
    found = [hub.tape.watch() for _ in range(count)]
    return [each for each in found if isinstance(each, TapeWatch)]


async def glances(hub: Hub, count: int) -> float:
    """CPU microseconds of one glance, made into a page's lines."""
    shell = template_shell()
    watch = watching(hub, 1)[0]
    spent = 0.0
    for _ in range(count):
        hub.committed(commits())
        hub.committed(commits())
        watch._due = -1.0  # at once: only what it costs is asked here
        began = time.process_time()
        glance = await watch.take()
        values = {"lines": glance.rows, "missed": glance.count, "name": lambda conv, pk: pk[:8]}
        shell.render("tape.html", values)
        spent += time.process_time() - began
        assert (glance.count, len(glance.rows)) == (2 * BATCH, ROWS)
    watch.close()
    return spent * 1e6 / count


def measure(rounds: int, count: int) -> list[dict[str, Any]]:
    """The medians, by case."""
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        hub = Hub(MemoryStore(), Streams(), VirtualClock(0))
        without = per_envelope(partial(_without_tape, hub), count)
        found.setdefault("nobody watches", []).append(per_envelope(hub.committed, count) - without)
        for watchers in (1, WATCHERS):
            made = watching(hub, watchers)
            name = f"{watchers} watching"
            found.setdefault(name, []).append(per_envelope(hub.committed, count) - without)
            for each in made:
                each.close()
        found.setdefault("a glance", []).append(trio.run(glances, hub, max(1, count // 40)))
    medians = {name: statistics.median(values) for name, values in found.items()}
    share = (medians["1 watching"] * RATE + medians["a glance"] / COALESCE_S) / 1e4
    what = {
        "nobody watches": "an envelope more than without any tape",
        "1 watching": "the same with one watch",
        f"{WATCHERS} watching": f"the same with {WATCHERS}, as many as there may be",
        "a glance": f"{ROWS} lines read and rendered; one page at {RATE} envelopes/s takes {share:.1f} % of a core",
    }
    return [{"case": name, "us": round(medians[name], 3), "what": what[name]} for name in found]


def _without_tape(hub: Hub, events: Sequence[Event]) -> None:
    """Hub.committed as it was before there was a tape."""
    topics = hub._topics
    batches: dict[str, list[Event]] = {}
    for event in events:
        if event.stream in topics:
            batches.setdefault(event.stream, []).append(event)
    for stream, batch in batches.items():
        topics[stream].hand(batch)
    hub.convs.committed(events)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit code is 0."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog="python -m bench.tape", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=7, help="medians of so many (7)")
    parser.add_argument("--count", type=int, default=4000, help="commits of each case in each round (4000)")
    parser.add_argument("--json", action="store_true", help="the last line of stdout is one object")
    options = parser.parse_args(given)
    report: dict[str, Any] = {
        "figures": measure(options.rounds, options.count),
        "about": about("bench.tape", given, ("trio", "msgspec")),
        "ok": True,
    }
    print(table(report["figures"]))
    finish(report, as_json=options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
