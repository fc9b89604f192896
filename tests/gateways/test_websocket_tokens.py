"""Tokens on `/ws`: in the upgrade and in a frame, and what may be sent with one."""

import pytest
from websockets.frames import Opcode

from broker.config import Limits, Settings
from broker.wire.refusals import refuse
from tests.gateways.test_handshake import head, status
from tests.gateways.test_websocket import open_public
from tests.support.broker_fake import FakeBroker
from tests.support.peers import exchange
from tests.support.tokens import agent_of, gate_of
from tests.support.ws import masked, open_port, request


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
