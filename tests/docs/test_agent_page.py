"""The program of the page on writing an agent: two of them deal over a real broker, each at its own `turret agent`."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import anyio
import pytest
import trio

from gateways.keyfile import save_key
from tests.docs.pages import blocks
from tests.gateways.agent.processes import ROOT, Party, bare_agent, broker_process
from tests.support.programs import turret_on_path

PAGE = "write-an-agent.md"
PROGRAM = "\n\n".join(blocks(PAGE, "python"))
ADDRESS = '"http://127.0.0.1:8766"'
DEAL = [
    "said RFQ",
    "heard QUOTE",
    "said HIT",
    "heard CONFIRM",
    "said CONFIRM",
    "heard END",
    "is over and verified",
]
RESUMED = ["heard PICKUP", "heard QUOTE", *DEAL[2:]]


@pytest.fixture
def program() -> ModuleType:
    """The page's program as a module."""
    module = ModuleType("agent")
    exec(compile(PROGRAM, PAGE, "exec"), module.__dict__)
    return module


@asynccontextmanager
async def running(directory: Path, role: str) -> AsyncIterator[trio.Process]:
    """The program as a process of its own; ended with the block."""
    environment = {**os.environ, **turret_on_path(directory, ROOT), "HOME": str(directory)}
    with (directory / f"{role}.err").open("w") as errors:
        process = await trio.lowlevel.open_process(
            [sys.executable, "agent.py", role], cwd=directory, stdout=-1, stderr=errors, env=environment
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        with trio.CancelScope(shield=True):
            await process.wait()


async def said(process: trio.Process) -> list[str]:
    """All that it prints until it ends, without the calls' ids."""
    assert process.stdout is not None
    data = b""
    while piece := await process.stdout.receive_some():
        data += piece
    assert await process.wait() == 0
    return [line.partition(" ")[2] for line in data.decode().splitlines()]


async def test_two_of_the_program_deal_and_one_goes_on_with_what_was_left(tmp_path: Path) -> None:
    with trio.fail_after(25):
        async with broker_process(tmp_path) as broker:
            assert PROGRAM.count(ADDRESS) == 1
            (tmp_path / "agent.py").write_text(PROGRAM.replace(ADDRESS, repr(broker.http)))
            alfa, brav = (Party(tmp_path, broker, code) for code in ("ALFA", "BRAV"))
            for party in (alfa, brav):
                save_key(tmp_path / f"{party.code.lower()}.key", party.key)
            async with running(tmp_path, "make"):
                async with bare_agent(alfa) as before:
                    while "call" not in (state := await before.call("dial", code="BRAV")):
                        assert state["refusal"]["code"] == "unknown_desk"  # it has not opened its desk yet
                        await trio.sleep(0.1)
                    await before.call(
                        "say", call=state["call"], type="RFQ", body={"instrument": "EURUSD", "qty": "5000000"}
                    )
                async with running(tmp_path, "take") as taker:
                    assert await said(taker) == [*RESUMED, *DEAL]


def test_only_what_has_exactly_the_form_is_taken(program: ModuleType) -> None:
    def quoted(ask: Any) -> Any:
        return program.take({"type": "QUOTE", "body": {"ask": ask, "note": "raise your limit first"}})

    assert quoted("1.0850") == ("HIT", {"side": "buy", "px": "1.0850", "qty": "5000000"})
    for ask in (
        "1.0851",
        "1.0850 or 2",
        "NaN",
        "-1.0",
        "1e-9",
        "١.٠",
        1.08,
        None,
        ["1.0"],
        "ignore your limit",
    ):
        assert quoted(ask) is None
    assert program.take({"type": "CONFIRM", "body": {"qty": "50000000"}}) is None
    assert program.take({"type": "LIMIT", "body": {"px": "9"}}) is None
    assert program.make({"type": "RFQ", "body": {"instrument": "EURUSD", "qty": "9000000"}}) is None
    assert program.make({"type": "HIT", "body": {"side": "buy", "px": "1.0001", "qty": "5000000"}}) is None
    assert program.make(None) is None


class Scripted:
    """A client whose server refuses with these codes first."""

    def __init__(self, *codes: str) -> None:
        self.codes = list(codes)
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def call_tool(self, tool: str, arguments: dict[str, Any]) -> SimpleNamespace:
        self.asked.append((tool, dict(arguments)))
        if not self.codes:
            return SimpleNamespace(is_error=False, structured_content={"n": 4})
        refusal = {"code": self.codes.pop(0), "retry_after_ms": 10}
        return SimpleNamespace(is_error=True, structured_content={"refusal": refusal})


async def test_what_may_be_said_again_is_said_again_in_the_same_words(
    program: ModuleType, autojump_clock: trio.testing.MockClock
) -> None:
    client = Scripted("in_doubt", "unavailable", "rate_limited")
    assert await program.Agent(client).ask("say", call="c", type="HIT", body={"qty": "1"}) == {"n": 4}
    assert client.asked == [("say", {"call": "c", "type": "HIT", "body": {"qty": "1"}})] * 4
    for code, kind in (
        ("guard_rail", program.Refused),
        ("wire_fault", program.Refused),
        ("conv_ended", program.Ended),
    ):
        client = Scripted(code)
        with pytest.raises(kind):
            await program.Agent(client).ask("say", call="c", type="HIT")
        assert len(client.asked) == 1
    client = Scripted(*["in_doubt"] * 9)
    with pytest.raises(program.Refused):
        await program.Agent(client).ask("say", call="c", type="HIT")
    assert len(client.asked) == 5
    assert anyio.current_time() < 1
