"""The programs in docs/examples run against a live broker, as they are printed but for the address."""

import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
import trio

from broker.clock import SystemClock
from broker.wire.keys import SigningKey
from gateways.client.agent import Agent, open_agent
from gateways.client.registration import Identity, save_identity
from gateways.keyfile import save_key
from tests.gateways.client.live import Live, live_broker
from tests.support.agents import make_agent
from tests.support.broker import Bench

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
ADDRESS = '"http://127.0.0.1:8766"'


@asynccontextmanager
async def running(name: str, live: Live, directory: Path) -> AsyncIterator[trio.Process]:
    """The example as a process; ended with the block."""
    text = (EXAMPLES / name).read_text()
    assert text.count(ADDRESS) == 1
    url = live.http if "open_agent" in text else live.dealing
    program = text.replace(ADDRESS, f'"{url}", wire="{live.wire}", key').replace(", key, ", ", key=")
    process = await trio.lowlevel.open_process(
        [sys.executable, "-c", program], cwd=directory, stdout=-1, stderr=-1
    )
    try:
        yield process
    finally:
        process.terminate()
        with trio.CancelScope(shield=True):
            await process.wait()


def test_ten_lines_are_ten_lines() -> None:
    text = (EXAMPLES / "ten_lines.py").read_text()
    body = text.split('"""', 2)[2]
    assert len([line for line in body.splitlines() if line.strip()]) == 10


async def test_the_two_examples_deal_with_each_other(tmp_path: Path) -> None:
    for name in ("alfa", "brav"):
        save_key(tmp_path / f"{name}.key", SigningKey.generate())
    with trio.fail_after(30):
        async with live_broker() as live, running("ten_lines.py", live, tmp_path):
            while not live.broker.statistics().desks_online:  # noqa: ASYNC110  # another process: nothing to wait on
                await trio.sleep(0.05)
            async with running("take_a_price.py", live, tmp_path) as taker:
                assert taker.stdout is not None
                assert (
                    (await taker.stdout.receive_some()).decode().startswith("dealt at 1.0843: n = 4, chain ")
                )
                assert await taker.wait() == 0


async def lines(process: trio.Process) -> AsyncIterator[str]:
    """What it prints, line by line."""
    assert process.stdout is not None
    rest = b""
    async for piece in process.stdout:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode()


async def standard(live: Live, name: str, key: SigningKey) -> str:
    """An agent that an operator has registered: it may send more than twenty messages a day."""
    made = await make_agent(Bench(live.broker, None, SystemClock()), name, key=key)  # type: ignore[arg-type]
    return str(made.agent)


async def echo(me: Agent) -> None:
    """Answer every message, and count on the other one to stop."""
    async for message in me.inbox():
        assert message.body.startswith("It is")
        await me.reply(message, "And now?")


@pytest.mark.requirement("client.agent-loop")
async def test_the_agent_that_answers_by_itself_stops_where_the_loop_guard_stops_it(tmp_path: Path) -> None:
    key, mine = SigningKey.generate(), SigningKey.generate()
    save_key(tmp_path / "clock.key", key)
    with trio.fail_after(40):
        async with live_broker() as live, trio.open_nursery() as nursery:
            other, me_id = await standard(live, "clock", key), await standard(live, "echo", mine)
            save_identity(tmp_path / "clock.key.agent", Identity(other, "clock", key.pk, live.wire))
            async with (
                running("answering_agent.py", live, tmp_path) as clock,
                aclosing(lines(clock)) as said,
                open_agent(live.http, mine, me_id, live.wire) as me,
            ):
                assert await anext(said) == f"I am {other}"
                request = await me.request_contact(other, "what time is it")
                assert await anext(said) == f"agreed with {me_id}"
                assert (await me.outcome(request)).scopes == ("message",)
                nursery.start_soon(echo, me)
                await me.send(other, "What time is it?")
                assert await anext(said) == "no answer: quota_exceeded loop"
                assert (await me.call("get_inbox", limit=100))["messages"][0]["hops"] < 50
                nursery.cancel_scope.cancel()
