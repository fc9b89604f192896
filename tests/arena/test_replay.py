"""A session's log is enough: on any machine it gives the same state, and the same artifact under the same ref.

The vectors (tests/vectors/arena/sessions.json) were played once, by another process on another store; what was played
then must come out again for ever: a change that breaks one changes a published game.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from broker.actors.actor import Crashed
from broker.actors.arena import read_events
from broker.actors.artifacts import read_artifact
from broker.app import Caller
from broker.core import arena as core
from broker.core.artifact import ref_of
from broker.core.chance import Secret
from broker.core.games import hilo, rfq
from broker.core.games.game import Game
from broker.core.games.table import Table
from broker.store.memory import MemoryStore
from broker.store.port import Append, Put, Unit
from broker.store.sqlite import SqliteStore
from broker.wire.keys import SigningKey
from tests.arena.ledger import open_arena
from tests.support.agents import caller_of, make_agent
from tests.support.arena import new_key, open_session, submit
from tests.support.broker import Bench, open_bench

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "vectors/arena/sessions.json").read_text()
)
GAMES = Table([hilo, rfq])
every_vector = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])


def game_of(vector: dict[str, Any]) -> Game:
    found = GAMES.find(vector["game"], vector["version"])
    assert found is not None
    return found


def deal_from(monkeypatch: pytest.MonkeyPatch, vector: dict[str, Any]) -> None:
    """Have the broker's next sessions come of a vector's secret."""

    async def given(*_: Any) -> Secret:
        return Secret(**vector["secret"])

    monkeypatch.setattr("broker.actors.player.next_secret", given)


async def begin(bench: Bench, vector: dict[str, Any]) -> tuple[Caller, dict[str, Any]]:
    """A vector's agent, and its session just opened."""
    ann = await make_agent(bench, "Ann", agent_id=vector["agent_id"])
    params = {"version": vector["version"], "mode": vector["mode"], "config": vector["config"]}
    return ann, await open_session(bench, ann, vector["game"], **params)


async def act(bench: Bench, who: Caller, session: dict[str, Any], action: dict[str, Any]) -> dict[str, Any]:
    answer = await submit(bench, who, session, action)
    shown: dict[str, Any] = answer["session"]
    return shown


async def log_of(bench: Bench, session: dict[str, Any]) -> Any:
    return json.loads(msgspec.json.encode(await read_events(bench.store, session["session_id"])))


@pytest.mark.requirement("arena.replay", "arena.artifact")
@every_vector
def test_the_events_alone_give_the_state_and_the_artifact(vector: dict[str, Any]) -> None:
    game = game_of(vector)
    events = msgspec.convert(vector["events"], list[core.Event])
    live = core.replay(game, events)
    assert json.loads(msgspec.json.encode(game.observe(live.state))) == vector["observation"]
    content = core.artifact_of(events)
    assert ref_of(content) == vector["ref"]
    assert set(json.loads(content)) == {"kind", "format", "events", "result"}


@pytest.mark.requirement("arena.replay", "arena.artifact")
@every_vector
async def test_a_broker_plays_the_same_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, vector: dict[str, Any]
) -> None:
    deal_from(monkeypatch, vector)
    ann, session = await begin(bench, vector)
    assert session["commit"] == vector["commit"]
    for action in vector["actions"]:
        session = await act(bench, ann, session, action)
    assert await log_of(bench, session) == vector["events"]
    assert session["artifact"]["ref"] == vector["ref"]
    assert session["observation"] == vector["observation"]
    content = await read_artifact(bench.store, vector["ref"])
    assert content is not None
    assert session["session_id"].encode() not in content


@pytest.mark.requirement("arena.replay")
@every_vector
async def test_an_actor_that_leaves_memory_between_actions_changes_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, vector: dict[str, Any]
) -> None:
    deal_from(monkeypatch, vector)
    ann, session = await begin(bench, vector)
    for action in vector["actions"]:
        await leave(bench, session)
        session = await act(bench, ann, session, action)
    assert session["artifact"]["ref"] == vector["ref"]


async def leave(bench: Bench, session: dict[str, Any]) -> None:
    """Have a session's actor leave memory."""
    house = bench.broker._services.house
    actor = house.alive("arena", session["session_id"])
    if actor is not None:
        actor.leave()
        await trio.testing.wait_all_tasks_blocked()
    assert house.alive("arena", session["session_id"]) is None


@pytest.mark.requirement("arena.replay")
async def test_an_actor_that_crashes_in_every_action_changes_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = VECTORS[0]
    deal_from(monkeypatch, vector)
    ann, session = await begin(bench, vector)
    whole = core.fold

    def breaks(*_: Any) -> Any:
        raise RuntimeError("broken")

    for action in vector["actions"]:
        params = {
            "session_id": session["session_id"],
            "expected_version": session["version"],
            "action": action,
        }
        params["idempotency_key"] = new_key()
        with monkeypatch.context() as patched:
            patched.setattr(core, "fold", breaks)
            with pytest.raises(Crashed):
                await bench.call("submit_action", ann, **params)
        assert core.fold is whole
        session = (await bench.call("submit_action", ann, **params))["session"]
    assert session["artifact"]["ref"] == vector["ref"]


@pytest.mark.requirement("arena.replay")
async def test_a_log_moved_to_another_store_goes_on_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    vector, key = VECTORS[0], SigningKey.generate()
    deal_from(monkeypatch, vector)
    first = MemoryStore()
    async with open_arena(store=first, key=key) as bench:
        ann, session = await begin(bench, vector)
        for action in vector["actions"][:5]:
            session = await act(bench, ann, session, action)
    second = await SqliteStore.open(tmp_path / "store", hop="inline")
    for (kind, id), document in first._docs.items():
        if kind in ("agent", "arena", "player"):
            index = tuple(document.marks)
            await second.commit(Unit(puts=(Put(kind, id, 0, document.doc, index),)))
    log = core.session_log(session["session_id"])
    for row in await first.entries(log):
        await second.commit(Unit(append=Append(log, row.n, row.data, row.at)))
    async with open_bench(store=second, key=key) as bench:
        ann = caller_of(bench, vector["agent_id"])
        seen = await bench.call("get_session", ann, session_id=session["session_id"])
        assert seen["session"] == session
        for action in vector["actions"][5:]:
            session = await act(bench, ann, session, action)
        assert session["artifact"]["ref"] == vector["ref"]
    await second.aclose()


@pytest.mark.requirement("arena.replay")
async def test_a_log_that_is_no_sessions_is_named_and_not_played() -> None:
    async with open_bench() as bench:
        ann = await make_agent(bench, "Ann")
        session = await open_session(bench, ann)
        log = core.session_log(session["session_id"])
        await bench.store.commit(Unit(append=Append(log, 1, b'{"type":"opened"}', 1)))
        await leave(bench, session)
        answer = await bench.call("get_session", ann, session_id=session["session_id"])
        assert answer.code == "unavailable"


@pytest.mark.requirement("arena.replay")
async def test_a_session_whose_document_says_another_version_is_not_played() -> None:
    async with open_bench() as bench:
        ann = await make_agent(bench, "Ann")
        session = await open_session(bench, ann)
        document = await bench.store.get("arena", session["session_id"])
        assert document is not None
        row = {**json.loads(document.doc), "version": 3}
        put = Put("arena", session["session_id"], document.version, json.dumps(row).encode())
        await bench.store.commit(Unit(puts=(put,)))
        await leave(bench, session)
        answer = await bench.call("get_session", ann, session_id=session["session_id"])
        assert answer.code == "unavailable"
