"""SIGKILL under a task: it is there as it was told, and who follows it goes on where it stood (network.md, A2A)."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import h11
import pytest
import trio

from broker.wire.keys import SigningKey
from gateways.client.agent import Agent, open_agent
from gateways.eventstream import Decoder, Event
from tests.support.process import Served, served

QUIET = {"TURRET_VERIFY_HELPERS": "0"}


async def agree(asker: Agent, other: Agent) -> None:
    await asker.request_contact(str(other.agent_id), "work", ["task"])
    await other.respond(await anext(other.requests()), True)


async def follow(
    broker: Served, me: Agent, to: str, task_id: str, last: str | None, count: int
) -> list[Event]:
    """So many events of a task over A2A, as text/event-stream."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task_id}})
    parts = urlsplit(broker.http)
    headers = {
        "host": parts.netloc,
        "authorization": f"Bearer {await me.token()}",
        "a2a-version": "1.0",
        "content-type": "application/json",
        "content-length": str(len(body)),
        **({"last-event-id": last} if last is not None else {}),
    }
    connection, decoder = h11.Connection(h11.CLIENT), Decoder()
    events: list[Event] = []
    with trio.fail_after(10):
        async with await trio.open_tcp_stream(parts.hostname or "", parts.port or 80) as stream:
            request = h11.Request(method="POST", target=f"/a2a/{to}", headers=list(headers.items()))
            for each in (request, h11.Data(data=body.encode()), h11.EndOfMessage()):
                await stream.send_all(connection.send(each) or b"")
            while len(events) < count:
                found = connection.next_event()
                if found is h11.NEED_DATA:
                    connection.receive_data(bytes(await stream.receive_some(65_536)))
                elif isinstance(found, h11.Data):
                    events += decoder.feed(bytes(found.data))
                else:
                    assert isinstance(found, h11.Response), found
    return events


@pytest.mark.requirement("network.a2a.resume")
async def test_a_killed_broker_loses_no_event_of_a_task(tmp_path: Path) -> None:
    data, keys = tmp_path / "data", [SigningKey.generate(), SigningKey.generate()]
    async with (
        served(data, environment=QUIET) as broker,
        open_agent(broker.http, keys[0]) as ann,
        open_agent(broker.http, keys[1]) as bob,
    ):
        await ann.register("ann")
        await bob.register("bob")
        ids = [str(each.agent_id) for each in (ann, bob)]
        await agree(ann, bob)
        task = (await ann.tasks.give(ids[1], "do it")).task
        (first,) = await follow(broker, ann, ids[1], task.task_id, None, 1)
        await bob.tasks.working(task.task_id)
        await bob.tasks.ask(task.task_id, "which?")
        broker.kill()
        with trio.fail_after(10):
            await broker.process.wait()
    async with (
        served(data, environment=QUIET) as broker,
        open_agent(broker.http, keys[0], ids[0]) as ann,
        open_agent(broker.http, keys[1], ids[1]) as bob,
    ):
        asked = await ann.tasks.result(task.task_id)
        assert asked.task.state == "input-required"
        await bob.tasks.complete(task.task_id, "done")
        events = await follow(broker, ann, ids[1], task.task_id, first.id, 4)
    results = [json.loads(each.data)["result"] for each in events]
    states = [each["statusUpdate"]["status"]["state"] for each in results if "statusUpdate" in each]
    assert states == ["TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"]
    assert [set(each) for each in results][2] == {"artifactUpdate"}
