"""An agent that goes leaves its channels."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from broker.actors.artifacts import read_artifact
from broker.actors.channel import Do
from broker.actors.check import Counts, check_store
from broker.actors.endpoint import SetEndpoint
from broker.actors.leaving import LINGER_MS
from broker.app import Caller
from broker.core.arena import SessionRow
from broker.core.channel import ChannelRow, Create, Join
from broker.core.conversation import DUE
from broker.store import sqlite_check
from broker.store.port import Fault
from broker.store.sqlite import SqliteStore
from tests.support.agents import make_agent
from tests.support.arena import open_session, submit
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.pairs import agree, told
from tests.support.registration import OPERATOR
from tests.support.stores import spoiled

DAY_MS = 86_400_000


async def channel(bench: Bench, owner: Caller, name: str, *others: Caller, private: bool = False) -> str:
    """A channel with members; its id."""
    made = await bench.call("create_channel", owner, name=name, is_private=private)
    for each in others:
        if private:
            params = {"channel_id": made["channel_id"], "invited_agent_id": each.agent}
            await bench.call("invite_agent_to_channel", owner, **params)
        await bench.call("join_channel", each, channel_id=made["channel_id"])
    return str(made["channel_id"])


async def shown(bench: Bench, caller: Caller, name: str) -> Any:
    listed = (await bench.call("list_channels", caller))["channels"]
    return next(each for each in listed if each["name"] == name)


@pytest.mark.requirement("moderation.channels")
async def test_who_is_gone_is_counted_in_no_channel(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.actors.leaving.AT_ONCE", 2)
    ann, gone = await make_agent(bench, "Ann"), await make_agent(bench, "Gone", test=True)
    for number in range(5):
        await channel(bench, ann, f"town-{number}", gone)
    invited = await channel(bench, ann, "secret", private=True)
    params = {"channel_id": invited, "invited_agent_id": gone.agent}
    await bench.call("invite_agent_to_channel", ann, **params)
    await bench.call("delete_test_agent", OPERATOR, agent_id=gone.agent)
    for number in range(5):
        assert (await shown(bench, ann, f"town-{number}"))["members"] == 1
    assert await bench.store.find("member", "agent", str(gone.agent)) == []
    town = (await shown(bench, ann, "town-0"))["channel_id"]
    assert code(await bench.call("send_channel_message", ann, channel_id=town, body="hello")) == "accepted"
    bob = await make_agent(bench, "Bob")  # the actor, which has read it before, reads it again
    assert (await bench.call("join_channel", bob, channel_id=town))["members"] == 2


@pytest.mark.requirement("moderation.channels")
async def test_what_an_agent_had_begun_when_it_went_is_looked_for_once_more(
    bench: Bench, autojump_clock: Any
) -> None:
    ann, gone = await make_agent(bench, "Ann"), await make_agent(bench, "Gone", test=True)
    town, house = await channel(bench, ann, "town"), bench.broker._services.house
    await bench.call("delete_test_agent", OPERATOR, agent_id=gone.agent)
    # What was on its way to these actors when the agent went is done after that.
    await house.ask("channel", town, Do(Join(str(gone.agent))))
    own = ChannelRow("ch_own", "own", str(gone.agent), bench.clock.now_ms())
    await house.ask("channel", own.channel_id, Do(Create(own)))
    await house.ask("endpoint", str(gone.agent), SetEndpoint("https://x.example/a2a"))
    assert (await shown(bench, ann, "town"))["members"] == 2
    await trio.sleep(2 * LINGER_MS / 1000)
    assert (await shown(bench, ann, "town"))["members"] == 1
    assert (await shown(bench, ann, "own"))["owner_agent_id"] is None
    for kind in ("endpoint", "leaving"):
        assert await bench.store.get(kind, str(gone.agent)) is None, kind


@pytest.mark.requirement("network.a2a.kept")
async def test_open_tasks_of_an_agent_that_is_gone_fail(bench: Bench, autojump_clock: Any) -> None:
    ann, bob, gone = [await make_agent(bench, name, test=name == "Gone") for name in ("Ann", "Bob", "Gone")]
    await agree(bench, ann, gone, scopes=["task"])
    await agree(bench, ann, bob, scopes=["task"])
    tasks = {}
    for name, giver, taker in (("given", gone, ann), ("taken", ann, gone), ("others", ann, bob)):
        made = await bench.call("send_task", giver, target_agent_id=taker.agent, text=name)
        tasks[name] = made["task"]["task_id"]
    await bench.call("delete_test_agent", OPERATOR, agent_id=gone.agent)
    await trio.sleep(2 * LINGER_MS / 1000)
    states = {
        name: (await bench.call("get_task", ann, task_id=task_id))["task"]["state"]
        for name, task_id in tasks.items()
    }
    assert states == {"given": "failed", "taken": "failed", "others": "submitted"}
    assert [each["by"] for each in await told(bench, ann, "task")][-2:] == ["network"] * 2
    await trio.sleep(2 * LINGER_MS / 1000)
    assert await bench.store.get("leaving", str(gone.agent)) is None


@pytest.mark.requirement("arena.gone")
async def test_open_sessions_of_an_agent_that_is_gone_are_over(
    autojump_clock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.actors.leaving.AT_ONCE", 2)
    store = await SqliteStore.open(tmp_path / "data", hop="inline")
    async with open_bench(tuned(store={"min_free_bytes": 0}), store) as bench:
        ann, gone = await make_agent(bench, "Ann"), await make_agent(bench, "Gone", test=True)
        modes = ("persistent", "simulation", "persistent")
        left = [await open_session(bench, gone, mode=mode) for mode in modes]
        assert code(await submit(bench, gone, left[0])) == "accepted"
        stays = await open_session(bench, ann)
        await bench.call("delete_test_agent", OPERATOR, agent_id=gone.agent)
        await trio.sleep(4 * LINGER_MS / 1000)
        for session in left:
            document = await store.get("arena", session["session_id"])
            assert document is not None
            row = msgspec.json.decode(document.doc, type=SessionRow)
            assert (row.over, row.due) == ("expired", None)
            assert await read_artifact(store, row.ref or "") is not None
        assert await store.find("arena", "open", str(gone.agent)) == []
        assert await store.get("leaving", str(gone.agent)) is None
        assert code(await submit(bench, ann, stays)) == "accepted"
    await store.aclose()
    with sqlite_check.opened(spoiled(tmp_path / "data")) as (snapshot, _):
        assert snapshot is not None
        faults = [step for step in check_store(snapshot, Counts()) if isinstance(step, Fault)]
    assert [each for each in faults if each.where != "audit"] == []


@pytest.mark.requirement("arena.gone")
async def test_a_suspended_agents_sessions_wait_for_it(bench: Bench, autojump_clock: Any) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann)
    await bench.call("suspend_agent", OPERATOR, agent_id=ann.agent, reason="why")
    assert await bench.broker._services.house.ask("arena", session["session_id"], DUE) is None
    await bench.call("unsuspend_agent", OPERATOR, agent_id=ann.agent)
    assert code(await submit(bench, ann, session)) == "accepted"


@pytest.mark.requirement("moderation.channels")
async def test_an_unclaimed_agent_whose_time_is_over_leaves_too(bench: Bench, autojump_clock: Any) -> None:
    ends = bench.clock.now_ms() + DAY_MS
    ann = await make_agent(bench, "Ann")
    young = await make_agent(bench, "Young", tier="unclaimed", expires_at=ends)
    await channel(bench, ann, "town", young)
    await trio.sleep(DAY_MS / 1000 + 5)
    assert (await shown(bench, ann, "town"))["members"] == 1


@pytest.mark.requirement("moderation.channels")
async def test_operators_give_what_a_gone_agent_owned_to_another(bench: Bench) -> None:
    gone, bob, cay = (
        await make_agent(bench, "Gone", test=True),
        await make_agent(bench, "Bob"),
        await make_agent(bench, "Cay"),
    )
    town = await channel(bench, gone, "town", bob, private=True)
    await bench.call("delete_test_agent", OPERATOR, agent_id=gone.agent)
    row = await shown(bench, bob, "town")
    assert (row["owner_agent_id"], row["members"], row["role"]) == (None, 1, "member")
    assert code(await bench.call("send_channel_message", bob, channel_id=town, body="alone")) == "accepted"
    given = await bench.call("transfer_channel", OPERATOR, channel_id=town, new_owner_agent_id=cay.agent)
    assert (given["owner_agent_id"], given["members"]) == (cay.agent, 2)
    assert (
        code(await bench.call("invite_agent_to_channel", cay, channel_id=town, invited_agent_id=bob.agent))
        == "already_exists"
    )  # as an owner, of a member
    again = await bench.call("transfer_channel", OPERATOR, channel_id=town, new_owner_agent_id=bob.agent)
    assert (again["owner_agent_id"], again["members"]) == (bob.agent, 2)
    assert (await shown(bench, cay, "town"))["role"] == "member"
    assert code(await bench.call("leave_channel", cay, channel_id=town)) == "accepted"


@pytest.mark.requirement("moderation.channels", "channel.check")
async def test_a_channel_without_an_owner_holds_in_a_check(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "data", hop="inline")
    async with open_bench(store=store) as bench:
        gone, bob = await make_agent(bench, "Gone", test=True), await make_agent(bench, "Bob")
        await channel(bench, gone, "town", bob)
        await bench.call("delete_test_agent", OPERATOR, agent_id=gone.agent)
    await store.aclose()
    with sqlite_check.opened(spoiled(tmp_path / "data")) as (snapshot, _):
        assert snapshot is not None
        faults = [step for step in check_store(snapshot, Counts()) if isinstance(step, Fault)]
    # The audit's rows are sealed by a key that a broker of a test's own keeps to itself.
    assert [each for each in faults if each.where != "audit"] == []
