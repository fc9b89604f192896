"""The demo's bots against each other, and against a counterparty that does not play fair."""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio

from broker.wire.keys import SigningKey
from gateways.client.connect import connect
from gateways.client.dealer import Desk
from gateways.demo import bot
from gateways.demo.market import ROUNDS, Maker, Taker
from gateways.keyfile import save_key
from tests.gateways.client.live import live_broker


@asynccontextmanager
async def desks() -> AsyncIterator[tuple[Desk, Desk]]:
    """ALFA over the dealing port, BRAV over MCP."""
    async with live_broker() as live, AsyncExitStack() as stack:
        alfa = await stack.enter_async_context(connect(live.dealing, SigningKey.generate(), live.wire))
        brav = await stack.enter_async_context(connect(live.mcp, SigningKey.generate(), live.wire))
        await alfa.open("ALFA")
        await brav.open("BRAV")
        yield alfa, brav


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the bots tell their parent."""
    lines: list[dict[str, Any]] = []
    monkeypatch.setattr(bot, "tell", lambda **event: lines.append(event))
    return lines


def said(told: list[dict[str, Any]]) -> list[str]:
    return [msgspec.json.decode(event["envelope"])["type"] for event in told if "envelope" in event]


@pytest.mark.parametrize("seed", [2, 5, 6, 7])
async def test_two_bots_come_to_an_end_that_their_seed_decides(told: list[dict[str, Any]], seed: int) -> None:
    with trio.fail_after(30):
        async with desks() as (alfa, brav), trio.open_nursery() as nursery:
            nursery.start_soon(bot.make, brav, Maker(seed))
            await bot.take(alfa, "BRAV", Taker(seed))
    types = said(told)
    assert types[:2] == ["CALL", "PICKUP"]
    assert types[-1] == "END"
    if "HIT" in types:
        assert types[-4:] == ["HIT", "CONFIRM", "CONFIRM", "END"]
    else:
        assert types[2:-1] == ["RFQ", "QUOTE"] * ROUNDS
    assert "conv" in told[-1]


@pytest.mark.parametrize(
    ("hit", "stands"),
    [
        ({}, True),
        ({"px": "1.00000"}, False),
        ({"qty": "1"}, False),
        ({"side": "both"}, False),
    ],
)
async def test_the_maker_stands_for_its_own_price_alone(hit: dict[str, str], stands: bool) -> None:
    with trio.fail_after(30):
        async with desks() as (alfa, brav), trio.open_nursery() as nursery:
            nursery.start_soon(bot.make, brav, Maker(1))
            async with alfa.dial("BRAV") as call:
                await call.send("HIT", {"side": "buy", "qty": "500000", "px": "1.08000"})
                assert (await call.receive()).type == "REJECT"  # nothing was quoted yet
                await call.send("RFQ", {"instrument": "EURUSD", "qty": "500000"})
                quote = await call.receive()
                await call.send("HIT", {"side": "buy", "qty": "500000", "px": quote.body["ask"], **hit})
                assert (await call.receive()).type == ("CONFIRM" if stands else "REJECT")


async def test_the_taker_hangs_up_when_another_deal_is_confirmed(told: list[dict[str, Any]]) -> None:
    taker = Taker(3)
    prices = {"buy": ("0.00001", "0.00002"), "sell": ("9.00000", "9.00001")}[taker.side]

    async def cheat(brav: Desk) -> None:
        async with (await brav.next_ring()).answer() as call:
            async for envelope in call:
                if envelope.type == "RFQ":
                    await call.send("QUOTE", {"bid": prices[0], "ask": prices[1]})
                else:
                    await call.send("CONFIRM", {"px": "7.00000"})

    with trio.fail_after(30):
        async with desks() as (alfa, brav), trio.open_nursery() as nursery:
            nursery.start_soon(cheat, brav)
            await bot.take(alfa, "BRAV", taker)
    assert said(told)[-2:] == ["CONFIRM", "END"]


def test_a_bot_that_can_not_connect_says_why_and_exits_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    async def alive(scope: trio.CancelScope) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(bot, "leave_with_parent", alive)
    save_key(tmp_path / "a.key", SigningKey.generate())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"ws://127.0.0.1:{probe.getsockname()[1]}"
    arguments = [
        "maker",
        "--url",
        url,
        "--key",
        str(tmp_path / "a.key"),
        "--wire",
        "57" * 32,
        "--code",
        "BRAV",
    ]
    assert bot.main(arguments) == 1
    assert capsys.readouterr().err.startswith("BRAV: cannot connect to 127.0.0.1:")
