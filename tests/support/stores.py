"""A store on disk with calls of every phase in it, and how to spoil a copy of it."""

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from broker.store import sqlite_file
from broker.store.sqlite import SqliteStore
from tests.support.broker import open_bench

_kept: list[tuple[tempfile.TemporaryDirectory[str], dict[str, str]]] = []


async def dealt(directory: Path) -> dict[str, str]:
    """A closed store with calls in it: phase → conv. "wire": ended by the wire, "declined": at n = 1.

    It is made once in a process, and copied.
    """
    if not _kept:
        place = tempfile.TemporaryDirectory(prefix="turret-dealt-")
        _kept.append((place, await _deal(Path(place.name) / "data")))
    place, convs = _kept[0]
    shutil.copytree(Path(place.name) / "data", directory)
    return convs


async def _deal(directory: Path) -> dict[str, str]:
    store = SqliteStore(directory, hop="inline")
    try:
        async with open_bench(store=store) as bench:
            caller, called = await bench.open("ALFA"), await bench.open("BRAV")
            lines = {"wire": await bench.connect(caller, called)}
            for name in ("declined", "ringing"):
                lines[name] = await bench.dial(caller, called)
            await lines["declined"].send("END", {"reason": "declined"})
            for name in ("open", "ended"):
                lines[name] = await bench.connect(caller, called)
                for type in ("RFQ", "QUOTE", "HIT"):
                    await lines[name].send(type, {"px": "1.0842"})
            await lines["ended"].send("END", {"reason": "done"})
            for _ in range(6):  # the ninth that is open has the wire end the oldest
                await bench.connect(caller, called)
            return {name: line.conv for name, line in lines.items()}
    finally:
        await store.aclose()


def spoiled(directory: Path, *statements: str, values: tuple[Any, ...] = (), sums: bool = False) -> Path:
    """A copy of a closed store in which these statements were run; the first one takes the values.

    Sums over rows are taken away unless `sums`: what somebody did who knows them is found all the same.
    """
    copy = directory.with_name(f"{directory.name}-spoiled")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory, copy)
    path = copy / sqlite_file.FILE
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for number, sql in enumerate(statements):
            db.execute(sql, values if number == 0 else ())
        for table in () if sums else ("text", "document", "remembered"):
            db.execute(f"UPDATE {table} SET sum = NULL")
    return path
