"""A whole deal through the official Python client; the same steps as typescript/deal.mjs."""

import json
import traceback
import warnings
from typing import Any

import anyio
import mcp_types as types
from mcp.client import Client
from mcp.client.subscriptions import ResourceUpdated


async def deal(url: str, mode: str, plan: dict[str, Any]) -> None:
    """Play a plan of deal.py. Raises whatever is wrong."""
    changed = anyio.Event()
    uri = f"turret://conv/{plan['conv']}"

    async def answer(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"code": plan["code"]})

    async def hear(message: Any) -> None:
        if getattr(getattr(message, "params", None), "uri", None) == uri:
            changed.set()

    with anyio.fail_after(60):
        async with Client(url, mode=mode, elicitation_callback=answer, message_handler=hear) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert {"send_call", "send_env", "read_conv", "desk_rings"} <= tools
            for step in plan["steps"]:
                await call(client, step)
            if mode == "legacy":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the client says that the other era has it no more
                    await client.subscribe_resource(uri)
                await call(client, plan["last"])
                with anyio.fail_after(10):
                    await changed.wait()
            else:
                async with client.listen(resource_subscriptions=[uri]) as updates:
                    await call(client, plan["last"])
                    with anyio.fail_after(10):
                        assert await anext(aiter(updates)) == ResourceUpdated(uri)
            await look(client, plan, uri)


async def call(client: Client, step: dict[str, Any]) -> dict[str, Any]:
    """One call that must not be refused."""
    result = await client.call_tool(step["name"], step["arguments"])
    assert not result.is_error, f"{step['name']}: {result.content}"
    assert result.structured_content is not None
    return dict(result.structured_content)


async def look(client: Client, plan: dict[str, Any], uri: str) -> None:
    """What was said is there by every way of reading it."""
    transcript = await call(client, {"name": "read_conv", "arguments": {"conv": plan["conv"]}})
    assert (transcript["state"], len(transcript["rows"])) == ("ended", plan["envelopes"])
    refused = await client.call_tool("resolve_code", {"code": "ZZZZ"})
    assert refused.is_error
    assert refused.structured_content is not None
    assert refused.structured_content["refusal"]["code"] == "unknown_desk"
    assert (await call(client, {"name": "resolve_code", "arguments": {}}))["pk"] == plan["pk"]
    content: Any = (await client.read_resource(uri)).contents[0]
    assert len(json.loads(content.text)["rows"]) == plan["envelopes"]
    assert len((await client.list_prompts()).prompts) == 3
    prompt = await client.get_prompt("answer_a_ring", {"code": plan["code"]})
    assert plan["code"] in str(prompt.messages[0].content)
    ref = types.PromptReference(type="ref/prompt", name="answer_a_ring")
    assert (await client.complete(ref, {"name": "code", "value": ""})).completion.values is not None


def reason(error: BaseException) -> str:
    """The innermost exceptions of a group, one a line."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(reason(each) for each in error.exceptions)
    return "".join(traceback.format_exception_only(error)).strip()
