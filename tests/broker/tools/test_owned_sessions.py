"""What an owner sees of the agents' sessions, and stopping one."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec
import pytest
import trio

from broker.actors.arena import ArenaActor
from broker.app import Caller
from broker.core.agent import AgentRow, Suspension
from broker.store.port import Put, Unit
from broker.tools.owned_sessions import PAGE, TRIES
from tests.support.agents import make_agent, owner_caller
from tests.support.arena import call, open_session, submit
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.owners import CHEAP, new_owner, signin


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with open_bench(tuned(owners=msgspec.structs.asdict(CHEAP))) as bench:
        yield bench


class Played(NamedTuple):
    """An owner, the agent, and a session of its."""

    owner_id: str
    agent: Caller
    session: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.session["session_id"])


async def played(bench: Bench, name: str = "Desk", **params: Any) -> Played:
    ann = await new_owner(bench)
    agent = await make_agent(bench, name, owner_id=ann)
    return Played(ann, agent, await open_session(bench, agent, **params))


def guess(session: dict[str, Any]) -> str:
    return str(session["legal_actions"][0]["guess"])


async def seen(bench: Bench, one: Played, **params: Any) -> Any:
    return await signin(bench, "my_session", owner_id=one.owner_id, session_id=one.id, **params)


async def stop(bench: Bench, one: Played, key: str = "form-1", owner_id: str | None = None) -> Any:
    asked = {"owner_id": owner_id or one.owner_id, "session_id": one.id, "key": key}
    return await signin(bench, "stop_my_session", **asked)


@pytest.mark.requirement("pages.arena-sessions")
async def test_an_owner_sees_account_and_sessions_the_latest_first_in_pages(bench: Bench) -> None:
    one = await played(bench, mode="persistent")
    ids = [one.id]
    for _ in range(PAGE + 1):
        ids.append((await open_session(bench, one.agent))["session_id"])
    await submit(bench, one.agent, one.session, {"type": "stop"})
    asked = {"owner_id": one.owner_id, "agent_id": one.agent.agent}
    first = await signin(bench, "my_sessions", **asked)
    rest = await signin(bench, "my_sessions", **asked, after=first["next"])
    assert [each["session_id"] for each in first["sessions"] + rest["sessions"]] == ids[::-1]
    assert (len(first["sessions"]), rest["next"], first["games"], first["name"]) == (
        PAGE,
        None,
        PAGE + 2,
        "Desk",
    )
    assert first["account"] == {
        "kind": "persistent",
        "account_id": f"agent:{one.agent.agent}",
        "balance": 10_000,
    }
    opened = await signin(bench, "my_sessions", **asked, which="open")
    older = await signin(bench, "my_sessions", **asked, which="open", after=opened["next"])
    assert [each["session_id"] for each in opened["sessions"] + older["sessions"]] == ids[:0:-1]
    assert (
        code(await signin(bench, "my_sessions", **asked, which="open", after=first["next"])) == "bad_request"
    )


@pytest.mark.requirement("pages.arena-session")
async def test_an_owner_sees_what_the_agent_sees_what_happened_and_what_was_rejected(bench: Bench) -> None:
    one = await played(bench, config={"client_seed": "x", "points": 500})
    outcome = await submit(bench, one.agent, one.session, call(guess(one.session), 5))
    await submit(bench, one.agent, outcome["session"], {"type": "<b>"})
    shown = await seen(bench, one)
    mine = await bench.call("get_session", one.agent, session_id=one.id)
    assert shown["session"] == msgspec.to_builtins(mine)["session"]
    assert (shown["name"], shown["suspended"], shown["points"]) == ("Desk", False, 500)
    assert shown["nets"] == [0, outcome["change"]]
    (event,) = shown["events"]
    assert (event["n"], event["change"], event["net"]) == (1, outcome["change"], outcome["change"])
    assert event["event"]["facts"] == outcome["facts"]
    (attempt,) = shown["attempts"]
    assert (attempt["n"], attempt["tried"]["code"], attempt["tried"]["action"]) == (
        0,
        "ILLEGAL_ACTION",
        {"type": "<b>"},
    )
    assert shown["kept"] == 1
    assert shown["facts"]["card"] == one.session["observation"]["current"]


@pytest.mark.requirement("pages.arena-session")
async def test_history_comes_in_pages_and_the_chart_has_all_of_it(bench: Bench) -> None:
    one = await played(bench, game="rfq", config={"steps": PAGE + 2})
    session = one.session
    for _ in range(PAGE + 1):
        await submit(bench, one.agent, session, {"type": "never"})
        session = (await submit(bench, one.agent, session, {"type": "pass"}))["session"]
    shown = await seen(bench, one)
    older = await seen(
        bench, one, before=shown["events"][-1]["n"], rejected_before=shown["attempts"][-1]["n"]
    )
    for part, last in (("events", PAGE + 1), ("attempts", PAGE)):
        numbers = [each["n"] for each in shown[part] + older[part]]
        assert numbers == list(range(last, last - PAGE - 1, -1)), part
    assert len(shown["nets"]) == PAGE + 2
    assert shown["nets"] == older["nets"]


@pytest.mark.requirement("pages.arena-hidden")
async def test_nothing_hidden_is_shown_before_the_end_and_all_after_it(bench: Bench) -> None:
    one = await played(bench)
    before = msgspec.json.encode(await seen(bench, one))
    await stop(bench, one)
    after = (await seen(bench, one))["session"]
    assert len(after["seed"]) == len(after["salt"]) == 64
    assert after["artifact"]["ref"]
    for secret in (after["seed"], after["salt"], '"sealed"'):
        assert secret.encode() not in before


@pytest.mark.requirement("pages.arena-foreign")
async def test_a_session_of_another_owner_is_as_one_that_never_was(bench: Bench) -> None:
    one, eve = await played(bench), await new_owner(bench)
    never = Played(eve, one.agent, {"session_id": bench.broker._services.new_id("as_")})
    theirs = Played(eve, one.agent, one.session)
    told = [
        answer
        for each in (theirs, never)
        for answer in (
            await seen(bench, each),
            await stop(bench, each, f"key-{each.id}"),
            await signin(bench, "my_session_mark", owner_id=eve, session_id=each.id),
        )
    ]
    assert [code(each) for each in told] == ["NOT_FOUND"] * 6
    assert all(each == told[0] for each in told)
    assert code(await signin(bench, "my_sessions", owner_id=eve, agent_id=one.agent.agent)) == "not_found"
    assert (await seen(bench, one))["session"]["status"] == "open"
    assert code(await bench.call("get_session", owner_caller(bench, eve), session_id=one.id)) == "NOT_FOUND"


@pytest.mark.requirement("pages.arena-mark")
async def test_a_mark_changes_with_each_event_and_each_rejected_attempt_alone(bench: Bench) -> None:
    one = await played(bench)

    async def mark() -> str:
        before = bench.clock.now_ms()
        found = await signin(bench, "my_session_mark", owner_id=one.owner_id, session_id=one.id)
        assert before <= found["now"] <= bench.clock.now_ms()
        return str(found["mark"])

    marks = [await mark()]
    assert (await seen(bench, one))["mark"]["mark"] == marks[0] == await mark()
    await submit(bench, one.agent, one.session, {"type": "never"})
    marks.append(await mark())
    await submit(bench, one.agent, one.session)
    marks.append(await mark())
    assert len(set(marks)) == 3


@pytest.mark.requirement("pages.arena-stop")
async def test_an_owner_stops_a_session_once_for_a_form(bench: Bench, autojump_clock: object) -> None:
    one = await played(bench)
    answers: list[Any] = []

    async def press() -> None:
        answers.append(await stop(bench, one))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(press)
    assert answers == [{"session_id": one.id, "over": "stopped"}] * 5
    shown = await seen(bench, one)
    assert [each["event"]["action"] for each in shown["events"]] == [{"type": "stop"}]
    assert (shown["kept"], shown["session"]["version"]) == (0, 1)
    assert code(await stop(bench, one, "form-2")) == "SESSION_OVER"
    other = Played(one.owner_id, one.agent, await open_session(bench, one.agent))
    assert code(await stop(bench, other)) == "IDEMPOTENCY_MISMATCH"


@pytest.mark.requirement("pages.arena-stop")
async def test_a_key_is_its_owners_and_says_nothing_of_another(bench: Bench) -> None:
    one, other = await played(bench), await played(bench, "Other")
    assert (await stop(bench, one))["over"] == "stopped"
    assert (await stop(bench, other))["over"] == "stopped"


@pytest.mark.requirement("pages.arena-stop")
@pytest.mark.parametrize("moves", [1, TRIES])
async def test_a_session_that_moves_on_meanwhile_is_stopped_all_the_same(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    one = await played(bench)
    submit_, left = ArenaActor._submit, [moves]

    async def moved(self: ArenaActor, row: Any, command: Any) -> Any:
        if command.action == {"type": "stop"} and left[0]:
            left[0] -= 1
            command = msgspec.structs.replace(command, expected_version=command.expected_version + 1)
        return await submit_(self, row, command)

    monkeypatch.setattr(ArenaActor, "_submit", moved)
    answer = await stop(bench, one)
    assert (code(answer) if moves == TRIES else answer["over"]) == (
        "CONFLICT" if moves == TRIES else "stopped"
    )
    assert (await stop(bench, one))["over"] == "stopped"  # a conflict was not kept


@pytest.mark.requirement("pages.arena-stop")
async def test_nobody_stops_for_a_suspended_agent_whose_owner_still_looks(bench: Bench) -> None:
    ann = await new_owner(bench)
    agent = await make_agent(bench, "Desk", owner_id=ann)
    one = Played(ann, agent, await open_session(bench, agent))
    await _suspend(bench, str(agent.agent))
    assert code(await stop(bench, one)) == "suspended"
    shown = await seen(bench, one)
    assert (shown["suspended"], shown["session"]["status"]) == (True, "open")


async def _suspend(bench: Bench, agent_id: str) -> None:
    found = await bench.store.get("agent", agent_id)
    assert found is not None
    row = msgspec.json.decode(found.doc, type=AgentRow)
    row = msgspec.structs.replace(row, suspended=Suspension(bench.clock.now_ms(), "x"))
    put = Put("agent", agent_id, found.version, msgspec.json.encode(row), (("owner", str(row.owner_id)),))
    await bench.store.commit(Unit(puts=(put,)))
