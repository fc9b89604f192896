"""A store's file with a bit turned over, or cut short: found at the start or where it is read, named, the rest served.

Each kind of page is damaged in this process, on a virtual clock (DAMAGES says how often), and some on a real one. A
bit in a key of an index can make a thing unfindable: it is then answered as one that is not there, and `turret check`
finds it (docs/decisions/0018-sums-in-rows.md).
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
import trio
from trio.testing import MockClock

from broker.actors.check import Counts, check_store
from broker.store import sqlite_check
from broker.store.port import Fault
from tests.crash.dealers import Pair, linked
from tests.history.model import History
from tests.realfaults.damaged import FILE, Outcome, World, attempt, flip, pages
from tests.realfaults.load import dealing
from tests.support.process import served

DAMAGES: Final = int(os.environ.get("DAMAGES", "2"))
"""Bits that are turned over in each kind of page, one after the other."""
INDEXES: Final = frozenset({"sqlite_autoindex_log_1", "sqlite_autoindex_stream_1", "sqlite_autoindex_facet_1"}) | {
    "document_name", "mark_value", "mark_document", "mark", "log_run", "stream_run", "log", "stream", "facet",
    "sqlite_schema",
}  # fmt: skip
"""Where a bit can make a thing unfindable."""
UNFINDABLE: Final = ("not the truth", "unknown_conv", "unknown_desk", "not_a_party", "conflict", "code_taken")


def run(function: Callable[..., Any], *arguments: Any) -> Any:
    return trio.run(function, *arguments, clock=MockClock(autojump_threshold=0))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A store with something in it, closed."""
    made = World(tmp_path_factory.mktemp("world") / "store")
    run(made.fill)
    return made


@pytest.mark.requirement("faults.damage")
@pytest.mark.timeout(60 + 6 * DAMAGES)
def test_a_turned_over_bit_is_found_or_harms_nothing(world: World, tmp_path: Path) -> None:
    chance = Random(5)
    kinds = pages(world.folder / FILE)
    assert {"leaf", "internal", "overflow"} == {kind for _, kind in kinds}
    outcomes = []
    for (name, kind), numbers in kinds.items():
        for number in range(DAMAGES):
            place = (chance.choice(numbers), chance.choice((chance.randrange(8), chance.randrange(8, 4096))))
            folder = tmp_path / f"{name}-{kind}-{number}"
            flip(world.copy(folder), *place, chance.randrange(8))
            outcome: Outcome = run(attempt, world, folder)
            expected = UNFINDABLE if name in INDEXES else ()
            wrong = [each for each in outcome.wrong if not each.endswith(expected or ("\0",))]
            assert wrong == [], (name, kind, place)
            outcomes.append(outcome)
    found = sum(bool(each.start or each.codes["unavailable"]) for each in outcomes)
    assert found > len(outcomes) / 10, "the damages are too harmless to tell anything"


def found_by_check(file: Path) -> list[Fault]:
    """What `turret check` says of a store's file."""
    with sqlite_check.opened(file) as (snapshot, faults):
        steps = check_store(snapshot, Counts()) if snapshot is not None else iter(())
        return [*faults, *(step for step in steps if isinstance(step, Fault))]


@pytest.mark.requirement("faults.damage", "store.check-pages")
def test_a_check_finds_what_a_bit_in_an_index_made_unfindable(world: World, tmp_path: Path) -> None:
    chance = Random(7)
    whole = world.folder / FILE
    assert found_by_check(whole) == []
    with closing(sqlite3.connect(whole)) as db:
        leaves = db.execute(
            "SELECT name, pageno FROM dbstat WHERE pagetype = 'leaf' AND ncell > 0 AND name IN"
            " (SELECT name FROM sqlite_schema WHERE type = 'index' UNION VALUES ('log_run'), ('stream_run'))"
        ).fetchall()
    assert {"document_name", "mark_value", "sqlite_autoindex_log_1", "log_run"} <= {
        name for name, *_ in leaves
    }
    for name, page in leaves:
        # Keys and what they lead to lie at the page's end; the last entry's last byte is a row's number.
        for byte in (4095, 4095 - chance.randrange(1, 12)):
            folder = tmp_path / f"{name}-{page}-{byte}"
            flip(world.copy(folder), page, byte, 0)
            assert found_by_check(folder / FILE), (name, page, byte)


@pytest.mark.requirement("faults.damage")
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.7, 0.95])
def test_a_store_that_was_cut_short_is_found(world: World, tmp_path: Path, kept: float) -> None:
    file = world.copy(tmp_path / "store")
    os.truncate(file, int(file.stat().st_size * kept) // 512 * 512)
    outcome: Outcome = run(attempt, world, tmp_path / "store")
    assert outcome.start or outcome.codes["unavailable"]
    assert [each for each in outcome.wrong if not each.endswith(UNFINDABLE)] == []


@pytest.mark.requirement("faults.damage", "faults.named")
async def test_a_real_process_names_the_damage_and_serves_the_rest(tmp_path: Path) -> None:
    history, data = History(), tmp_path / "data"
    pairs = [Pair(number, history, Random(number)) for number in range(3)]
    async with served(data) as broker:
        async with dealing(broker, pairs):
            with trio.fail_after(20):  # a loaded machine takes its time
                while min(max(map(len, pair.acked.values()), default=0) for pair in pairs) < 4:  # noqa: ASYNC110
                    await trio.sleep(0.01)
        assert await broker.stop() == 0
    [bad, *good] = [max(pair.acked, key=lambda conv: len(pair.acked[conv])) for pair in pairs]
    with closing(sqlite3.connect(data / FILE)) as db:
        of_log = "(SELECT id FROM log WHERE name = ?)"
        statement = f"UPDATE text SET data = replace(data, ?, 'CHAX') WHERE n = 2 AND log = {of_log}"
        assert db.execute(statement, ("CHAT", f"conv:{bad}")).rowcount == 1
        db.commit()
    async with served(data) as broker, linked(broker) as link:
        refused = await link.ask("read_conv", {"conv": bad, "limit": 500})
        assert refused["data"]["code"] == "unavailable"
        for conv in good:
            assert (await link.ask("read_conv", {"conv": conv, "limit": 500}))["rows"]
        words = broker.errors.read_text()
        assert "can't read: row 2 of log" in words
        assert bad not in words
        async with dealing(broker, pairs[1:]):
            before = sum(len(pair.acked) for pair in pairs)
            with trio.fail_after(20):
                while sum(len(pair.acked) for pair in pairs) == before:  # noqa: ASYNC110  # sockets of another library
                    await trio.sleep(0.01)
