"""What a check finds in trials: nothing in what the broker wrote, and each fault of the others."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from broker.actors.check import Counts, check_store
from broker.store import sqlite_check
from broker.store.port import Fault
from broker.store.sqlite import SqliteStore
from tests.support.agents import make_agent
from tests.support.broker import open_bench, tuned
from tests.support.rehearsals import HEAVY, do, opened, started
from tests.support.stores import spoiled

pytestmark = pytest.mark.requirement("trial.session-check")
Json = dict[str, Any]
Change = Callable[[Json], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store, made once: a trial that is over, one that was only opened, one with an operation under way, and
    one with a rejected attempt."""
    path = tmp_path_factory.mktemp("trials") / "data"
    with pytest.MonkeyPatch.context() as monkeypatch:
        trio.run(make, path, monkeypatch, clock=MockClock(autojump_threshold=0))
    return path


async def make(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqliteStore.open(path, hop="inline")
    async with open_bench(tuned(store={"min_free_bytes": 0}), store) as bench:
        ann = await make_agent(bench, "Ann")
        seen = await do(bench, ann, await started(bench, ann), "advance", ticks=200)
        seen = await do(bench, ann, seen, "submit", order={"side": "buy", "size": 5, "tif": "gtc", "at": 1})
        await do(bench, ann, await do(bench, ann, seen, "advance", ticks=2), "finalize")
        await do(bench, ann, await opened(bench, ann), "advance", ticks=1)
        seen = await do(bench, ann, await started(bench, ann, seed=2), "advance", ticks=200)
        await opened(bench, ann)
        monkeypatch.setattr("broker.actors.trial.INLINE", 10_000)
        begun = await do(bench, ann, await started(bench, ann, HEAVY), "advance", ticks=3_000)
        assert "operation" in begun
    await store.aclose()


def found(path: Path, counts: Counts | None = None) -> list[Fault]:
    with sqlite_check.opened(path) as (snapshot, _):
        assert snapshot is not None
        return [step for step in check_store(snapshot, counts or Counts()) if isinstance(step, Fault)]


def damaged(made: Path, table: str, where: str, change: Change) -> list[str]:
    """What a check says of a copy in which the JSON of the first such row was changed."""
    path = spoiled(made)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        sql = f"SELECT id, data FROM {table} WHERE {where} ORDER BY id LIMIT 1"
        row, data = db.execute(sql).fetchone()
        text: Json = json.loads(data)
        change(text)
        db.execute(f"UPDATE {table} SET data = ? WHERE id = ?", (json.dumps(text).encode(), row))
    return [each.message for each in found(path)]


def put(**members: Any) -> Change:
    return lambda text: text.update(members)


def inner(name: str, **members: Any) -> Change:
    return lambda text: text[name].update(members)


TRIAL = "kind = 'trial'"
OVER = "kind = 'trial' AND CAST(data AS TEXT) LIKE '%finalized%'"
OPEN = "kind = 'trial' AND CAST(data AS TEXT) LIKE '%\"seed\":2%'"
DOCUMENTS: tuple[tuple[str, Change, str], ...] = (
    (TRIAL, put(version="x"), "is no trial's"),
    (TRIAL, put(session_id="tr_other"), "says that it is tr_other"),
    (TRIAL, put(agent_id="ag_other"), "agent_id is 'ag_other'"),
    (OPEN, put(version=9), "version is 9"),
    (OPEN, put(events=9), "events is 9"),
    (OPEN, put(fills=9), "fills is 9"),
    (OPEN, put(pnl=9), "pnl is 9"),
    (OPEN, put(opened_at=9), "opened_at is 9"),
    (OPEN, inner("place", tick=9), "place is "),
    (OPEN, lambda text: text["place"]["account"].update(cash=9), "place is "),
    (OPEN, lambda text: text["plan"].update(version=9), "plan is "),
    (OPEN, put(due=9), "is not found by what it says"),
    (OPEN, lambda text: text.pop("due"), "is due though"),
    (OVER, put(over="expired"), "over is 'expired'"),
    (OVER, put(ref="0" * 64), "is not there as it was published"),
    ("kind = 'artifact'", put(more=1), "is not there as it was published"),
)
LOGS = "SELECT id FROM log WHERE name IN (SELECT 'session:' || name FROM document WHERE {})"
EVENTS: tuple[tuple[int, Change, str], ...] = (
    (0, put(type="done"), "no trial's events"),
    (0, inner("entry", seed=7), "entry is "),
    (1, put(type="other"), "no trial's events"),
    (1, inner("call", type="advance", ticks=9), "its calls can't be done on its tape"),
    (2, inner("call", ticks=9), "its fills are not those that its calls come to"),
    (2, put(fills=[]), "its fills are not those that its calls come to"),
    (2, lambda text: text["marks"][3].__setitem__(1, 7), "its marks are not those that its calls come to"),
)


def test_trials_that_the_broker_wrote_hold(made: Path) -> None:
    counts = Counts()
    assert found(spoiled(made), counts) == []
    assert (counts.trials, counts.sessions) == (5, 0)


def test_a_document_that_was_changed_is_named(made: Path) -> None:
    for where, change, said in DOCUMENTS:
        told = damaged(made, "document", where, change)
        assert any(said in each for each in told), (said, told)


def test_an_event_that_was_changed_is_named(made: Path) -> None:
    for n, change, said in EVENTS:
        told = damaged(made, "text", f"log IN ({LOGS.format(OPEN)}) AND n = {n}", change)
        assert any(said in each for each in told), (said, told)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM document WHERE kind = 'artifact'", "is not there as it was published"),
        (f"DELETE FROM document WHERE {OVER}", "is the artifact of a trial that is not there"),
        (f"DELETE FROM document WHERE {OPEN}", "and no document of a session"),
    ],
)
def test_what_is_missing_is_named(made: Path, sql: str, said: str) -> None:
    told = [each.message for each in found(spoiled(made, sql))]
    assert any(said in each for each in told), told
