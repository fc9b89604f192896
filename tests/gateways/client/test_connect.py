"""connect(): the wire is known before anything is signed; and whole deals over the real doors."""

from pathlib import Path

import pytest
import trio

from broker.wire.ids import Pk
from broker.wire.keys import SigningKey
from gateways.client.clockwork import WireClock
from gateways.client.connect import connect, find_wire, make_link
from gateways.client.dealer import Desk
from gateways.client.errors import CallEnded, Disconnected, Refused, WireFault
from gateways.client.export import check_lines, read_lines
from gateways.client.link import WebSocketLink, settle
from gateways.client.mcp_link import McpLink
from gateways.client.signer import Signer, join_params
from tests.gateways.client.live import Live, live_broker
from tests.support.broker import tuned
from tests.support.network import refused_port

DOORS = [("dealing", "mcp"), ("mcp", "dealing"), ("dealing", "dealing"), ("mcp", "mcp")]


async def quote_once(desk: Desk) -> None:
    """Answer one call and quote whatever is asked."""
    ring = await desk.next_ring()
    async with ring.answer() as call:
        async for envelope in call:
            await call.send("QUOTE" if envelope.type == "RFQ" else "CONFIRM", {"px": "1.1"})


@pytest.mark.parametrize(("caller", "called"), DOORS)
async def test_two_desks_deal_over_the_real_doors(caller: str, called: str) -> None:
    with trio.fail_after(20):
        async with (
            live_broker() as live,
            connect(live.url(called), SigningKey.generate(), live.wire) as brav,
            connect(live.url(caller), SigningKey.generate(), live.wire) as alfa,
            trio.open_nursery() as nursery,
        ):
            await brav.open("BRAV")
            await alfa.open("ALFA")
            nursery.start_soon(quote_once, brav)
            async with alfa.dial("BRAV") as call:
                await call.send("RFQ", {"qty": "1"})
                assert (await call.receive()).body == {"px": "1.1"}
                await call.send("HIT", {"px": "1.1"})
                assert (await call.receive()).type == "CONFIRM"
                await call.send("CONFIRM")
                assert (await call.receive()).type == "CONFIRM"
                await call.end("done")

            async def ask(tool: str, params: dict[str, object]) -> bytes:
                return await settle(alfa.link, tool, join_params(params))

            lines = await read_lines(ask, call.conv, alfa.link.proof(), receipts=True)
            verdict = check_lines(lines, call.conv, (live.wire,))
    assert (verdict.rows, verdict.ended) == (9, "done")
    assert None not in verdict.received


@pytest.mark.parametrize("door", ["dealing", "mcp"])
async def test_rings_wait_for_a_desk_that_comes_later(door: str) -> None:
    with trio.fail_after(20):
        async with live_broker() as live:
            key = SigningKey.generate()
            async with connect(live.url(door), key, live.wire) as brav:
                await brav.open("BRAV")
            async with (
                connect(live.dealing, SigningKey.generate(), live.wire) as alfa,
                trio.open_nursery() as nursery,
            ):
                await alfa.open("ALFA")

                async def dial() -> None:
                    with pytest.raises(CallEnded) as caught:
                        async with alfa.dial("BRAV"):
                            pytest.fail("it was declined")
                    assert caught.value.reason == "not now"

                nursery.start_soon(dial)
                async with connect(live.url(door), key, live.wire) as again:
                    await (await again.next_ring()).decline("not now")


async def test_a_desk_is_online_while_it_listens_and_its_code_resolves() -> None:
    with trio.fail_after(20):
        async with (
            live_broker() as live,
            connect(live.dealing, SigningKey.generate(), live.wire) as alfa,
        ):
            await alfa.open("ALFA")
            assert await alfa.resolve("ALFA") == alfa.pk
            assert await alfa.presence(["ALFA", "NONE"]) == {"desks": {"ALFA": True, "NONE": False}}
            await alfa.close()
            with pytest.raises(Refused, match="unknown_desk"):
                await alfa.resolve("ALFA")


async def test_a_private_transcript_is_read_with_the_partys_proof() -> None:
    with trio.fail_after(20):
        async with (
            live_broker(tuned(transcripts="parties")) as live,
            connect(live.mcp, SigningKey.generate(), live.wire) as alfa,
            connect(live.dealing, SigningKey.generate(), live.wire) as brav,
            trio.open_nursery() as nursery,
        ):
            await alfa.open("ALFA")
            await brav.open("BRAV")
            nursery.start_soon(quote_once, brav)
            async with alfa.dial("BRAV") as call:
                pass
            for desk in (alfa, brav):
                assert (await desk.join(call.conv)).ended is not None
            async with connect(live.mcp, SigningKey.generate(), live.wire) as mallory:
                with pytest.raises(Refused, match="unknown_conv"):
                    await mallory.join(call.conv)


@pytest.mark.requirement("client.pin")
async def test_the_first_key_that_an_address_publishes_is_pinned(tmp_path: Path) -> None:
    known = tmp_path / "turret" / "known_wires"
    with trio.fail_after(20):
        async with live_broker() as live:
            async with connect(live.http, SigningKey.generate(), known_wires=known) as desk:
                assert desk.wire == live.wire
            assert live.wire in known.read_text()
            # the public address has pinned the dealing port too
            assert await find_wire(live.dealing, None, known_wires=known) == live.wire


@pytest.mark.requirement("client.pin-changed")
@pytest.mark.parametrize("door", ["dealing", "mcp"])
async def test_a_wire_with_another_key_than_the_pinned_one_gets_no_statement(door: str) -> None:
    other = SigningKey.generate().pk
    with trio.fail_after(20):
        async with live_broker() as live:
            with pytest.raises(WireFault, match="shows the key"):
                async with connect(live.url(door), SigningKey.generate(), other):
                    pytest.fail("it was trusted")
            assert live.broker.statistics().desks_online == 0


async def test_nobody_there_is_told_in_one_line() -> None:
    url = f"ws://127.0.0.1:{refused_port()}"
    with (
        trio.fail_after(5),
        pytest.raises(Disconnected, match=r"cannot connect to 127\.0\.0\.1:\d+: Connection refused"),
    ):
        async with connect(url, SigningKey.generate(), SigningKey.generate().pk):
            pass


async def test_what_is_no_wire_is_told(live_http: Live) -> None:
    with trio.fail_after(20), pytest.raises(Disconnected, match="HTTP 404"):
        async with connect(
            live_http.http.replace("http", "ws") + "/nothing", SigningKey.generate(), live_http.wire
        ):
            pass


@pytest.fixture
async def live_http(nursery: trio.Nursery) -> Live:
    """A live broker for the length of a test."""

    async def run(task_status: trio.TaskStatus[Live]) -> None:
        async with live_broker() as live:
            task_status.started(live)
            await trio.sleep_forever()

    live: Live = await nursery.start(run)
    return live


@pytest.mark.parametrize("url", ["127.0.0.1:80", "ftp://host", "http://"])
async def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is not a ws, wss, http or https URL"):
        async with connect(url, SigningKey.generate(), SigningKey.generate().pk):
            pass
    with pytest.raises(ValueError, match="64 lowercase hex"):
        await find_wire("http://host", "ABCD")


@pytest.mark.parametrize(
    ("url", "kind", "reached"),
    [
        ("http://host:1", WebSocketLink, "ws://host:1/ws"),
        ("https://host/", WebSocketLink, "wss://host/ws"),
        ("ws://host:1", WebSocketLink, "ws://host:1"),
        ("https://host/mcp", McpLink, "https://host/mcp"),
        ("http://host/mcp/wire", McpLink, "http://host/mcp/wire"),
    ],
)
def test_the_url_names_the_link(url: str, kind: type, reached: str) -> None:
    link = make_link(url, Signer(SigningKey.generate(), Pk("00" * 32), WireClock()))
    assert type(link) is kind
    assert isinstance(link, WebSocketLink | McpLink)
    assert link.url == reached
