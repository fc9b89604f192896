"""A broker process is killed and started again under agents that talk: nothing is lost, nothing comes twice."""

from pathlib import Path

import pytest
import trio

from broker.wire.keys import SigningKey
from gateways.client.agent import Agent, open_agent
from tests.gateways.client.test_restart import Restartable


async def agree(alfa: Agent, brav: Agent) -> str:
    """BRAV's id, once the two may talk."""
    await alfa.register("alfa")
    other = (await brav.register("brav")).agent_id
    request = await alfa.request_contact(other, "prices")
    await brav.respond(await anext(brav.requests()), True)
    assert (await alfa.outcome(request)).status == "accepted"
    return other


@pytest.mark.requirement("client.agent-inbox", "client.agent-once")
async def test_a_killed_broker_loses_no_message_and_repeats_none(tmp_path: Path) -> None:
    broker, got = Restartable(tmp_path), list[str]()

    async def listen(me: Agent) -> None:
        async for message in me.inbox():
            got.append(message.body)

    with trio.fail_after(50):
        async with trio.open_nursery() as agents:
            async with broker.run() as process:
                url, keys = f"http://{broker.http}", [SigningKey.generate(), SigningKey.generate()]
                alfa, brav = [await agents.start(hold, url, key, broker.wire) for key in keys]
                other = await agree(alfa, brav)
                agents.start_soon(listen, brav)
                await alfa.send(other, "1")
                async with trio.open_nursery() as sending:
                    sending.start_soon(alfa.send, other, "2")
                    process.process.kill()
                    await process.process.wait()
                    agents.start_soon(alfa.send, other, "3")  # while nobody is there
                    sending.cancel_scope.cancel()
            async with broker.run():
                await alfa.send(other, "4")
                while not {"3", "4"} <= set(got):  # noqa: ASYNC110  # another task's list
                    await trio.sleep(0.02)
                inbox = await brav.call("get_inbox", limit=100)
                assert [each["body"] for each in reversed(inbox["messages"])] == got
            agents.cancel_scope.cancel()
    assert len(got) == len(set(got))
    assert set(got) - {"2"} == {"1", "3", "4"}


async def hold(
    url: str,
    key: SigningKey,
    wire: str,
    task_status: trio.TaskStatus[Agent],
) -> None:
    """An agent until it is cancelled."""
    async with open_agent(url, key, wire=wire) as me:
        task_status.started(me)
        await trio.sleep_forever()
