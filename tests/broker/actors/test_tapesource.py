"""A tape that the broker fetches: all of it or nothing, one at a time, in turns."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import trio

from broker.actors import tapesource
from broker.actors.tapestore import Finish
from broker.app import Missed
from broker.core.tapes import catalog
from broker.core.tapes.csvfile import CsvReader, read_csv
from broker.core.tapes.tape import Tape
from tests.support.broker import Bench, code
from tests.support.imports import URL, Files, csv
from tests.support.operators import OPERATOR

END = partial(Finish, title="a day", licence="CC0-1.0", price={"free": True})


def reader() -> CsvReader:
    return CsvReader(instrument="EURUSD", tick="0.00001")


async def bring(bench: Bench) -> Any:
    return await bench.broker._services.tape_source.bring(URL, (), reader(), END)


async def entries(bench: Bench) -> int:
    return len((await bench.call("list_tapes", OPERATOR))["entries"]) - 4


@pytest.mark.requirement("tape.source-import")
async def test_what_is_fetched_is_the_tape_of_the_file(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    monkeypatch.setattr(catalog, "PART", 200)
    monkeypatch.setattr(tapesource, "PIECE", 37)
    Files(bench, csv(400))
    told = list[tuple[int, int]]()

    async def tell(done: int, whole: int) -> None:
        told.append((done, whole))

    entry = await bench.broker._services.tape_source.bring(URL, (), reader(), END, told=tell)
    assert 10 <= len(told) <= tapesource.TOLD
    assert told == sorted(told)
    assert {whole for _, whole in told} == {len(csv(400))}
    plain = read_csv(csv(400), instrument="EURUSD", tick="0.00001")
    assert isinstance(plain, Tape)
    assert (entry.ref, entry.ticks, entry.title) == (plain.ref(), 400, "a day")
    assert (await bring(bench)).index == entry.index, "it is there already"
    assert await entries(bench) == 1


@pytest.mark.requirement("tape.source-import", "tape.source-refused")
@pytest.mark.parametrize(
    ("body", "reason", "line"),
    [
        (csv(40, "1,2\n"), "line", 42),
        (csv(40)[:-9], "line", 41),
        (b"", "line", 0),
        (b"<!doctype html>", "line", 1),
        (csv(1), "line", 2),
        (csv(1, "1772443799000,1.08,1.09\n"), "line", 3),
        (b"time,bid,ask\n1960-01-01T00:00:00Z,1,1\n1960-01-01T00:00:01Z,1,1\n", "line", 0),
        (Missed("status", 404), "status", None),
    ],
)
async def test_what_is_no_tape_is_refused_and_nothing_is_written(
    bench: Bench, body: bytes | Missed, reason: str, line: int | None
) -> None:
    Files(bench, body)
    refused = await bring(bench)
    assert (refused.detail["reason"], refused.detail.get("line")) == (reason, line), refused.message
    assert (await entries(bench), await bench.store.due("tape", "due", 2**60)) == (0, [])


class Waits:
    """A source that takes its time."""

    def __init__(self, bench: Bench) -> None:
        self.asked, self.go = trio.Event(), trio.Event()
        bench.broker._services.tape_source._source = self

    async def fetch(
        self, url: str, headers: Sequence[tuple[str, str]], *, most: int, patience_s: float
    ) -> bytearray | Missed:
        self.asked.set()
        await self.go.wait()
        return bytearray(csv())


@pytest.mark.requirement("tape.source-one")
async def test_one_is_fetched_at_a_time_and_whoever_leaves_makes_room(
    bench: Bench, autojump_clock: object
) -> None:
    slow = Waits(bench)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bring, bench)
        await slow.asked.wait()
        with trio.fail_after(5):
            second = await bring(bench)
        assert (code(second), second.detail["retry_after_ms"] > 0) == ("overloaded", True)
        nursery.cancel_scope.cancel()
    slow.go.set()
    assert (await bring(bench)).index == 100


@pytest.mark.requirement("tape.source-one")
async def test_without_a_way_out_nothing_is_fetched(bench: Bench) -> None:
    assert (await bring(bench)).detail["reason"] == "sources"


@pytest.mark.requirement("tape.source-one")
async def test_it_is_read_in_turns_of_the_mill(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tapesource, "PIECE", 100)
    Files(bench, csv(60))
    mill, turns, done = bench.broker._services.mill, list[str](), trio.Event()
    turn = mill.turn
    monkeypatch.setattr(mill, "turn", lambda who: turns.append(who) or turn(who))

    async def import_it() -> None:
        await bring(bench)
        done.set()

    async with trio.open_nursery() as nursery, turn("ag_x"):
        nursery.start_soon(import_it)
        await trio.testing.wait_all_tasks_blocked()
        assert (mill.waiting, done.is_set()) == (1, False)
    assert done.is_set()
    assert len(turns) > len(csv(60)) // 100
