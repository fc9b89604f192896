"""The key is looked at before the version: what is done once, what is answered again, and what never is."""

import json
from typing import Any

import pytest
import trio
import trio.testing

from broker.actors.actor import Crashed
from broker.app import Caller
from broker.core.arena import rejected_log
from broker.store.memory import MemoryStore
from broker.wire.keys import SigningKey
from tests.arena.ledger import open_arena, raw
from tests.support.agents import caller_of, make_agent, owner_caller
from tests.support.arena import call, open_session, submit
from tests.support.broker import Bench, code, tuned
from tests.support.signin import new_owner

STOP = {"type": "stop"}
KEY = SigningKey.generate()


def acting(
    session: dict[str, Any], action: dict[str, Any], key: str = "k", version: int = 0
) -> dict[str, Any]:
    """The params of submit_action."""
    return {
        "session_id": session["session_id"],
        "expected_version": version,
        "action": action,
        "idempotency_key": key,
    }


async def attempts(bench: Bench, session: dict[str, Any]) -> int:
    """How many rejected attempts are kept."""
    return len(await bench.store.entries(rejected_log(session["session_id"])))


async def version_of(bench: Bench, who: Caller, session: dict[str, Any]) -> int:
    seen = await bench.call("get_session", who, session_id=session["session_id"])
    return int(seen["session"]["version"])


@pytest.mark.requirement("arena.once", "arena.alike")
async def test_the_identical_request_gets_the_first_answer_when_its_version_is_long_stale(
    bench: Bench,
) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann, config={"points": 1_000_000})
    first = await raw(bench, ann, "submit_action", **acting(session, call("same")))
    assert not first.startswith(b"!")
    then = json.loads(first)["session"]
    for _ in range(3):
        then = (await submit(bench, ann, then))["session"]
    assert await raw(bench, ann, "submit_action", **acting(session, call("same"))) == first
    # However it is written: in another order, with 1.0 for 1.
    params = {**acting(session, {"guess": "same", "stake": 1.0, "type": "call"}), "expected_version": 0.0}
    assert await raw(bench, ann, "submit_action", **dict(reversed(params.items()))) == first
    assert await version_of(bench, ann, session) == 4
    assert await attempts(bench, session) == 0


@pytest.mark.requirement("arena.once")
async def test_an_opening_is_done_once(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    params = {"game": "hilo", "mode": "persistent", "idempotency_key": "k"}
    first = await raw(bench, ann, "open_session", **params)
    assert await raw(bench, ann, "open_session", **params) == first
    profile = await bench.call("get_agent", ann, agent_id=ann.agent)
    assert profile["arena"]["games"] == 1


@pytest.mark.requirement("arena.mismatch")
async def test_a_key_of_another_request_is_refused_before_anything_is_looked_at(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann)
    other = await open_session(bench, ann)
    await bench.call("submit_action", ann, **acting(session, call("same")))
    for params in (
        acting(session, call("same", 2)),
        acting(session, call("same"), version=9),
        acting(session, {"type": "no such"}),
        acting(other, call("same")),
        acting({"session_id": "as_" + "0" * 26}, call("same")),
    ):
        answer = await bench.call("submit_action", ann, **params)
        assert (answer.code, answer.retryable) == ("IDEMPOTENCY_MISMATCH", False)
    assert await attempts(bench, session) == 0
    assert await version_of(bench, ann, other) == 0
    await bench.call("submit_action", ann, **acting(session, STOP, "end", 1))
    assert code(await bench.call("submit_action", ann, **acting(session, STOP))) == "IDEMPOTENCY_MISMATCH"


@pytest.mark.requirement("arena.mismatch")
async def test_a_key_whose_first_request_is_under_way_is_refused_to_another_at_once() -> None:
    store = MemoryStore()
    async with open_arena(store=store) as bench:
        ann = await make_agent(bench, "Ann")
        session = await open_session(bench, ann)
        answers: list[Any] = []

        async def ask(action: dict[str, Any]) -> None:
            answers.append(await bench.call("submit_action", ann, **acting(session, action)))

        store.gate.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, call("same"))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(ask, call("higher"))
            nursery.start_soon(ask, call("same"))
            await trio.testing.wait_all_tasks_blocked()
            assert list(map(code, answers)) == ["IDEMPOTENCY_MISMATCH"]
            store.gate.release()
        assert list(map(code, answers)) == ["IDEMPOTENCY_MISMATCH", "accepted", "accepted"]
        assert answers[1] == answers[2]


@pytest.mark.requirement("arena.conflict", "arena.passing")
async def test_a_conflict_is_not_remembered(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann)
    await submit(bench, ann, session)
    stale = acting(session, call("same"))
    for _ in range(2):
        assert code(await bench.call("submit_action", ann, **stale)) == "CONFLICT"
    assert await attempts(bench, session) == 2
    assert await bench.store.recall(f"key:{ann.agent}:submit_action", "k") is None
    # So the key is free for what is decided next, and is that request's from then on.
    assert code(await bench.call("submit_action", ann, **{**stale, "expected_version": 1})) == "accepted"
    assert code(await bench.call("submit_action", ann, **stale)) == "IDEMPOTENCY_MISMATCH"


@pytest.mark.requirement("arena.once")
async def test_what_was_done_is_answered_the_same_after_a_restart() -> None:
    store = MemoryStore()
    async with open_arena(store=store, key=KEY) as bench:
        ann = await make_agent(bench, "Ann")
        opening = {"game": "hilo", "mode": "persistent", "idempotency_key": "k"}
        opened = await raw(bench, ann, "open_session", **opening)
        params = acting(json.loads(opened), call("same"))
        acted = await raw(bench, ann, "submit_action", **params)
        ending = acting(json.loads(opened), STOP, "end", 1)
        ended = await raw(bench, ann, "submit_action", **ending)
        assert b'"over":"stopped"' in ended
    async with open_arena(store=store, key=KEY) as bench:
        again = caller_of(bench, ann.agent or "")
        assert await raw(bench, again, "submit_action", **params) == acted
        assert await raw(bench, again, "open_session", **opening) == opened
        assert await raw(bench, again, "submit_action", **ending) == ended


async def illegal(bench: Bench, ann: Caller) -> tuple[str, dict[str, Any], Any]:
    session = await open_session(bench, ann)
    return "submit_action", acting(session, {"type": "fold"}), session


async def short(bench: Bench, ann: Caller) -> tuple[str, dict[str, Any], Any]:
    session = await open_session(bench, ann, config={"points": 10})
    return "submit_action", acting(session, call("same", 11)), session


async def over(bench: Bench, ann: Caller) -> tuple[str, dict[str, Any], Any]:
    session = await open_session(bench, ann)
    await submit(bench, ann, session, STOP)
    return "submit_action", acting(session, call("same")), None


async def foreign(bench: Bench, ann: Caller) -> tuple[str, dict[str, Any], Any]:
    bob = await make_agent(bench, "Bob", owner_id=await new_owner(bench))
    params = {"game": "hilo", "agent_id": bob.agent, "idempotency_key": "k"}
    return "open_session", params, None


async def missing(bench: Bench, ann: Caller) -> tuple[str, dict[str, Any], Any]:
    return "submit_action", acting({"session_id": "as_" + "0" * 26}, STOP), None


async def no_game(bench: Bench, ann: Caller) -> tuple[str, dict[str, Any], Any]:
    return "open_session", {"game": "chess", "idempotency_key": "k"}, None


async def empty(bench: Bench, ann: Caller) -> tuple[str, dict[str, Any], Any]:
    params = {"game": "hilo", "mode": "persistent", "idempotency_key": "k"}
    return "open_session", params, None


async def odd_config(bench: Bench, ann: Caller) -> tuple[str, dict[str, Any], Any]:
    params = {"game": "hilo", "config": {"decks": 9}, "idempotency_key": "k"}
    return "open_session", params, None


@pytest.mark.requirement("arena.final")
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (illegal, "ILLEGAL_ACTION"),
        (short, "INSUFFICIENT_POINTS"),
        (empty, "INSUFFICIENT_POINTS"),
        (over, "SESSION_OVER"),
        (foreign, "FORBIDDEN"),
        (missing, "NOT_FOUND"),
        (no_game, "NOT_FOUND"),
        (odd_config, "bad_request"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
async def test_a_final_refusal_is_remembered_byte_for_byte_over_a_restart(make: Any, expected: str) -> None:
    store = MemoryStore()
    points = {"points": 0} if make is empty else {}
    async with open_arena(tuned(arena=points), store, key=KEY) as bench:
        ann = await make_agent(bench, "Ann")
        name, params, then = await make(bench, ann)
        first = await raw(bench, ann, name, **params)
        assert first.startswith(b'!{"code":"' + expected.encode())
        if then is not None:  # the game goes on: other actions are legal by now
            await submit(bench, ann, then)
        assert await raw(bench, ann, name, **params) == first
    async with open_arena(store=store, key=KEY) as bench:
        assert ann.agent is not None
        assert await raw(bench, caller_of(bench, ann.agent), name, **params) == first


@pytest.mark.requirement("arena.final")
async def test_a_rejected_attempt_is_written_once_with_its_answer() -> None:
    class Counting(MemoryStore):
        commits = 0

        async def commit(self, unit: Any) -> None:
            self.commits += 1
            await super().commit(unit)

    store = Counting()
    async with open_arena(store=store) as bench:
        ann = await make_agent(bench, "Ann")
        session = await open_session(bench, ann)
        before = store.commits
        assert code(await submit(bench, ann, session, {"type": "fold"})) == "ILLEGAL_ACTION"
        assert store.commits == before + 1


@pytest.mark.requirement("arena.passing", "arena.limits")
async def test_limits_and_rates_are_not_remembered(autojump_clock: trio.testing.MockClock) -> None:
    async with open_arena(tuned(arena={"open_sessions": 1}, limits={"keyed_per_hour": 4})) as bench:
        ann = await make_agent(bench, "Ann")
        session = await open_session(bench, ann)
        params = {"game": "hilo", "idempotency_key": "next"}
        assert code(await bench.call("open_session", ann, **params)) == "LIMIT_EXCEEDED"
        await submit(bench, ann, session, STOP)
        opened = await bench.call("open_session", ann, **params)
        assert opened["status"] == "open"
        limited = acting(opened, STOP)
        assert code(await bench.call("submit_action", ann, **limited)) == "rate_limited"
        assert await bench.call("open_session", ann, **params) == opened, "what is remembered costs nothing"
        await trio.sleep(3_601)
        assert code(await bench.call("submit_action", ann, **limited)) == "accepted"


@pytest.mark.requirement("arena.passing")
async def test_a_fault_of_ours_is_not_remembered(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann, mode="persistent")
    params = acting(session, call("same"))

    def broken(*_: Any) -> Any:
        raise RuntimeError("broken")

    with monkeypatch.context() as patched:
        patched.setattr("broker.core.games.hilo.apply", broken)
        with pytest.raises(Crashed, match="broken"):
            await bench.call("submit_action", ann, **params)
    answer = await bench.call("submit_action", ann, **params)
    assert answer["session"]["version"] == 1


@pytest.mark.requirement("arena.key-scope")
async def test_a_key_belongs_to_who_asks_and_to_the_tool(bench: Bench) -> None:
    owner_id = await new_owner(bench)
    ann, owner = await make_agent(bench, "Ann", owner_id=owner_id), owner_caller(bench, owner_id)
    session = await bench.call("open_session", ann, game="hilo", idempotency_key="k")
    mine = await bench.call("submit_action", ann, **acting(session, call("same")))
    owners = await bench.call("submit_action", owner, **acting(session, call("same"), version=1))
    assert (mine["session"]["version"], owners["session"]["version"]) == (1, 2)
