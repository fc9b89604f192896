"""What the peers written by us share: judging an envelope, and writing it durably with a group commit.

As a competent user would write it: typed decoding, keys kept, one writer thread that takes all that waits and asks the
disk once for it. Left out, in the peers' favour: canonical form, clock, limits, desks, replays, streams to resume.
"""

import asyncio
import hashlib
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

FILE: Final = "envelopes.sqlite"
SCHEMA: Final = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS envelopes (
    id INTEGER PRIMARY KEY, conv TEXT NOT NULL, n INTEGER NOT NULL, sig TEXT NOT NULL, envelope BLOB NOT NULL,
    UNIQUE (conv, n)
);
"""
INSERT: Final = "INSERT INTO envelopes (conv, n, sig, envelope) VALUES (?, ?, ?, ?)"
Row = tuple[str, int, str, bytes]


class Refused(Exception):
    """The envelope is not taken; the text says why."""


class Envelope(msgspec.Struct, rename={"sender": "from"}, forbid_unknown_fields=True):
    """wire.md, Envelope; the body stays text."""

    body: msgspec.Raw
    conv: str
    sender: str
    n: int
    prev_sig: str
    to: str
    ts: int
    type: str


_envelope: Final = msgspec.json.Decoder(Envelope)


@lru_cache(maxsize=4096)
def _key(pk: str) -> VerifyKey:
    return VerifyKey(bytes.fromhex(pk))


class Heads:
    """The head of each conversation, in memory: what the next envelope must follow."""

    def __init__(self) -> None:
        self._heads: dict[str, tuple[int, str]] = {}

    def accept(self, text: bytes, sig: str) -> Envelope:
        """Judge shape, place in the chain and signature; the head is now this one. Raises Refused."""
        try:
            envelope = _envelope.decode(text)
            head = self._heads.get(envelope.conv)
            if head is None:
                head = (-1, hashlib.sha256(b"cdp:" + envelope.conv.encode()).hexdigest())
            if envelope.n != head[0] + 1 or envelope.prev_sig != head[1]:
                raise Refused("conflict")
            _key(envelope.sender).verify(text, bytes.fromhex(sig))
        except (msgspec.DecodeError, BadSignatureError, ValueError) as fault:
            raise Refused(str(fault)) from None
        self._heads[envelope.conv] = (envelope.n, sig)
        return envelope


class Store:
    """SQLite, WAL, synchronous FULL: `append` returns when the row is on disk. Belongs to the running loop."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._thread = ThreadPoolExecutor(1)
        self._waiting: list[tuple[Row, asyncio.Future[None]]] = []
        self._work = asyncio.Event()
        self._connection: sqlite3.Connection | None = None

    async def run(self) -> None:
        """Write what waits, batch by batch, until cancelled. A failed write is a fault, and ends the service."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._open)
        while True:
            await self._work.wait()
            self._work.clear()
            batch, self._waiting = self._waiting, []
            await loop.run_in_executor(self._thread, self._write, [row for row, _ in batch])
            for _, done in batch:
                if not done.done():
                    done.set_result(None)

    async def append(self, row: Row) -> None:
        """Durable when it returns. Cancelled: the row is written all the same."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((row, done))
        self._work.set()
        await done

    def close(self) -> None:
        """End the writer's thread and close the file. Blocking; nothing may be appended any more."""
        self._thread.submit(self._close)
        self._thread.shutdown()

    def _open(self) -> None:
        self._connection = sqlite3.connect(self._file, isolation_level=None)
        self._connection.executescript(SCHEMA)

    def _write(self, rows: list[Row]) -> None:
        assert self._connection is not None  # opened by the first job of this thread
        self._connection.execute("BEGIN")
        self._connection.executemany(INSERT, rows)
        self._connection.execute("COMMIT")

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
