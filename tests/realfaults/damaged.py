"""A store with something in it, ways to damage its file, and what a broker must still be on it.

In one process and on a virtual clock, so that hundreds of damages are tried in seconds; a few are tried on a real
process (test_damage.py).
"""

import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import msgspec

from broker.app import Caller
from broker.clock import VirtualClock
from broker.config import Settings, raise_limits
from broker.store.port import NotAStore, SchemaTooNew, Unavailable
from broker.store.sqlite import SqliteStore
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.broker import START_MS, Bench, Line, Party, open_bench

FILE: Final = "turret.db"
SETTINGS: Final = msgspec.structs.replace(Settings(), limits=raise_limits(Settings().limits))
AT_START: Final = (NotAStore, SchemaTooNew, Unavailable, OSError, sqlite3.Error)
"""What `turret serve` makes one clear line of."""


class World:
    """What was written before the damage, and who can go on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = SigningKey.generate()
        self.parties: list[Party] = []
        self.convs: dict[str, list[Any]] = {}
        self.lines: list[tuple[str, int, str, Party, Party]] = []
        self.streams: dict[str, list[str]] = {}
        self.moved: dict[str, Any] = {}
        """A statement that was carried out, to be sent again."""

    async def fill(self) -> None:
        """Six desks and twelve calls, some ended; envelopes of one line and of 8 KiB."""
        store = await SqliteStore.open(self.folder, hop="inline")
        async with open_bench(SETTINGS, store, VirtualClock(START_MS), self.key) as bench:
            self.parties = [
                await bench.open(code) for code in ("AAAA", "BBBB", "CCCC", "DDDD", "EEEE", "FFFF")
            ]
            for number in range(12):
                caller, called = self.parties[number % 6], self.parties[(number + 1 + number // 6) % 6]
                line = await bench.connect(caller, called)
                for n in range(2, 20 + number * 4):
                    await line.send("CHAT", {"text": "x" * (7_000 if n % 9 == 0 else 40 * (n % 5))})
                if number % 3 == 0:
                    await line.send("END")
                else:
                    self.lines.append((line.conv, line.n, line.sig, caller, called))
                self.convs[line.conv] = (await bench.call("read_conv", conv=line.conv, limit=500))["rows"]
            self.moved = self.parties[0].statement(
                "screen_desk", bench.broker.pk, bench.ts, code="AAAA", mode="all", allow=[], deny=["0" * 64]
            )
            answer = await bench.call("screen_desk", **self.moved)
            assert not isinstance(answer, Refusal), answer
            for party in self.parties:
                self.streams[party.code] = await read_stream(bench, party)
        await store.aclose()

    def copy(self, to: Path) -> Path:
        """The store's file, to be damaged."""
        shutil.copytree(self.folder, to)
        return to / FILE


async def read_stream(bench: Bench, party: Party) -> list[str]:
    """All events of a party's stream, as sent; raises Unavailable where it can't be read."""
    reader = await bench.broker.follow(Caller(pk=party.pk), code=party.code, after="0")
    if isinstance(reader, Refusal):
        raise Unavailable(reader.code)
    events: list[str] = []
    async with reader:
        while batch := await reader.take():
            events += [each.params.decode() for each in batch]
    return events


def pages(file: Path) -> dict[tuple[str, str], list[int]]:
    """The pages of a store's file by (table or index, kind)."""
    found: dict[tuple[str, str], list[int]] = {}
    with closing(sqlite3.connect(file)) as db:
        for name, kind, page in db.execute("SELECT name, pagetype, pageno FROM dbstat ORDER BY pageno"):
            found.setdefault((name, kind), []).append(page)
    return found


def flip(file: Path, page: int, byte: int, bit: int) -> None:
    """Turn over one bit of a page (from 1)."""
    with file.open("r+b") as opened:
        opened.seek((page - 1) * 4096 + byte)
        [old] = opened.read(1)
        opened.seek(-1, 1)
        opened.write(bytes([old ^ (1 << bit)]))


class Outcome(msgspec.Struct):
    """What a broker on a damaged store did."""

    start: str = ""
    """Why it did not start; "": it did."""
    wrong: list[str] = msgspec.field(default_factory=list)
    """Answers that are neither the truth nor a refusal, and exceptions."""
    codes: Counter[str] = msgspec.field(default_factory=Counter)


async def attempt(world: World, folder: Path) -> Outcome:
    """Start a broker there and ask it everything."""
    outcome = Outcome()
    try:
        store = await SqliteStore.open(folder, hop="inline")
    except AT_START as error:
        outcome.start = repr(error)
        return outcome
    try:
        async with open_bench(SETTINGS, store, VirtualClock(START_MS + 60_000), world.key) as bench:
            await _ask_all(world, bench, outcome)
    except* Unavailable as error:
        outcome.start = repr(error)
    finally:
        await store.aclose()
    return outcome


async def _ask_all(world: World, bench: Bench, outcome: Outcome) -> None:
    async def ask(what: str, call: Any, right: Any) -> None:
        try:
            answer = await call
        except Unavailable:
            outcome.codes["unavailable"] += 1
            return
        except Exception as error:
            outcome.wrong.append(f"{what}: {error!r}")
            return
        if isinstance(answer, Refusal):
            outcome.codes[answer.code] += 1
            if answer.code not in ("unavailable", "in_doubt"):
                outcome.wrong.append(f"{what}: {answer.code}")
        elif not right(answer):
            outcome.wrong.append(f"{what}: not the truth")
        else:
            outcome.codes["right"] += 1

    for conv, rows in world.convs.items():
        await ask(
            "read_conv",
            bench.call("read_conv", conv=conv, limit=500),
            lambda got, rows=rows: got["rows"] == rows,
        )
        said = {"conv": conv, "sig": rows[3]["sig"], "envelope": rows[3]["envelope"]}
        replay = bench.call("send_env", n=3, from_pk=rows[3]["envelope"]["from"], **said)
        await ask("send_env again", replay, lambda got, rows=rows: got["chain"] == rows[3]["chain"])
        receipt = bench.call("receipt", conv=conv, n=3)
        await ask("receipt", receipt, lambda got, rows=rows: got["receipt"]["chain"] == rows[3]["chain"])
    await ask("screen_desk again", bench.call("screen_desk", **world.moved), lambda got: got["replayed"])
    for party in world.parties:
        await ask(
            "resolve_code",
            bench.call("resolve_code", code=party.code),
            lambda got, p=party: got["pk"] == p.pk,
        )
        await ask("stream", read_stream(bench, party), lambda got, p=party: got == world.streams[p.code])
        proof = party.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 60)
        await ask("list_convs", bench.call("list_convs", **proof), lambda got: len(got["convs"]) == 4)
    for conv, n, sig, caller, called in world.lines:
        line = Line(bench, conv, caller, called, sig)  # type: ignore[arg-type]
        line.n = n
        params = line.next("CHAT", {"after": "the damage"})
        await ask("send_env", bench.call("send_env", **params), lambda got: True)
    await ask(
        "open_desk",
        bench.call(
            "open_desk", **Party("ZZZZ").statement("open_desk", bench.broker.pk, bench.ts, code="ZZZZ")
        ),
        lambda got: True,
    )
