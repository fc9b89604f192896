"""Every server that the page on MCP clients configures is started, with the official Python client in front."""

import json
from pathlib import Path

import pytest
import trio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from broker.wire.keys import SigningKey
from gateways.keyfile import save_key
from tests.conformance import clients
from tests.conformance.judges import INSPECTOR, Judges
from tests.docs.pages import HOW_TO, blocks, command_lines, servers
from tests.gateways.agent.processes import ROOT, broker_process
from tests.support.process import Served
from tests.support.programs import turret_on_path

PAGE = "connect-an-mcp-client.md"
ORIGIN = "http://127.0.0.1:8766"
DEALS = {"who", "open_desk", "dial", "answer", "say", "hang_up", "wait", "read", "verify"}


def test_every_client_has_the_agent_before_the_broker() -> None:
    sections = (HOW_TO / PAGE).read_text().split("\n## ")[1:]
    named = [each for each in sections if "```" in each and not each.startswith("What the broker")]
    assert len(named) == 6
    for each in named:
        assert '"agent"' in each or "turret agent --url" in each, each
        after = each[max(each.find('"agent"'), each.find("-- turret agent")) :]
        assert f"{ORIGIN}/mcp" in after or "address of its `/mcp`" in after, each


def test_every_json_block_and_every_python_block_can_be_read() -> None:
    assert len([json.loads(each) for each in blocks(PAGE, "json")]) == 5
    for text in blocks(PAGE, "py"):
        compile(text, PAGE, "exec")
    kinds = ["url" if "url" in each else "command" for each in servers(PAGE)]
    assert (kinds.count("command"), kinds.count("url")) == (5, 4)


def test_the_command_lines_say_what_the_blocks_say() -> None:
    by_arguments = [each["args"] for each in servers(PAGE) if "args" in each]
    local = [each[each.index("--") + 1 :] for each in command_lines(PAGE) if "--" in each]
    assert [each[:2] for each in local] == [["turret", "agent"]] * 2
    assert local[0][1:] in by_arguments
    assert local[1][1:] == by_arguments[0][: len(local[1]) - 1]


async def start(configured: dict[str, object], broker: Served, directory: Path) -> set[str]:
    """Start a configured program; the names of its tools."""
    assert configured["command"] == "turret"
    assert isinstance(configured["args"], list)
    arguments = [
        each.replace("/srv/desk", str(directory)).replace(ORIGIN, broker.http) for each in configured["args"]
    ]
    assert broker.http in arguments
    environment = {**turret_on_path(directory, ROOT), "XDG_CONFIG_HOME": str(directory)}
    server = StdioServerParameters(command="turret", args=arguments, env=environment)
    with (directory / "agent.err").open("a") as errors:
        async with Client(stdio_client(server, errlog=errors)) as client:
            who = await client.call_tool("who", {})
            assert who.structured_content is not None
            assert who.structured_content["code"] == "ALFA"
            assert who.structured_content["rails"]["caps"] == {"qty": "5000000"}
            assert who.structured_content["rails"]["counterparties"] == ["BRAV"]
            return {each.name for each in (await client.list_tools()).tools}


async def test_every_block_starts_what_it_names(tmp_path: Path) -> None:
    save_key(tmp_path / "alfa.key", SigningKey.generate())
    with trio.fail_after(40):
        async with broker_process(tmp_path) as broker:
            for configured in servers(PAGE):
                if "command" in configured:
                    assert await start(configured, broker, tmp_path) == DEALS
                    continue
                assert configured["url"] == f"{ORIGIN}/mcp"
                async with Client(configured["url"].replace(ORIGIN, broker.http)) as client:
                    tools = {each.name for each in (await client.list_tools()).tools}
                    assert {"resolve_code", "send_env", "read_conv"} <= tools


def test_the_judge_is_called_as_make_conformance_calls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    def node(command: list[str], home: str) -> tuple[int, str, str]:
        calls.append(command)
        return 0, '{"result":{"tools":[{}]}}', "0 errors, 0 warnings"

    judges = Judges(tmp_path)
    folder = judges.at(INSPECTOR).parents[1] / ".bin"
    folder.mkdir(parents=True)
    (folder / "mcp-inspector").touch()
    monkeypatch.setattr(clients, "_node", node)
    clients.inspector(judges, ORIGIN)
    remote, local = (
        next(each for each in command_lines(PAGE) if each[:2] == ["npx", INSPECTOR] and has in each)
        for has in ("--server-url", "--")
    )
    assert remote[2:] in [each[2:] for each in calls]
    asked = remote[remote.index("--protocol-era") :]
    assert local[3 : local.index("--")] == asked
