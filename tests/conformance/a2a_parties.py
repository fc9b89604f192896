"""Two agents for the judges of A2A: one that gives tasks, and one that answers them over MCP.

Run as `python -m tests.conformance.a2a_parties URL OPERATORS_URL`, the operators' token in the environment. It prints
{"agent_id", "token"} (the answering agent, and a token of the other one) in one line, and answers until it is ended.
What it answers follows the prefix of a message's id, as the TCK's scenarios (scenarios/*.feature) say; every other task
is completed with its own text. Both agents have an owner: others have nothing pushed.
"""

import json
import os
import sys
from typing import Any, Final

import trio

from broker.wire.keys import SigningKey
from broker.wire.task import Part, View
from gateways.client.agent import Agent, open_agent
from gateways.client.mcp_link import ToolCaller
from gateways.client.tasks import Tasks, said

SLOW_S: Final = 4.0
TEXT: Final = {
    "tck-complete-task": "Hello from TCK",
    "tck-artifact-text": "Generated text content",
    "tck-stream-001": "Stream hello from TCK",
    "tck-stream-003": "Stream task lifecycle",
    "tck-stream-ordering-001": "Ordered output",
    "tck-stream-artifact-text": "Streamed text content",
    "tck-stream-artifact-chunked": "chunk-1 chunk-2",
}
FILE: Final = Part(raw="R2VuZXJhdGVk", filename="output.txt", media_type="text/plain")
LINK: Final = Part(url="https://example.com/output.txt", filename="output.txt", media_type="text/plain")
PARTS: Final[dict[str, Part]] = {
    "tck-artifact-file-url": LINK,
    "tck-artifact-file": FILE,
    "tck-artifact-data": Part(data={"key": "value", "count": 42}),
    "tck-stream-artifact-file": FILE,
}
SLOW: Final = ("test-resubscribe-message-id",)
WORKING: Final = ("tck-stream-",)


async def answer(tasks: Tasks, task: View) -> None:
    """What the scenario says of the task's last message."""
    asked = [each for each in task.history if each.by == "requester"][-1].message_id
    if asked.startswith("tck-input-required"):
        await tasks.ask(task, "what else?")
        return
    if asked.startswith("tck-reject-task"):
        await tasks.reject(task, "rejected")
        return
    if asked.startswith((*WORKING, *SLOW)):
        await tasks.working(task)
    if asked.startswith(SLOW):
        await trio.sleep(SLOW_S)
    part = next((part for prefix, part in PARTS.items() if asked.startswith(prefix)), None)
    if part is not None:
        await tasks.complete(task, parts=[part])
        return
    text = next((text for prefix, text in TEXT.items() if asked.startswith(prefix)), said(task) or "done")
    await tasks.complete(task, text)


async def answer_all(me: Agent, url: str) -> None:
    """Answer what comes, over MCP, side by side, until cancelled. A task that was taken back meanwhile needs no
    answer."""
    async with ToolCaller(f"{url}/mcp") as mcp, trio.open_nursery() as nursery:

        async def ask(tool: str, *, wait_s: float = 0, **params: Any) -> dict[str, Any]:
            mcp.token = await me.token()
            given = {name: value for name, value in params.items() if value is not None}
            return dict(json.loads(await mcp.call(tool, json.dumps(given).encode(), 30 + wait_s)))

        tasks = Tasks(ask, str(me.agent_id))

        async def one(task: View) -> None:
            try:
                await answer(tasks, task)
            except Exception as error:
                print(f"{task.task.task_id}: {error}", file=sys.stderr, flush=True)

        async for task in tasks.given():
            nursery.start_soon(one, task)


async def agree(asker: Agent, answerer: Agent) -> None:
    """The two agree on tasks."""
    request = await asker.request_contact(str(answerer.agent_id), "to judge", ["task"])
    async for each in answerer.requests():
        if each.request_id == request.request_id:
            await answerer.respond(each, True)
            return


async def own(operators: str, *agents: Agent) -> None:
    """Give agents an owner, by the operators' hand."""
    async with ToolCaller(f"{operators}/mcp") as mcp:
        mcp.token = os.environ["TURRET_OPERATOR_TOKEN"]

        async def call(tool: str, **params: str) -> Any:
            return json.loads(await mcp.call(tool, json.dumps(params).encode(), 10))

        owner = await call("create_owner", email="judge@example.com", password="a long enough password")
        for each in agents:
            await call("assign_agent_owner", agent_id=str(each.agent_id), owner_id=owner["owner_id"])


async def main(url: str, operators: str) -> None:
    """Meet, tell, answer."""
    async with (
        open_agent(url, SigningKey.generate()) as asker,
        open_agent(url, SigningKey.generate()) as answerer,
    ):
        await asker.register("The judge")
        await answerer.register("The judged")
        await own(operators, asker, answerer)
        await answerer.call(
            "update_my_profile", description="Answers the judges of A2A.", capabilities=["echo"]
        )
        await answerer.call("set_directory_visibility", public=True)
        await agree(asker, answerer)
        told: dict[str, Any] = {"agent_id": answerer.agent_id, "token": await asker.token()}
        print(json.dumps(told), flush=True)
        await answer_all(answerer, url)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:3])
