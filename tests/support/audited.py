"""A directory that a broker has served, with an audit log in it, and what somebody with sqlite3 can do to that."""

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from broker.actors.auditor import HEAD, KEY, ROW, row_id
from broker.app import open_broker
from broker.clock import VirtualClock
from broker.config import Settings
from broker.store import sqlite_file
from broker.store.port import Put, Unit
from broker.store.sqlite import SqliteStore
from broker.store.sums import sum_of
from broker.wire.keyring import Keyring, WireKey
from gateways.headfile import FILE, read_head_file
from gateways.keyfile import write_private
from tests.support.agents import make_agent
from tests.support.audits import WIRE, Kept
from tests.support.broker import START_MS, Bench
from tests.support.registration import OPERATOR

_kept: Final[list[tempfile.TemporaryDirectory[str]]] = []


class InlineHead:
    """The head's file, written without a thread: a virtual clock would jump."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    async def read(self) -> bytes | None:
        return read_head_file(self.directory)

    async def write(self, text: bytes) -> None:
        write_private(self.directory / FILE, text)


async def served(directory: Path) -> Kept:
    """A closed store with six rows; returns them, and what the first three of them were. Made once, and copied."""
    if not _kept:
        place = tempfile.TemporaryDirectory(prefix="turret-audited-")
        _kept.append(place)
        await serve(Path(place.name) / "older", 3)
        shutil.copytree(Path(place.name) / "older", Path(place.name) / "data")
        await serve(Path(place.name) / "data", 3)
    shutil.copytree(Path(_kept[0].name) / "data", directory)
    kept = kept_on_disk(directory)
    kept.older = kept_on_disk(Path(_kept[0].name) / "older")
    return kept


async def serve(directory: Path, count: int, name: str | None = None) -> None:
    """So many more rows, by a broker that is stopped afterwards."""
    store = SqliteStore(directory, hop="inline")
    if not (directory / "wire.key").exists():
        write_private(directory / "wire.key", msgspec.json.encode({"seed": WIRE.seed, "since": 1}) + b"\n")
        doc = msgspec.json.encode({"pks": [WIRE.pk]})
        await store.commit(Unit(puts=(Put("wire", "keys", 0, doc),)))
    clock, keyring = VirtualClock(START_MS), Keyring((WireKey(WIRE, 1),))
    try:
        async with open_broker(Settings(), store, clock, keyring, keeper=InlineHead(directory)) as broker:
            bench = Bench(broker, store, clock)
            agent = str((await make_agent(bench, name or f"Agent {count_rows(directory)}")).agent)
            for n in range(count):
                await bench.call("suspend_agent", OPERATOR, agent_id=agent, reason=f"reason {n}")
    finally:
        await store.aclose()


def count_rows(directory: Path) -> int:
    return len(kept_on_disk(directory).rows)


def kept_on_disk(directory: Path) -> Kept:
    """What somebody sees who opens the file."""
    with closing(sqlite3.connect(directory / sqlite_file.FILE)) as db:
        found = dict(db.execute("SELECT name, data FROM document WHERE kind = ?", (ROW,)))
        head = db.execute("SELECT data FROM document WHERE kind = ?", (HEAD,)).fetchone()
    rows = {int(name): text for name, text in sorted(found.items())}
    return Kept(rows, None if head is None else head[0], read_head_file(directory))


def put_on_disk(kept: Kept, directory: Path) -> None:
    """Write it back as somebody would who knows the sums and the index, and has no key of the wire's."""
    with closing(sqlite3.connect(directory / sqlite_file.FILE, isolation_level=None)) as db:
        texts = {(ROW, row_id(n)): text for n, text in kept.rows.items()}
        if kept.head is not None:
            texts[HEAD, KEY] = kept.head
        there = set(db.execute("SELECT kind, name FROM document WHERE kind IN (?, ?)", (ROW, HEAD)))
        for kind, name in there - texts.keys():
            one = "SELECT id FROM document WHERE kind = ? AND name = ?"
            db.execute(f"DELETE FROM mark WHERE document IN ({one})", (kind, name))
            db.execute("DELETE FROM document WHERE kind = ? AND name = ?", (kind, name))
        for (kind, name), text in texts.items():
            if (kind, name) in there:
                db.execute(
                    "UPDATE document SET data = ?, sum = ? WHERE kind = ? AND name = ?",
                    (text, sum_of(text), kind, name),
                )
            else:
                db.execute(
                    "INSERT INTO document (kind, name, version, data, sum) VALUES (?, ?, 1, ?, ?)",
                    (kind, name, text, sum_of(text)),
                )
    if kept.beside is None:
        (directory / FILE).unlink(missing_ok=True)
    else:
        write_private(directory / FILE, kept.beside)
