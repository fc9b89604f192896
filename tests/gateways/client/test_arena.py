"""Sessions through the client, at the real broker: what is done once, who came first, how they end."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from broker.config import Settings
from broker.wire.keys import SigningKey
from broker.wire.refusals import refuse
from gateways.client.agent import Agent, open_agent
from gateways.client.arena import Conflict, Session
from gateways.client.errors import Refused, WireFault
from tests.gateways.client.conftest import Connect
from tests.gateways.client.real_network import RealNetwork, real_network
from tests.gateways.client.test_restart import Restartable
from tests.support.agents import caller_of, make_agent, owner_caller
from tests.support.arena import open_session
from tests.support.owners import CHEAP, new_owner

Answer = Callable[[], Awaitable[Any]]
"""Asks the broker indeed; its answer."""


class Table:
    """One agent at a broker, and all that its tools are asked."""

    def __init__(
        self, net: RealNetwork, me: Agent, key: SigningKey, owner_id: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.net = net
        self.me = me
        self.key = key
        self.owner_id = owner_id
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.between: dict[str, list[Callable[[Answer], Awaitable[Any]]]] = {}
        """What is done in the place of a tool's next calls."""
        self._call = net.bench.broker.call
        monkeypatch.setattr(net.bench.broker, "call", self._watch)

    async def _watch(self, caller: Any, name: str, params: bytes, *rest: Any, **more: Any) -> Any:
        self.asked.append((name, json.loads(params)))

        async def answer() -> Any:
            return await self._call(caller, name, params, *rest, **more)

        waiting = self.between.get(name)
        return await (waiting.pop(0)(answer) if waiting else answer())

    def params(self, tool: str) -> list[dict[str, Any]]:
        """The params of all calls of a tool."""
        return [params for name, params in self.asked if name == tool]

    async def events(self, session: Session) -> list[Any]:
        """A session's events."""
        seen = await self.me.call("get_session", session_id=session.session_id, events_after=-1)
        return [each["event"] for each in seen["events"]]


@pytest.fixture
async def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Table]:
    async with real_network(tmp_path, monkeypatch, Settings(owners=CHEAP)) as net:
        key, owner = SigningKey.generate(), await new_owner(net.bench)
        caller = await make_agent(net.bench, "alfa", key=key, owner_id=owner, tier="claimed")
        async with net.agent(key, caller.agent) as me:
            yield Table(net, me, key, owner, monkeypatch)


def guess(session: Session) -> dict[str, Any]:
    """The likeliest call, with a point at stake."""
    calls = [each for each in session.legal_actions if each["type"] == "call"]
    best = max(calls, key=lambda each: each["odds"][0])
    return {"type": "call", "guess": best["guess"], "stake": 1}


@pytest.mark.requirement("client.arena", "client.arena-chance", "client.arena-verify")
async def test_a_session_is_played_and_verified(autojump_clock: MockClock, table: Table) -> None:
    me = table.me
    async with me.arena("hilo", config={"points": 60, "client_seed": "mine"}) as session:
        assert (session.version, session.points, session.net, session.over) == (0, 60, 0, None)
        changes = []
        while session.over is None:
            current = session.observation["current"]
            outcome = await session.act(guess(session))
            changes.append(outcome.change)
            assert (outcome.facts["card"], session.version) == (session.observation["current"], len(changes))
            assert current in session.observation["seen"]
        with pytest.raises(Refused, match="SESSION_OVER"):
            await session.stop()
    assert session.over in ("shoe_empty", "bust")
    assert (session.net, session.points) == (sum(changes), 60 + sum(changes))
    proof = await session.verify()
    assert (proof.foreseen, proof.revealed) == (True, True)
    [read], [opened] = table.params("get_agent"), table.params("open_session")
    assert read == {"agent_id": me.agent_id}
    names = [name for name, _ in table.asked]
    assert names.index("get_agent") < names.index("open_session")
    assert opened["config"]["client_seed"] == "mine"
    assert opened["config"]["commit"] == session.view.commit
    again = await me.session(session.session_id)
    assert (await again.verify()).foreseen is False


@pytest.mark.requirement("client.arena-once")
async def test_an_action_whose_answer_is_lost_is_asked_again_and_done_once(
    autojump_clock: MockClock, table: Table
) -> None:
    async def lose(answer: Answer) -> Any:
        await answer()
        await table.net.cut()
        return await answer()

    async with table.me.arena("hilo", keep=True) as session:
        table.between["submit_action"] = [lose, lose]
        outcome = await session.act(guess(session))
        assert (session.version, outcome.session.version) == (1, 1)
        first, *rest = table.params("submit_action")
        assert rest == [first, first]
        assert len(await table.events(session)) == 2
    table.between["open_session"] = [lose]
    async with table.me.arena("hilo"):
        profile = await table.me.call("get_agent", agent_id=table.me.agent_id)
        assert profile["arena"]["games"] == 2


@pytest.mark.requirement("client.arena-once")
async def test_what_was_cancelled_is_found_out_by_the_same_action_again(
    autojump_clock: MockClock, table: Table
) -> None:
    async def hang(answer: Answer) -> Any:
        await answer()
        await trio.sleep_forever()

    async with table.me.arena("hilo", keep=True) as session:
        table.between["submit_action"] = [hang]
        action = guess(session)
        with trio.move_on_after(1):
            await session.act(action)
        assert session.version == 0
        outcome = await session.act(action)
        assert len({params["idempotency_key"] for params in table.params("submit_action")}) == 1
        assert (outcome.session.version, len(await table.events(session))) == (1, 2)
        table.between["submit_action"] = [hang]
        with trio.move_on_after(1):
            await session.act(guess(session))
        with pytest.raises(Conflict):
            await session.act(type="stop")  # another decision, on what is not so any more
        assert (session.version, session.over) == (2, None)


@pytest.mark.requirement("client.arena-conflict")
async def test_where_another_came_first_nothing_is_repeated_and_the_session_is_read_again(
    autojump_clock: MockClock, table: Table
) -> None:
    async with (
        table.net.agent(table.key, table.me.agent_id) as me,
        table.me.arena("hilo", keep=True) as session,
    ):
        other = await me.session(session.session_id)
        await other.act(guess(other))
        with pytest.raises(Conflict) as caught:
            await session.act(guess(session))
        assert (caught.value.code, caught.value.refusal.detail["version"]) == ("CONFLICT", 1)
        assert len(table.params("submit_action")) == 2
        assert (session.version, session.observation) == (1, other.observation)
        await session.act(guess(session))
        assert session.version == 2
        keys = [params["idempotency_key"] for params in table.params("submit_action")]
        assert len(set(keys)) == 3


@pytest.mark.requirement("client.arena-conflict", "client.arena-end")
async def test_an_owner_who_plays_or_ends_it_is_another_one(autojump_clock: MockClock, table: Table) -> None:
    bench = table.net.bench
    owner = owner_caller(bench, table.owner_id)

    async def owned(session: Session, version: int, **action: Any) -> None:
        params = {"session_id": session.session_id, "expected_version": version, "action": action}
        answer = await bench.call("submit_action", owner, idempotency_key=session.session_id, **params)
        assert answer["session"]["version"] == version + 1

    async with table.me.arena("hilo") as session:
        await session.act(guess(session))
        await owned(session, 1, type="stop")
        with pytest.raises(Refused, match="SESSION_OVER"):
            await session.act(type="call", guess="higher", stake=1)
        assert (session.over, session.version) == ("stopped", 2)
    assert (await session.verify()).revealed
    async with table.me.arena("hilo") as session:
        await owned(session, 0, **guess(session))
    assert (session.over, session.version) == ("stopped", 2)


@pytest.mark.requirement("client.arena-chance")
async def test_another_session_that_was_opened_first_has_the_next_commit_read_again(
    autojump_clock: MockClock, table: Table
) -> None:
    bench = table.net.bench

    async def be_first(answer: Answer) -> Any:
        await open_session(bench, caller_of(bench, str(table.me.agent_id), owner=table.owner_id))
        return await answer()

    stale = (await table.me.call("get_agent", agent_id=table.me.agent_id))["arena"]["next_commit"]
    table.between["open_session"] = [be_first]
    async with table.me.arena("hilo") as session:
        assert session.view.games == 1
    mine = [each for each in table.params("open_session") if "commit" in each.get("config", {})]
    for member in ("commit", "client_seed"):
        assert len({each["config"][member] for each in mine}) == 2
    assert len({each["idempotency_key"] for each in mine}) == 2
    with pytest.raises(Conflict):
        async with table.me.arena("hilo", config={"commit": stale}):
            raise AssertionError
    games = set()

    async def open_one() -> None:
        async with table.me.arena("hilo") as session:
            games.add(session.view.games)

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(open_one)
    assert games == set(range(2, 8))
    with pytest.raises(Refused, match="NOT_FOUND"):
        async with table.me.arena("chess"):
            raise AssertionError


@pytest.mark.requirement("client.arena-chance")
async def test_a_broker_that_opens_with_another_commit_or_seed_is_believed_nothing(
    autojump_clock: MockClock, table: Table
) -> None:
    def with_other(member: str) -> Callable[[Answer], Awaitable[Any]]:
        async def change(answer: Answer) -> Any:
            return {**msgspec.to_builtins(await answer()), member: "ab" * 32}

        return change

    for member in ("commit", "client_seed"):
        table.between["open_session"] = [with_other(member)]
        with pytest.raises(WireFault, match="another commit or client seed"):
            async with table.me.arena("hilo"):
                raise AssertionError


@pytest.mark.requirement("client.arena-end")
async def test_leaving_ends_a_session_unless_it_is_kept_or_something_went_wrong(
    autojump_clock: MockClock, table: Table
) -> None:
    async with table.me.arena("hilo") as session:
        with pytest.raises(Refused, match="NOT_FOUND"):
            await session.verify()
    assert (session.over, session.version) == ("stopped", 1)
    assert (await session.verify()).revealed
    async with table.me.arena("hilo", keep=True, config={"reveal": "never"}) as kept:
        pass
    assert kept.over is None
    with pytest.raises(KeyError):
        async with table.me.arena("hilo") as left:
            raise KeyError
    with trio.CancelScope() as scope:
        async with table.me.arena("hilo") as cut:
            scope.cancel()
            await trio.lowlevel.checkpoint()
    for each in (left, cut):
        assert (await (await table.me.session(each.session_id)).refresh()).over is None
    again = await table.me.session(kept.session_id)
    await again.leave()
    await again.leave()
    assert (again.over, (await again.verify()).revealed) == ("stopped", False)
    assert (await kept.verify()).foreseen


@pytest.mark.requirement("client.arena")
async def test_the_agents_own_points_go_from_session_to_session(
    autojump_clock: MockClock, table: Table
) -> None:
    events = table.me.events()
    async with table.me.arena("hilo", mode="persistent") as session:
        assert session.points == 10_000
        while session.net == 0:
            await session.act({**guess(session), "stake": 100})
        assert (session.view.account.kind, session.points) == ("persistent", 10_000 + session.net)
    async with table.me.arena("hilo", 1, "persistent") as following:
        assert following.points == session.points
        with pytest.raises(Refused, match="ILLEGAL_ACTION"):
            await following.act(guess(following), stake=1_000_000)
        assert (following.version, following.over) == (0, None)
    assert (await following.verify()).revealed
    with trio.fail_after(60):
        event = await anext(events)
    ended = {"session_id": session.session_id, "over": "stopped", "net": session.net}
    assert (event.kind, {**event.data, **ended}) == ("arena", event.data)


@pytest.mark.requirement("client.arena-verify")
async def test_an_artifact_is_asked_for_until_it_comes(
    autojump_clock: MockClock, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, asked = table.net.bench.broker, []
    read = broker.artifact

    async def late(caller: Any, ref: str) -> Any:
        asked.append(ref)
        return refuse("unavailable", "not now") if len(asked) == 1 else await read(caller, ref)

    monkeypatch.setattr(broker, "artifact", late)
    async with table.me.arena("hilo") as session:
        pass
    proof = await session.verify()
    assert asked == [proof.ref, proof.ref]
    session.view = msgspec.structs.replace(session.view, over="bust")
    with pytest.raises(WireFault, match="ended in another way"):
        await session.verify()


@pytest.mark.requirement("client.arena")
async def test_a_key_that_is_no_agents_does_not_play(autojump_clock: MockClock, dealer: Connect) -> None:
    async with dealer() as desk:
        with pytest.raises(Refused, match="agent_required"):
            desk.arena("hilo")


@pytest.mark.requirement("client.arena", "client.arena-once")
async def test_a_killed_broker_forgets_no_action_and_repeats_none(tmp_path: Path) -> None:
    broker = Restartable(tmp_path)
    with trio.fail_after(50):
        async with AsyncExitStack() as stack:
            async with broker.run() as process:
                url = f"http://{broker.http}"
                me = await stack.enter_async_context(open_agent(url, SigningKey.generate(), wire=broker.wire))
                await me.register("alfa")
                desk = await stack.enter_async_context(me.dealer())
                session = await stack.enter_async_context(desk.arena("hilo", config={"points": 500}))
                await session.act(guess(session))
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(play_on, session, 40)
                    while session.version < 5:  # noqa: ASYNC110  # it moves with answers of another process
                        await trio.sleep(0.002)
                    process.process.kill()
                    await process.process.wait()
                    nursery.cancel_scope.cancel()
            async with broker.run():
                await play_on(session, 43)
                seen = await me.call("get_session", session_id=session.session_id, events_after=-1)
                assert [each["n"] for each in seen["events"]] == list(range(session.version + 1))
                await session.leave()
                assert (await session.verify()).foreseen
                await stack.aclose()


async def play_on(session: Session, version: int) -> None:
    """Play up to a version; nobody else does."""
    while session.version < version:
        await session.act(guess(session))
