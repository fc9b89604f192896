"""Tokens on `/ws`: in the upgrade and in a frame, and what may be sent with one."""

from contextlib import suppress

import pytest
import trio
import trio.lowlevel
from trio.testing import wait_all_tasks_blocked
from websockets.frames import Opcode

from broker.apart import LARGE, apart
from broker.config import Limits, Settings, Streams
from broker.wire.refusals import refuse
from gateways.bodies import Rooms
from tests.gateways.test_handshake import head, status
from tests.gateways.test_websocket import open_public
from tests.support.broker_fake import FakeBroker
from tests.support.peers import exchange
from tests.support.tokens import agent_of, gate_of
from tests.support.ws import Port, masked, open_port, open_session, request


@pytest.mark.requirement("doors.ws-token", "doors.ws-close", "doors.challenge")
async def test_an_upgrade_bears_a_token_as_on_the_dealing_port() -> None:
    broker = FakeBroker()
    gate, bearers = gate_of(broker)
    bearers.give("t", agent_of("ag_1"))
    async with open_public(broker, gate=gate) as port:
        client = await port.dial({"Authorization": "Bearer t"}, path="/ws")
        await client.ask("echo")
        assert broker.calls[-1][0].agent == "ag_1"
        bad = head(path="/ws", authorization="Bearer bad")
        answer = await exchange(port.address, bad)
        assert status(answer) == 401
        assert b"www-authenticate: Bearer resource_metadata=" in answer
        broker.lose("ag_1", refuse("suspended", "no"))
        assert await client.wait_closed(1) == (4001, "suspended: no")


@pytest.mark.requirement("doors.body-limit", "doors.large")
async def test_who_bears_a_token_may_send_larger_frames_and_nobody_else() -> None:
    broker = FakeBroker(Settings(limits=Limits(frame_bytes=16_384, token_bytes=200_000)))
    gate, bearers = gate_of(broker)
    bearers.give("t", agent_of("ag_1"))
    large = {"text": "x" * 150_000}
    async with open_public(broker, gate=gate) as port:
        for headers in ({"Authorization": "Bearer t"}, None):
            client = await port.dial(headers, path="/ws")
            if headers is None:
                assert "result" in await client.ask("authenticate", token="t")
            assert (await client.ask("echo", **large))["result"]["echo"] == large
            text = request(77, "echo", **large)
            await client.send_raw(masked(text[:90_000], fin=False) + masked(text[90_000:], Opcode.CONT))
            assert (await client.receive())["id"] == 77
            await client.send(request(1, "echo"), text, request(2, "echo"))
            assert {(await client.receive())["id"] for _ in range(3)} == {1, 77, 2}
            assert (await client.ask("authenticate", token="x" * 150_000))["error"]["data"]["code"] == (
                "unauthenticated"
            )
            assert (await client.ask("nothing", **large))["error"]["code"] == -32601
            await client.send(text[:-1] + b" ")
            assert (await client.receive())["error"]["code"] == -32700
            await client.send(request(1, "echo", text="x" * 200_000))
            assert (await client.wait_closed())[0] == 1009
        client = await port.dial(path="/ws")
        await client.send(request(1, "echo", **large))
        assert (await client.wait_closed())[0] == 1009
    async with open_port(broker, gate=gate) as dealing:
        client = await dealing.dial({"Authorization": "Bearer t"})
        await client.send(request(1, "echo", **large))
        assert (await client.wait_closed())[0] == 1009


@pytest.mark.requirement("doors.large")
async def test_only_so_many_connections_have_room_for_what_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateways.websocket.Rooms", lambda: Rooms(1))
    broker = FakeBroker(Settings(limits=Limits(frame_bytes=16_384, token_bytes=200_000)))
    gate, bearers = gate_of(broker)
    bearers.give("t", agent_of("ag_1"))
    headers = {"Authorization": "Bearer t"}
    async with open_public(broker, gate=gate) as port:
        first = await port.dial(headers, path="/ws")
        assert "result" in await first.ask("echo", text="x" * 20_000)
        for fragments in (False, True):
            other = await port.dial(headers, path="/ws")
            text = request(1, "echo", text="x" * 20_000)
            if fragments:
                await other.send_raw(masked(text[:9_000], fin=False) + masked(text[9_000:], Opcode.CONT))
            else:
                await other.send_raw(masked(text)[:4])  # the head is enough
            assert (await other.wait_closed())[0] == 1013
        assert "result" in await first.ask("echo", text="x" * 20_000), "it keeps its room"
        await first.close()
        assert await eventually_served(port, headers), "and gives it back"


@pytest.mark.requirement("doors.large-shares")
async def test_a_connection_that_is_still_gives_its_room_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateways.websocket.Rooms", lambda: Rooms(1))
    streams = Streams(ping_s=0.1, dead_s=5)
    broker = FakeBroker(Settings(limits=Limits(frame_bytes=16_384, token_bytes=200_000), streams=streams))
    gate, bearers = gate_of(broker)
    bearers.give("t", agent_of("ag_1"))
    headers = {"Authorization": "Bearer t"}
    async with open_public(broker, gate=gate) as port:
        first = await port.dial(headers, path="/ws")
        assert "result" in await first.ask("echo", text="x" * 20_000)
        assert await eventually_served(port, headers)
        assert "result" in await first.ask("echo"), "it stays connected"


async def eventually_served(port: Port, headers: dict[str, str]) -> bool:
    """Whether a connection has room for a large frame within a while."""
    with trio.move_on_after(5):
        while True:
            client = await port.dial(headers, path="/ws")
            await client.send(request(1, "echo", text="x" * 20_000))
            with suppress(EOFError):
                return "result" in await client.receive()
    return False


@pytest.mark.requirement("doors.large")
async def test_one_large_request_of_a_connection_is_under_way_at_a_time() -> None:
    broker, gates, inside = FakeBroker(), [trio.Event(), trio.Event()], []

    async def slowly(caller: object, params: bytes, _: object) -> dict[str, int]:
        inside.append(len(params))
        await gates[len(inside) - 1].wait()
        return {}

    broker.answers["send_env"] = slowly
    async with open_session(broker) as peer, trio.open_nursery() as nursery:
        large = [request(n, "send_env", text="x" * LARGE) for n in range(2)]
        nursery.start_soon(peer.session.receive, [*large, request(2, "echo")])
        for number in range(2):
            with trio.fail_after(5):
                while len(inside) <= number:
                    await trio.lowlevel.checkpoint()
            await wait_all_tasks_blocked()
            await apart(int)  # whatever was being read has been
            await wait_all_tasks_blocked()
            assert len(inside) == number + 1
            gates[number].set()
        assert {(await peer.next())["id"] for _ in range(3)} == {0, 1, 2}
