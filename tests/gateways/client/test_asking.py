"""One question, one answer, over each door of a real broker."""

import msgspec
import pytest
import trio

from broker.wire.keys import SigningKey
from gateways.client.asking import check_wire, open_asker, websocket_url
from gateways.client.clockwork import WireClock
from gateways.client.errors import Disconnected, Refused, WireFault
from gateways.client.signer import Signer
from tests.gateways.client.live import live_broker
from tests.support.network import listening, refused_port


@pytest.mark.parametrize("door", ["http", "mcp", "dealing"])
async def test_any_door_answers_a_question_and_shows_the_wire(door: str) -> None:
    with trio.fail_after(20):
        async with live_broker() as live, open_asker(getattr(live, door)) as asker:
            clock = WireClock(lambda: 0)
            await check_wire(asker, live.wire, clock)
            assert abs(clock.now_ms() - WireClock().now_ms()) < 10_000
            with pytest.raises(WireFault, match="shows the key"):
                await check_wire(asker, "ee" * 32, clock)
            signer = Signer(SigningKey.generate(), live.wire, clock)
            text, sig = signer.sign("open_desk", code="ALFA")
            opened = await asker.ask("open_desk", {"statement": msgspec.Raw(text), "sig": sig})
            assert msgspec.json.decode(opened)["pk"] == signer.pk
            found = msgspec.json.decode(await asker.ask("resolve_code", {"code": "ALFA"}))
            assert found["pk"] == signer.pk
            with pytest.raises(Refused, match="unknown_desk"):
                await asker.ask("resolve_code", {"code": "NONE"})
            waited = await asker.ask("wait_for_events", {"wait_ms": 1, **signer.follow()})
            assert msgspec.json.decode(waited)["events"] == []


async def test_nobody_there_is_told() -> None:
    for url in (f"http://127.0.0.1:{refused_port()}", f"ws://127.0.0.1:{refused_port()}"):
        with trio.fail_after(5), pytest.raises(Disconnected):
            async with open_asker(url):
                pytest.fail("nobody is there")
    with trio.fail_after(5):
        async with open_asker(f"http://127.0.0.1:{refused_port()}/mcp") as asker:
            with pytest.raises(Disconnected):
                await asker.greet()


@pytest.mark.parametrize(
    ("url", "reached"),
    [
        ("http://h:1", "ws://h:1/ws"),
        ("https://h/", "wss://h/ws"),
        ("ws://h:1", "ws://h:1"),
        ("wss://h/ws", "wss://h/ws"),
    ],
)
def test_a_plain_address_has_its_websocket_at_ws(url: str, reached: str) -> None:
    assert websocket_url(url) == reached


async def test_a_line_that_closes_at_once_is_told() -> None:
    async def close(stream: trio.SocketStream) -> None:
        await stream.aclose()

    async with listening(close) as (host, port):
        with trio.fail_after(5), pytest.raises(Disconnected):
            async with open_asker(f"ws://{host}:{port}"):
                pytest.fail("it was closed")
