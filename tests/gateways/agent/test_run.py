"""The agent as a process: its pipes, its log, how it ends; and served in memory."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import trio
from trio.testing import MockClock

from broker.wire.keys import SigningKey
from gateways.agent.line import Line
from gateways.agent.rails import Rails
from gateways.agent.run import serve
from tests.gateways.agent.processes import ROOT, Party, bare_agent, broker_process
from tests.gateways.client.conftest import Connect
from tests.gateways.client.fake_wire import FakeWire
from tests.support.process import Served


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Served]:
    """A broker process."""
    async with broker_process(tmp_path) as broker:
        yield broker


def call(id: int, tool: str, **arguments: object) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}) + b"\n"


@pytest.mark.requirement("agent.ends")
async def test_the_end_of_the_input_hangs_up_what_is_open(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, alfa: SigningKey, brav: SigningKey
) -> None:
    into, source = trio.open_memory_channel[bytes](10)
    sink, out = trio.open_memory_channel[bytes](10)
    conv = ""

    async def receive() -> bytes:
        async for data in source:
            return data
        return b""

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve, Line(dealer, alfa.pk, Rails(code="ALFA")), receive, sink.send)
            await into.send(call(1, "who"))
            assert b'"code":"ALFA"' in await out.receive()
            conv = await wire.ring(brav, "ALFA")
            await into.send(call(2, "answer"))
            assert b'"state":"open"' in await out.receive()
            await into.send(call(3, "wait"))
            into.close()
    last = msgspec.json.decode(wire.convs[conv][-1]["envelope"])
    assert (last["type"], last["from"], last["body"]) == ("END", alfa.pk, {"reason": "hung_up"})


@pytest.mark.requirement("agent.stdio", "agent.secrets", "agent.ends")
async def test_a_process_writes_messages_alone_and_no_secret(broker: Served, tmp_path: Path) -> None:
    party = Party(tmp_path, broker, "ALFA")
    with trio.fail_after(20):
        async with bare_agent(party, "--cap", "qty=5") as agent:
            await agent.write(
                b'{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25"}}\n'
            )
            instructions = (await agent.line())["result"]["instructions"]
            assert "qty at most 5" in instructions
            who = await agent.call("who")
            assert (who["pk"], who["code"], who["wire"]) == (party.key.pk, "ALFA", broker.pk)
            await agent.write(b"not json\n")
            assert (await agent.line())["error"]["code"] == -32700
            assert (await agent.call("dial", code="ZULU"))["refusal"]["code"] == "unknown_desk"
            assert await agent.close() == 0
        for line in agent.out.splitlines():
            assert msgspec.json.decode(line)["jsonrpc"] == "2.0"
        assert party.key.pk in agent.errors
        for shown in (agent.out.decode(), agent.errors):
            assert all(party.key.seed[at : at + 16] not in shown for at in range(0, 64, 16))


@pytest.mark.requirement("agent.ends")
async def test_a_signal_hangs_up_and_ends_it_with_its_input_open(broker: Served, tmp_path: Path) -> None:
    with trio.fail_after(20):
        async with (
            bare_agent(Party(tmp_path, broker, "ALFA")) as alfa,
            bare_agent(Party(tmp_path, broker, "BRAV")) as brav,
        ):
            for agent in (alfa, brav):
                await agent.call("who")
            ringing = await alfa.call("dial", code="BRAV", wait_ms=0)
            assert (await brav.call("answer"))["call"] == ringing["call"]
            began = trio.current_time()
            assert await alfa.signal(signal.SIGTERM) == 0
            assert trio.current_time() - began < 2
            ended = (await brav.call("wait", call=ringing["call"]))["events"][-1]
            assert (ended["event"], ended["body"]) == ("ended", {"reason": "hung_up"})
            assert await brav.close() == 0
        assert "Traceback" not in alfa.errors + brav.errors


@pytest.mark.requirement("agent.connects", "agent.ends")
@pytest.mark.parametrize("number", [None, signal.SIGINT, signal.SIGHUP])
async def test_without_a_broker_it_serves_and_ends_all_the_same(
    tmp_path: Path, number: signal.Signals | None
) -> None:
    with trio.fail_after(20):
        async with bare_agent(Party(tmp_path, None, "ALFA")) as agent:
            assert (await agent.call("who"))["connected"] is False
            assert (await agent.close() if number is None else await agent.signal(number)) == 0
        assert "no connection yet" in agent.errors


@pytest.mark.requirement("agent.connects")
async def test_a_wire_that_is_not_the_given_one_makes_the_exit_code_1(broker: Served, tmp_path: Path) -> None:
    party = Party(tmp_path, broker, "ALFA")
    with trio.fail_after(20):
        async with bare_agent(party, "--wire", "00" * 32) as agent:
            assert (await agent.call("who"))["ended"]["code"] == "wire_fault"
            assert await agent.close() == 1


@pytest.mark.requirement("agent.stdio")
async def test_requests_from_a_file_are_answered_before_it_ends(tmp_path: Path) -> None:
    party = Party(tmp_path, None, "ALFA")
    asked = tmp_path / "asked.jsonl"
    asked.write_bytes(
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
    )
    with trio.fail_after(20), asked.open("rb") as source:
        ran = await trio.run_process(
            party.command,
            stdin=source.fileno(),
            capture_stdout=True,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **party.environment},
        )
    assert [msgspec.json.decode(line)["id"] for line in ran.stdout.splitlines()] == [1, 2]


@pytest.mark.requirement("agent.stdio")
def test_what_anybody_prints_goes_to_standard_error() -> None:
    program = (
        "import trio\n"
        "from gateways.agent.run import _take_pipes\n"
        "receive, send = _take_pipes()\n"
        "print('stray', flush=True)\n"
        "async def main():\n"
        "    await send(await receive())\n"
        "trio.run(main)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=b"echo\n",
        capture_output=True,
        cwd=ROOT,
        check=True,
        timeout=20,
    )
    assert (ran.stdout, ran.stderr) == (b"echo\n", b"stray\n")


@pytest.mark.requirement("agent.base-install")
def test_the_agent_loads_no_server() -> None:
    names = [
        f"gateways.agent.{path.stem}"
        for path in (ROOT / "gateways/agent").glob("*.py")
        if path.stem != "__init__"
    ]
    libraries = ("quart", "quart_trio", "hypercorn", "sqlite3", "prometheus_client", "mcp", "mcp_types")
    program = (
        f"import sys\nfor name in {sorted(names)!r}: __import__(name)\n"
        f"print(*(each for each in {libraries!r} if each in sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == []
