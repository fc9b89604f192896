"""What does one committed unit of the hot kind cost the CPU, which thread pays it, and how is that beside a signature?

The hot unit: a row of 900 bytes appended to one of 64 conversations and told to both parties, nothing else. Measured in
CPU time (a busy machine disturbs it less than the clock), each kind beside verifications made in the same moment:

- `layout`: the statements alone, with the indexes of (log, n) and (stream, position) written at once, as the second
  schema had them: what the embedded store cost before it wrote them later, without any of its checks.
- `writer`: all that the store does, called directly: `stage` is the loop's part, `complete` the thread's.
- `store`: the same through `submit` with the loop, the thread and the ways between them.

`python -m bench.store_cost [--units N] [--json]`. Functions for other benches: `layout`, `writer`, `store`.
"""

import argparse
import gc
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import trio
from nacl import bindings

from bench.kit.report import finish, say, table
from broker.store import sqlite_file
from broker.store.port import Append, Deliver, Unit
from broker.store.sqlite import SqliteStore
from broker.store.sqlite_checkpoint import PAGES
from broker.store.sqlite_writer import Writer

LOGS: Final = 64
TEXT: Final = b"x" * 900
AT: Final = 1_782_345_678_000
SIGNED: Final = 600
"""Bytes under a signature."""
BATCHES: Final = (16, 64)
WARM: Final = 4096
"""Units before the first that counts: the write-ahead log has then grown to its size and is written over."""


class Cost(msgspec.Struct, frozen=True):
    """CPU microseconds a unit; `loop_us` is the part that the loop's thread pays."""

    what: str
    batch: int
    loop_us: float
    thread_us: float
    verify_us: float

    @property
    def ratio(self) -> float:
        """All of it, in verifications."""
        return (self.loop_us + self.thread_us) / self.verify_us


def verification(times: int = 1000) -> float:
    """CPU microseconds of one Ed25519 verification by libsodium."""
    public, secret = bindings.crypto_sign_keypair()
    signed = bindings.crypto_sign(b"x" * SIGNED, secret)
    start = time.process_time()
    for _ in range(times):
        bindings.crypto_sign_open(signed, public)
    return (time.process_time() - start) / times * 1e6


def hot_units(count: int) -> list[Unit]:
    """So many, spread over LOGS conversations."""
    return [
        Unit(
            Append(f"conv:{i % LOGS}", i // LOGS, TEXT, AT),
            (),
            (Deliver(f"pk:{i % LOGS}:a", "env", True), Deliver(f"pk:{i % LOGS}:b", "env")),
        )
        for i in range(count)
    ]


def layout(batch: int, units: int) -> Cost:
    """The second schema's statements for the same rows, `batch` units a transaction."""
    before = verification()
    with _directory() as directory, closing(_second_schema(directory)) as db:
        db.execute("PRAGMA wal_autocheckpoint = 1000")
        stage = commit = 0.0
        for first in range(0, WARM + units, batch):
            if first == WARM:
                stage = commit = 0.0
            numbers = range(first, first + batch)
            start = time.process_time()
            db.execute("BEGIN IMMEDIATE")
            db.executemany(
                "INSERT INTO entry (id, log, n, at, data) VALUES (?, ?, ?, ?, ?)",
                [(i + 1, i % LOGS, i // LOGS, AT, TEXT) for i in numbers],
            )
            db.executemany(
                "INSERT INTO event (stream, position, kind, own, at, entry) VALUES (?, ?, 'env', ?, ?, ?)",
                [(2 * (i % LOGS) + own, i // LOGS, own, AT, i + 1) for i in numbers for own in (1, 0)],
            )
            staged = time.process_time()
            db.execute("COMMIT")
            stage, commit = stage + staged - start, commit + time.process_time() - staged
    return _cost("layout", batch, units, stage, commit, before)


def writer(batch: int, units: int) -> Cost:
    """The store's writer, without the loop: what is staged there, and what is completed in the thread."""
    before = verification()
    with _directory() as directory:
        made = Writer(sqlite_file.connect(sqlite_file.prepare(directory)))
        given = hot_units(WARM + units)
        stage = commit = 0.0
        for first in range(0, WARM + units, batch):
            if first == WARM:
                stage = commit = 0.0
            works = given[first : first + batch]
            start = time.process_time()
            staged = made.stage(works)
            between = time.process_time()
            result = made.complete(staged)
            if made.pages >= PAGES:
                made.checkpoint()
            stage, commit = stage + between - start, commit + time.process_time() - between
            assert not any(result.outcomes)
        made.close()
    return _cost("writer", batch, units, stage, commit, before)


def store(batch: int, units: int) -> Cost:
    """The whole store with its thread: `batch` units submitted at once, the next when all are durable."""
    before = verification()
    with _directory() as directory:
        loop, other = trio.run(_through_the_store, directory, batch, hot_units(WARM + units))
    return _cost("store", batch, units, loop, other, before)


async def _through_the_store(directory: Path, batch: int, units: Sequence[Unit]) -> tuple[float, float]:
    made = SqliteStore(directory)
    made.watch(lambda _: None)
    process, loop = time.process_time(), time.thread_time()
    for first in range(0, len(units), batch):
        done = trio.Event()
        answers: list[BaseException | None] = []
        given = units[first : first + batch]
        if first == WARM:
            process, loop = time.process_time(), time.thread_time()

        def then(
            error: BaseException | None,
            answers: list[BaseException | None] = answers,
            done: trio.Event = done,
            count: int = len(given),
        ) -> None:
            answers.append(error)
            if len(answers) == count:
                done.set()

        for unit in given:
            made.submit(unit, then)
        await done.wait()
        assert not any(answers)
    loop = time.thread_time() - loop
    process = time.process_time() - process
    await made.aclose()
    return loop, process - loop


def _cost(what: str, batch: int, units: int, loop: float, other: float, before: float) -> Cost:
    return Cost(what, batch, loop / units * 1e6, other / units * 1e6, (before + verification()) / 2)


@contextmanager
def _directory() -> Iterator[Path]:
    gc.collect()
    with tempfile.TemporaryDirectory(prefix="turret-store-") as made:
        yield Path(made)


def _second_schema(directory: Path) -> sqlite3.Connection:
    db = sqlite_file.connect(sqlite_file.prepare(directory))
    for name in (
        "text",
        "log_run",
        "stream_run",
        "stream",
        "meta",
        "log",
        "document",
        "facet",
        "mark",
        "remembered",
    ):
        db.execute(f"DROP TABLE {name}")
    db.create_function("new_secret", 0, lambda: b"")
    first, second, *_ = [text for _, text in sqlite_file.schema()]
    db.executescript(first + second)
    return db


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.store_cost", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--units", type=int, default=16_384, help="units of each kind (default 16384)")
    parser.add_argument("--json", action="store_true", help="the last line of stdout is one object")
    options = parser.parse_args(arguments)
    rows: list[dict[str, Any]] = []
    for batch in BATCHES:
        for measure in (layout, writer, store):
            say(f"{measure.__name__}, {batch} units a batch")
            cost = measure(batch, options.units // batch * batch)
            rows.append(
                {
                    "what": cost.what,
                    "batch": cost.batch,
                    "loop_us": round(cost.loop_us, 2),
                    "thread_us": round(cost.thread_us, 2),
                    "all_us": round(cost.loop_us + cost.thread_us, 2),
                    "verify_us": round(cost.verify_us, 2),
                    "ratio_to_verify": round(cost.ratio, 3),
                }
            )
    print(table(rows))
    finish({"units": options.units, "costs": rows}, as_json=options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
