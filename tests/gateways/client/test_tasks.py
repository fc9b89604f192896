"""Tasks as an agent's client has them, at the real broker on virtual time."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from broker.wire.keys import SigningKey
from broker.wire.task import View
from gateways.client.agent import Agent
from gateways.client.errors import Refused
from gateways.client.tasks import Part, said
from tests.gateways.client.real_network import RealNetwork, real_network
from tests.support.agents import make_agent


@pytest.fixture
async def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RealNetwork]:
    async with real_network(tmp_path, monkeypatch) as network:
        yield network


async def two(net: RealNetwork, stack: AsyncExitStack) -> tuple[Agent, Agent]:
    """Two agents that have agreed on tasks."""
    made: list[Agent] = []
    for name in ("alfa", "brav"):
        key = SigningKey.generate()
        caller = await make_agent(net.bench, name, key=key)
        made.append(await stack.enter_async_context(net.agent(key, caller.agent)))
    alfa, brav = made
    await alfa.request_contact(str(brav.agent_id), "work", ["task"])
    await brav.respond(await anext(brav.requests()), True)
    return alfa, brav


@pytest.mark.requirement("client.agent-tasks")
async def test_a_task_is_given_asked_about_added_to_and_answered(
    autojump_clock: MockClock, net: RealNetwork
) -> None:
    async with AsyncExitStack() as stack:
        alfa, brav = await two(net, stack)

        async def answer() -> None:
            given = brav.tasks.given()
            first = await anext(given)
            assert said(first) == "a quote"
            await brav.tasks.working(first)
            await brav.tasks.ask(first, "of what?")
            again = await anext(given)
            assert (again.task.task_id, said(again)) == (first.task.task_id, "of EURUSD")
            await brav.tasks.complete(again, "1.0802", parts=[Part(data={"bid": 1.0801})])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            task = await alfa.tasks.give(str(brav.agent_id), "a quote")
            asked = await alfa.tasks.result(task)
            assert (asked.task.state, said(asked)) == ("input-required", "of what?")
            await alfa.tasks.add(task, "of EURUSD")
            done = await alfa.tasks.result(task)
        assert (done.task.state, said(done)) == ("completed", "1.0802")
        assert done.artifacts[0].parts[1] == Part(data={"bid": 1.0801})


@pytest.mark.requirement("client.agent-tasks")
async def test_those_that_wait_come_first_and_what_is_over_not_at_all(
    autojump_clock: MockClock, net: RealNetwork
) -> None:
    async with AsyncExitStack() as stack:
        alfa, brav = await two(net, stack)
        to = str(brav.agent_id)
        one, gone, three = [await alfa.tasks.give(to, text) for text in ("one", "gone", "three")]
        await alfa.tasks.cancel(gone)
        given = brav.tasks.given()
        first = await anext(given)
        await brav.tasks.fail(first, "no")
        second = await anext(given)
        assert [said(first), said(second)] == ["one", "three"]
        four = await alfa.tasks.give(to, "four")
        found: list[View] = []
        with trio.move_on_after(60):
            found += [await anext(given), await anext(given)]
        assert found == []  # the fourth came and waits for who asks again
        assert said(await anext(brav.tasks.given())) == "three"
        await brav.tasks.reject(four, "won't")
        assert (await alfa.tasks.result(four)).task.state == "rejected"
        assert (await alfa.tasks.result(one)).task.state == "failed"
        assert [each.task.task_id for each in await brav.tasks.waiting()] == [three.task.task_id]


@pytest.mark.requirement("client.agent-tasks")
async def test_what_is_refused_is_raised(autojump_clock: MockClock, net: RealNetwork) -> None:
    async with AsyncExitStack() as stack:
        alfa, brav = await two(net, stack)
        with pytest.raises(Refused) as none:
            await brav.tasks.complete("tk_none", "x")
        assert none.value.code == "not_found"
        with pytest.raises(Refused) as stranger:
            await alfa.tasks.give("ag_" + "0" * 26, "x")
        assert stranger.value.code == "agreement_required"
