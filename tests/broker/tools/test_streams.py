"""desk_rings and wait_for_events: what waits, the first that comes, progress, and the same cursor for all."""

import json
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.app import Caller
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent, suspend
from tests.support.broker import ANYONE, Bench, Party, code


def following(bench: Bench, party: Party, **members: Any) -> dict[str, Any]:
    return party.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 3600, **members)


@pytest.mark.requirement("tools.desk-rings")
async def test_rings_that_wait_are_given_at_once_and_the_cursor_goes_on(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    lines = [await bench.connect(alfa, brav) for _ in range(3)]
    answer = await bench.call("desk_rings", code="BRAV", after="0", **following(bench, brav))
    assert [ring["conv"] for ring in answer["rings"]] == [line.conv for line in lines]
    again = await bench.call("desk_rings", code="BRAV", after=answer["cursor"], **following(bench, brav))
    assert (again["rings"], again["resume"]["recovered"]) == ([], True)
    mine = await bench.call("desk_rings", code="ALFA", after="0", **following(bench, alfa))
    assert mine["rings"] == [], "the caller gets its own CALL as env"


@pytest.mark.requirement("tools.desk-rings")
async def test_waiting_ends_at_the_first_ring_or_when_the_time_is_over(
    bench: Bench, autojump_clock: Any
) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    answers: list[Any] = []

    async def wait() -> None:
        answers.append(await bench.call("desk_rings", code="BRAV", wait_ms=20_000, **following(bench, brav)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.sleep(5)
        line = await bench.dial(alfa, brav)
    assert [ring["conv"] for ring in answers[0]["rings"]] == [line.conv]
    start = trio.current_time()
    empty = await bench.call("desk_rings", code="BRAV", wait_ms=600_000, **following(bench, brav))
    assert empty["rings"] == []
    assert trio.current_time() - start == pytest.approx(25.0), "capped below the clients' time-outs"


@pytest.mark.requirement("tools.desk-rings")
async def test_with_progress_each_ring_is_told_until_the_time_is_over(
    bench: Bench, autojump_clock: Any
) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    told: list[str] = []

    async def progress(ring: bytes) -> None:
        told.append(json.loads(ring)["conv"])

    params = json.dumps({"code": "BRAV", "wait_ms": 10_000, **following(bench, brav)}).encode()
    start = trio.current_time()
    convs: list[str] = []

    async def dial() -> None:
        for _ in range(3):
            await trio.sleep(2)
            convs.append((await bench.dial(alfa, brav)).conv)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(dial)
        answer = await bench.broker.call(ANYONE, "desk_rings", params, progress=progress)
    assert not isinstance(answer, Refusal)
    assert told == convs
    assert trio.current_time() - start == pytest.approx(10.0)


@pytest.mark.requirement("tools.wait-for-events")
async def test_events_of_all_kinds_come_in_order_with_one_cursor(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    line = await bench.connect(alfa, brav)
    await line.send("END")
    await bench.call("close_desk", **brav.statement("close_desk", bench.broker.pk, bench.ts, code="BRAV"))
    page = await bench.call("wait_for_events", after="0", limit=2, **following(bench, brav))
    rest = await bench.call("wait_for_events", after=page["cursor"], **following(bench, brav))
    kinds = [event["event"] for event in page["events"] + rest["events"]]
    assert kinds == ["ring", "env", "end", "desk_closed"]
    assert rest["events"][0]["own"] is False
    cursor = page["events"][-1]["cursor"]
    reader = await bench.broker.follow(ANYONE.__class__(pk=brav.pk), after=cursor)
    assert not isinstance(reader, Refusal)
    async with reader:
        assert [delivery.kind for delivery in await reader.receive()] == ["end", "desk_closed"]


@pytest.mark.requirement("tools.wait-for-others")
async def test_only_what_others_wrote_or_only_ones_own(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    line = await bench.connect(alfa, brav)
    await line.send("ASK")
    await line.send("ANSWER")
    follow = following(bench, brav)

    async def kinds(**members: Any) -> tuple[list[tuple[str, bool]], str]:
        page = await bench.call("wait_for_events", after="0", **members, **follow)
        return [(event["event"], event["own"]) for event in page["events"]], page["cursor"]

    both, end = await kinds()
    assert both == [("ring", False), ("env", True), ("env", False), ("env", True)]
    assert await kinds(own=None) == (both, end), "null is none"
    assert await kinds(own=False) == ([("ring", False), ("env", False)], end)
    assert await kinds(own=True) == ([("env", True), ("env", True)], end)
    first = await bench.call("wait_for_events", after="0", own=False, limit=1, **follow)
    rest = await bench.call("wait_for_events", after=first["cursor"], own=False, **follow)
    assert [event["event"] for event in first["events"] + rest["events"]] == ["ring", "env"]
    refused = await bench.call("wait_for_events", own="false", **follow)
    assert (code(refused), refused.detail["path"]) == ("bad_request", "own")


@pytest.mark.requirement("tools.wait-for-others")
async def test_a_wait_for_others_goes_on_past_ones_own(bench: Bench, autojump_clock: Any) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    line = await bench.connect(alfa, brav)
    follow = following(bench, alfa)
    before = (await bench.call("wait_for_events", after="0", **follow))["cursor"]
    pages: list[Any] = []

    async def wait() -> None:
        asked = {"after": before, "wait_ms": 20_000, "own": False, **follow}
        pages.append(await bench.call("wait_for_events", **asked))

    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.sleep(2)
        await line.send("ASK")
        await trio.sleep(2)
        assert not pages, "its own envelope ends no wait"
        await line.send("ANSWER")
    assert trio.current_time() - start == pytest.approx(4.0)
    assert [(event["event"], event["own"]) for event in pages[0]["events"]] == [("env", False)]
    await line.send("ASK")
    empty = await bench.call("wait_for_events", after=pages[0]["cursor"], wait_ms=1000, own=False, **follow)
    assert (empty["events"], empty["cursor"] != pages[0]["cursor"]) == ([], True)
    nothing = await bench.call("wait_for_events", after=empty["cursor"], **follow)
    assert nothing["events"] == [], "the cursor has passed over what was not asked for"


@pytest.mark.requirement("statements.follow")
async def test_a_capability_for_a_code_ends_when_the_desk_moves(bench: Bench) -> None:
    brav = await bench.open("BRAV")
    by_code, by_key = following(bench, brav, code="BRAV"), following(bench, brav)
    assert code(await bench.call("wait_for_events", **by_code)) == "accepted"
    await bench.call("close_desk", **brav.statement("close_desk", bench.broker.pk, bench.ts, code="BRAV"))
    assert code(await bench.call("wait_for_events", **by_code)) in ("unknown_desk", "desk_moved")
    assert code(await bench.call("wait_for_events", after="0", **by_key)) == "accepted"


async def test_statement_and_sig_go_together(bench: Bench) -> None:
    brav = await bench.open("BRAV")
    half = following(bench, brav)
    del half["sig"]
    answer = await bench.call("wait_for_events", **half)
    assert (code(answer), answer.detail["path"]) == ("bad_request", "sig")


async def test_cancelling_a_wait_changes_nothing(bench: Bench, autojump_clock: Any) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    follow = following(bench, brav)
    start = await bench.call("wait_for_events", **follow)
    async with trio.open_nursery() as nursery:
        params = msgspec.json.encode({"wait_ms": 20_000, "after": start["cursor"], **follow})
        nursery.start_soon(bench.broker.call, ANYONE, "wait_for_events", params)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    await bench.dial(alfa, brav)
    page = await bench.call("wait_for_events", after=start["cursor"], **follow)
    assert [event["event"] for event in page["events"]] == ["ring"]


# By a token


@pytest.mark.requirement("doors.agent-stream", "doors.listen-scope")
async def test_an_agents_token_waits_for_what_is_the_agents(bench: Bench, autojump_clock: Any) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    agent = await make_agent(bench, "alice", key=alfa.key)
    other = await make_agent(bench, "bob")
    deaf = msgspec.structs.replace(agent, scopes=frozenset({"profile"}))
    line = await bench.dial(brav, alfa)
    events = await bench.call("wait_for_events", agent, after="0")
    assert [(each["event"], each["conv"]) for each in events["events"]] == [("ring", line.conv)]
    rings = await bench.call("desk_rings", agent, code="ALFA", after="0")
    assert [each["conv"] for each in rings["rings"]] == [line.conv]
    assert (await bench.call("wait_for_events", other, after="0"))["events"] == []
    assert code(await bench.call("desk_rings", other, code="ALFA")) == "not_a_party"
    for name, params in (("wait_for_events", {}), ("desk_rings", {"code": "ALFA"})):
        refused = await bench.call(name, deaf, **params)
        assert (code(refused), refused.detail) == ("insufficient_scope", {"scope": "message"})
    by_key = await bench.call("wait_for_events", agent, after="0", **following(bench, brav))
    assert [each["event"] for each in by_key["events"]] == ["env"], "a statement beside the token says whose"


@pytest.mark.requirement("doors.agent-stream")
async def test_who_waits_by_a_token_is_present_as_the_agent(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    agent = await make_agent(bench, "alice", key=alfa.key)
    presence = bench.broker._services.presence
    assert agent.agent is not None
    assert not presence.online(agent.agent)
    await bench.call("wait_for_events", agent)
    assert presence.online(agent.agent)
    assert not presence.online(alfa.pk)
    await bench.call("desk_rings", agent, code="ALFA")
    assert presence.online(alfa.pk)


@pytest.mark.requirement("doors.right-lost", "doors.expiry")
@pytest.mark.parametrize("name", ["wait_for_events", "desk_rings"])
async def test_a_wait_ends_with_the_right_by_which_it_waits(
    bench: Bench, autojump_clock: Any, name: str
) -> None:
    alfa = await bench.open("ALFA")
    agent = await make_agent(bench, "alice", key=alfa.key)
    params = {"wait_ms": 20_000, **({"code": "ALFA"} if name == "desk_rings" else {})}
    proof = following(bench, alfa)
    answers: list[Any] = []

    async def wait(caller: Caller, **more: Any) -> None:
        answers.append(code(await bench.call(name, caller, **params, **more)))

    start = trio.current_time()
    await wait(msgspec.structs.replace(agent, until=bench.ts + 2))
    assert answers.pop() == "unauthenticated"
    assert trio.current_time() - start == pytest.approx(2, abs=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, agent)
        nursery.start_soon(lambda: wait(ANYONE, **proof))
        await trio.sleep(3)
        suspend(bench, agent)
    assert sorted(answers) == ["suspended", "unauthenticated"], "the key is the agent's no more"
    assert trio.current_time() - start == pytest.approx(5, abs=1)
    assert bench.broker._services.standing._held == {}
