"""Parts that come, and the tape that is seen when all are there: in memory and on disk."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.actors import tapestore
from broker.actors.tapestore import find_imported, imported, read_imported, read_parts
from broker.core.tapes import catalog
from broker.core.tapes.catalog import KIND, LEFT_MS, TapeRow, log_of, parts_of
from broker.core.tapes.tape import Tape
from broker.store.memory import MemoryStore
from broker.store.port import Put, Store, Unavailable, Unit
from broker.store.sqlite import SqliteStore
from broker.store.stored import read_row
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.imports import bring, finish, foreign, send
from tests.support.operators import OPERATOR


@pytest.fixture(params=["memory", "sqlite"])
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    store = await SqliteStore.open(tmp_path / "data", hop="inline")
    try:
        yield store
    finally:
        await store.aclose()


@pytest.fixture
async def bench(kept: Store) -> AsyncIterator[Bench]:
    async with open_bench(tuned(store={"min_free_bytes": 0}), kept) as found:
        yield found


async def listed(bench: Bench) -> list[str]:
    entries = (await bench.call("list_tapes", OPERATOR))["entries"]
    return [each["ref"] for each in entries if each["index"] >= catalog.FIRST]


@pytest.mark.requirement("catalog.import")
async def test_a_tape_is_seen_when_all_of_it_is_there_and_not_before(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "PART", 300)
    tape = foreign()
    parts = await send(bench, tape)
    assert parts > 2
    assert (await listed(bench), await read_imported(bench.store, tape.ref())) == ([], None)
    entry = await finish(bench, tape, parts)
    assert await listed(bench) == [tape.ref()]
    assert (entry["index"], entry["ticks"], entry["price"]) == (100, len(tape), {"free": True})
    found = await read_imported(bench.store, tape.ref())
    assert found is not None
    assert found.content() == tape.content()
    assert await finish(bench, tape, parts, title="another") == entry, "it stays as it is"
    again = await bench.call("send_tape_rows", OPERATOR, ref=tape.ref(), part=0, rows="anything")
    assert again["here"] is True


@pytest.mark.requirement("catalog.broken-import")
async def test_a_broken_import_goes_on_and_its_parts_are_known(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "PART", 300)
    tape = foreign()
    ref, parts = tape.ref(), [part.decode() for part in parts_of(tape)]

    async def part(n: int, rows: str) -> str:
        return code(await bench.call("send_tape_rows", OPERATOR, ref=ref, part=n, rows=rows))

    assert await part(1, parts[1]) == "conflict", "the first one comes first"
    assert [await part(n, parts[n]) for n in (0, 1, 0, 1)] == ["accepted"] * 4
    assert await part(3, parts[3]) == "conflict"
    assert await part(1, "other") == "conflict"
    assert code(await finish(bench, tape, len(parts))) == "conflict"
    assert await part(0, "from the beginning") == "accepted"
    assert await bench.store.entries(log_of(ref, 0)) == [], "what lay there is gone"
    assert [await part(n, rows) for n, rows in enumerate(parts)] == ["accepted"] * len(parts)
    assert (await finish(bench, tape, len(parts)))["ref"] == ref


@pytest.mark.requirement("catalog.broken-import")
async def test_other_bytes_than_the_ref_says_are_not_imported_and_do_not_stay(bench: Bench) -> None:
    tape, other = foreign(), foreign(seed=78)
    await bench.call("send_tape_rows", OPERATOR, ref=tape.ref(), part=0, rows=other.content().decode())
    refused = await finish(bench, tape, 1)
    assert (code(refused), "another hash" in refused.message) == ("bad_request", True)
    assert (await listed(bench), await bench.store.entries(log_of(tape.ref(), 0))) == ([], [])
    assert (await bring(bench, tape))["index"] == 100


@pytest.mark.requirement("catalog.broken-import")
async def test_parts_that_nobody_goes_on_with_are_swept_and_later_ones_are_not(
    autojump_clock: object,
) -> None:
    async with open_bench() as bench:
        old, whole = foreign(), foreign(seed=78)
        await bring(bench, whole)
        await send(bench, old)
        await trio.sleep(LEFT_MS / 1000 - 100)
        assert await bench.store.entries(log_of(old.ref(), 0))
        await trio.sleep(400)
        assert await bench.store.entries(log_of(old.ref(), 0)) == []
        assert await listed(bench) == [whole.ref()]
        assert await bench.store.due(KIND, "due", 2**60) == []


@pytest.mark.requirement("catalog.remove")
async def test_a_removed_tape_is_gone_and_comes_back_under_its_own_index(bench: Bench) -> None:
    first, second = foreign(), foreign(seed=78)
    assert [(await bring(bench, each))["index"] for each in (first, second)] == [100, 101]
    assert await bench.call("remove_tape", OPERATOR, ref=first.ref()) == {"ref": first.ref(), "removed": True}
    assert (await listed(bench), await read_imported(bench.store, first.ref())) == ([second.ref()], None)
    assert await bench.store.entries(log_of(first.ref(), 0)) == []
    assert code(await bench.call("remove_tape", OPERATOR, ref=first.ref())) == "not_found"
    third = foreign(seed=79)
    assert [(await bring(bench, each))["index"] for each in (third, first)] == [102, 100]
    assert [row.index for row in await imported(bench.store)] == [100, 101, 102]


@pytest.mark.requirement("catalog.bound")
async def test_so_many_tapes_are_kept_and_no_more(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tapestore, "IMPORTED", 1)
    first, second = foreign(), foreign(seed=78)
    await bring(bench, first)
    given = {"ref": second.ref(), "part": 0, "rows": second.content().decode()}
    assert code(await bench.call("send_tape_rows", OPERATOR, **given)) == "quota_exceeded"
    await bench.call("remove_tape", OPERATOR, ref=first.ref())
    await bring(bench, second)


@pytest.mark.requirement("catalog.bound")
async def test_two_imports_at_once_do_not_exceed_the_bound(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tapestore, "IMPORTED", 2)
    kept, *both = (foreign(seed=seed) for seed in (77, 78, 79))
    await bring(bench, kept)
    parts = {tape: await send(bench, tape) for tape in both}
    told = list[Any]()
    async with trio.open_nursery() as nursery:
        for tape in both:
            nursery.start_soon(_finish_and_tell, bench, tape, parts[tape], told)
    assert sorted(map(code, told)) == ["accepted", "quota_exceeded"]
    (full,) = (each for each in told if code(each) == "quota_exceeded")
    assert ("turret tape remove" in full.message, full.detail["limit"]) == (True, 2)
    here = await listed(bench)
    assert len(here) == 2
    (left,) = (tape for tape in both if tape.ref() not in here)
    await bench.call("remove_tape", OPERATOR, ref=kept.ref())
    assert (await finish(bench, left, parts[left]))["index"] == 102, "its parts were kept"
    assert code(await finish(bench, left, parts[left])) == "accepted", "one that is here needs no room"


async def _finish_and_tell(bench: Bench, tape: Tape, parts: int, told: list[Any]) -> None:
    told.append(await finish(bench, tape, parts))


@pytest.mark.requirement("catalog.verified")
async def test_a_tape_that_lies_there_otherwise_is_unavailable(bench: Bench) -> None:
    tape = foreign()
    await bring(bench, tape)
    row = await find_imported(bench.store, 100)
    assert row is not None
    assert await read_parts(bench.store, row) == list(parts_of(tape))
    document = await bench.store.get(KIND, tape.ref())
    assert document is not None
    turned = document.doc.replace(b'"turn":0', b'"turn":1')
    await bench.store.commit(Unit(puts=(Put(KIND, tape.ref(), document.version, turned),)))
    found = await read_row(bench.store, TapeRow, KIND, tape.ref())
    assert found is not None
    assert found.turn == 1
    with pytest.raises(Unavailable, match="another hash"):
        await read_imported(bench.store, tape.ref())
