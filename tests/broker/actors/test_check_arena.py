"""What a check finds in the arena: nothing in what the broker wrote, and each fault of the others."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from broker.actors.check import Counts, check_store
from broker.store import sqlite_check
from broker.store.port import Fault
from broker.store.sqlite import SqliteStore
from tests.support.agents import make_agent
from tests.support.arena import call, first_legal, open_session, submit
from tests.support.broker import open_bench, tuned
from tests.support.stores import spoiled

pytestmark = pytest.mark.requirement("arena.check")
Json = dict[str, Any]
Change = Callable[[Json], object]


@pytest.fixture
async def made(tmp_path: Path) -> Path:
    """A closed store: two sessions of one agent's persistent account, one of them over; two simulations, one over and
    one with a rejected attempt."""
    store = await SqliteStore.open(tmp_path / "data", hop="inline")
    async with open_bench(tuned(store={"min_free_bytes": 0}), store) as bench:
        ann = await make_agent(bench, "Ann")
        sessions = [
            await open_session(bench, ann, mode=mode, config={"client_seed": f"seed {number}"})
            for number, mode in enumerate(("persistent", "persistent", "simulation", "simulation"))
        ]
        for stake in (100, 70):
            for session in sessions:
                done = await submit(bench, ann, session, call(first_legal(session)["guess"], stake))
                session.update(done["session"])
        await submit(bench, ann, sessions[3], call("higher"), expected_version=0)
        for session in (sessions[0], sessions[2]):
            await submit(bench, ann, session, {"type": "stop"})
    await store.aclose()
    return tmp_path / "data"


def found(path: Path, counts: Counts | None = None) -> list[Fault]:
    with sqlite_check.opened(path) as (snapshot, _):
        assert snapshot is not None
        return [step for step in check_store(snapshot, counts or Counts()) if isinstance(step, Fault)]


async def test_sessions_that_the_broker_wrote_hold(made: Path) -> None:
    counts = Counts()
    assert found(spoiled(made), counts) == []
    assert (counts.sessions, counts.conversations, counts.envelopes) == (4, 0, 0)
    assert found(spoiled(made, sums=True)) == []


def damaged(made: Path, table: str, where: str, change: Change) -> list[str]:
    """What a check says of a copy in which the JSON of the first such row was changed."""
    path = spoiled(made)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        row, data = db.execute(f"SELECT id, data FROM {table} WHERE {where} ORDER BY id LIMIT 1").fetchone()
        text: Json = json.loads(data)
        change(text)
        db.execute(f"UPDATE {table} SET data = ? WHERE id = ?", (json.dumps(text).encode(), row))
    return [each.message for each in found(path)]


def event(type: str, mode: str, n: int) -> str:
    """Event n of the first session of a mode that was over in the end (`ended`) or not."""
    kind = f"SELECT name FROM document WHERE kind = 'arena' AND CAST(data AS TEXT) LIKE '%{mode}%'"
    over = "LIKE '%\"over\"%'" if type == "ended" else "NOT LIKE '%\"over\"%'"
    logs = f"SELECT id FROM log WHERE name IN (SELECT 'session:' || name FROM ({kind} AND CAST(data AS TEXT) {over}))"
    return f"log IN ({logs}) AND n = {n}"


def of(kind: str, words: str = "") -> str:
    return f"kind = '{kind}' AND CAST(data AS TEXT) LIKE '%{words}%'"


def put(**members: Any) -> Change:
    return lambda text: text.update(members)


def plus(name: str, more: int = 1) -> Change:
    return lambda text: text.update({name: text[name] + more})


def entries(*entries: Any) -> Change:
    return put(entries=list(entries))


def without(name: str) -> Change:
    return lambda text: text.pop(name)


DOCUMENTS: tuple[tuple[str, Change, str], ...] = (
    (of("arena"), put(mode="other"), "is no session's"),
    (of("arena"), put(session_id="as_other"), "says that it is as_other"),
    (of("arena"), plus("version"), "version is "),
    (of("arena"), plus("balance"), "balance is "),
    (of("arena"), plus("net"), "net is "),
    (of("arena"), plus("opened_at"), "opened_at is "),
    (of("arena"), put(agent_id="ag_other"), "agent_id is 'ag_other'"),
    (of("arena", '"over"'), put(over="bust"), "over is 'bust'"),
    (of("arena", '"over"'), put(ref="0" * 64), "ref is "),
    (of("arena", '"due"'), without("due"), "is due though"),
    (of("arena", '"due"'), plus("due"), "is not found by what it says"),
    (of("player"), plus("games"), "has opened 5 sessions, and 4 are there"),
    (of("player"), put(games="many"), "is no player's"),
    (of("player"), put(agent_id="ag_other"), "is the player ag_other"),
    (of("account"), plus("balance"), "the account is "),
    (of("account"), put(balance="much"), "is no account"),
    (of("artifact"), put(more=1), "bytes have another hash"),
    (of("artifact"), put(more=1), "is not there as it was published"),
)
EVENTS: tuple[tuple[str, Change, str], ...] = (
    (event("open", "simulation", 1), put(type="other"), "no event: "),
    (event("open", "simulation", 1), put(type="closed", ended={"over": "expired"}), "events follow its end"),
    (event("ended", "simulation", 3), put(type="opened"), "no event: "),
    (event("ended", "simulation", 3), lambda text: text["ended"].update(seed="00" * 32), "committed to"),
    (event("ended", "simulation", 3), lambda text: text["ended"].update(salt="no hex"), "committed to"),
    (event("open", "simulation", 0), put(games=7), "each number once or not"),
    (event("open", "simulation", 1), entries(["house", 1], ["player", -2]), "do not sum to 0"),
    (event("open", "simulation", 1), plus("balance"), "a balance of "),
    (event("open", "simulation", 2), put(balance=-5), "a balance of -5"),
    (event("open", "persistent", 1), plus("balance"), "are not those of one account"),
    (event("open", "persistent", 1), entries(["house", 1], ["player", -1]), "the account is "),
    (event("ended", "persistent", 3), plus("balance"), "are not those of one account"),
)
FIRST = "(SELECT min(id) FROM log WHERE name LIKE 'session:%')"
OPENED = f"SELECT data FROM text WHERE log = {FIRST} AND n = 0"
ROWS = (
    ("DELETE FROM document WHERE kind = 'artifact'", "is not there as it was published"),
    ("DELETE FROM document WHERE kind = 'player'", "has sessions, and no document of a player"),
    ("DELETE FROM document WHERE kind = 'account'", "has persistent sessions, and no account"),
    ("DELETE FROM document WHERE kind = 'arena'", "and no document of a session"),
    ("DELETE FROM document WHERE kind = 'arena'", "is the artifact of a session that is not there"),
    ("DELETE FROM mark WHERE typeof(value) = 'integer'", "is not found by what it says"),
    ("UPDATE text SET data = CAST('{}' AS BLOB) WHERE CAST(data AS TEXT) LIKE '%CONFLICT%'", "no rejected"),
    (f"UPDATE log SET name = 'session:as_other' WHERE id = {FIRST}", "and no document of a session"),
    (f"UPDATE log SET name = 'session:as_other' WHERE id = {FIRST}", "is that it was opened"),
    (f"UPDATE text SET data = ({OPENED}) WHERE log = {FIRST} AND n = 1", "is that it was opened"),
)


@pytest.mark.parametrize(("table", "cases"), [("document", DOCUMENTS), ("text", EVENTS)])
async def test_what_was_changed_is_named(
    made: Path, table: str, cases: tuple[tuple[str, Change, str], ...]
) -> None:
    for where, change, words in cases:
        said = damaged(made, table, where, change)
        assert any(words in each for each in said), (where, words, said)


async def test_what_was_taken_away_is_named(made: Path) -> None:
    for sql, words in ROWS:
        said = [each.message for each in found(spoiled(made, sql))]
        assert any(words in each for each in said), (sql, said)
