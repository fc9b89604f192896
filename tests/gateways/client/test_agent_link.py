"""An agent's connection: its token, renewed in place, never used when it is dead."""

import logging

import msgspec
import pytest
import trio
from trio.testing import MockClock

from broker.wire.refusals import refuse
from gateways import jsonrpc
from gateways.client.agent_link import ENDED_AT_ONCE
from gateways.client.errors import Refused, WireFault
from tests.gateways.client.conftest import OpenAgent
from tests.gateways.client.fake_issuer import FakeIssuer, error
from tests.gateways.client.fake_network import AGENT, CHANNEL, FakeNetwork


@pytest.mark.requirement("client.agent-token")
async def test_a_connection_speaks_by_a_token_that_is_renewed_in_place(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me:
        assert await me.whoami() == {"agent_id": AGENT}
        await trio.sleep(3600)
        assert await me.whoami() == {"agent_id": AGENT}
    assert network.connections == 1
    assert network.shown == ["token-1", "token-2", "token-3", "token-4", "token-5", "token-6"]


async def test_another_wires_greeting_gets_no_token(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    network.shown_pk = "ee" * 32
    with trio.fail_after(5), pytest.raises(WireFault, match="shows the key"):
        async with agent():
            pass
    assert network.shown == []


@pytest.mark.requirement("client.agent-revoked")
async def test_a_token_that_is_ended_is_not_shown_again_and_another_one_is_got(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me:
        await network.end_tokens()
        with trio.fail_after(30):
            assert await me.whoami() == {"agent_id": AGENT}
    assert network.shown == ["token-1", "token-2"]


@pytest.mark.requirement("client.agent-revoked")
async def test_a_key_that_has_lost_its_right_ends_the_block_and_nothing_is_tried_again(
    autojump_clock: MockClock, issuer: FakeIssuer, network: FakeNetwork, agent: OpenAgent
) -> None:
    async def stay() -> None:
        async with agent():
            issuer.enter(AGENT)
            await network.end_tokens()
            await trio.sleep(3600)

    with trio.fail_after(60), pytest.raises(Refused, match="no token: invalid_client"):
        await stay()
    assert network.connections == 1
    assert network.shown == ["token-1"]
    assert issuer.requests.count("/oauth/token") == 2


@pytest.mark.requirement("client.agent-revoked")
async def test_the_same_when_the_renewal_finds_out(
    autojump_clock: MockClock, issuer: FakeIssuer, network: FakeNetwork, agent: OpenAgent
) -> None:
    async def stay() -> None:
        async with agent():
            issuer.enter(AGENT)
            await trio.sleep_forever()

    with trio.fail_after(725), pytest.raises(Refused, match="no token"):
        await stay()
    assert network.connections == 1


@pytest.mark.requirement("client.agent-revoked")
async def test_who_is_suspended_hears_so_and_does_not_come_back(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async def stay() -> None:
        async with agent():
            network.script("authenticate", refuse("suspended", "suspended by the operators"))
            await network.end_tokens()
            await trio.sleep(3600)

    with trio.fail_after(60), pytest.raises(Refused, match="suspended"):
        await stay()
    assert network.connections == 2


@pytest.mark.requirement("client.agent-revoked")
async def test_a_broker_that_ends_each_fresh_token_at_once_is_given_up(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async def stay() -> None:
        async with agent() as me:
            while True:
                await me.whoami()
                await network.end_tokens()

    with trio.fail_after(60), pytest.raises(Refused, match="each token is ended at once"):
        await stay()
    assert network.connections == ENDED_AT_ONCE


async def test_a_refusal_to_a_call_gets_another_token_once_for_all_who_wait(
    autojump_clock: MockClock, issuer: FakeIssuer, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me:
        issuer.live.clear()
        issuer.delay_s = 1
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(me.whoami)
        assert network.shown == ["token-1", "token-2"]
        network.script("whoami", *[refuse("unauthenticated", "no")] * 2)
        with pytest.raises(Refused, match="unauthenticated"):
            await me.whoami()
    assert network.connections == 1


async def test_a_greeting_that_does_not_take_the_kept_token_is_shown_another(
    autojump_clock: MockClock, issuer: FakeIssuer, network: FakeNetwork, agent: OpenAgent
) -> None:
    async def stay() -> None:
        async with agent() as me:
            issuer.live.clear()
            await network.drop_all()
            with trio.fail_after(30):
                await me.whoami()
            assert network.shown == ["token-1", "token-1", "token-2"]
            network.script("authenticate", *[refuse("unauthenticated", "no")] * 2)
            await network.drop_all()
            await trio.sleep(3600)

    with pytest.raises(Refused, match="unauthenticated: no"):
        await stay()
    assert network.shown == ["token-1", "token-1", "token-2"]
    assert network.connections == 3


async def test_while_nobody_gives_tokens_the_present_one_serves_until_its_end(
    autojump_clock: MockClock, issuer: FakeIssuer, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me:
        issuer.scripts.extend([error(503, "x")] * 20)
        await trio.sleep(850)
        assert await me.whoami() == {"agent_id": AGENT}
        issuer.scripts.clear()
        await trio.sleep(40)
        assert network.shown == ["token-1", "token-2"]
    assert network.connections == 1


@pytest.mark.requirement("client.agent-revoked")
async def test_without_a_token_no_connection_is_opened(
    autojump_clock: MockClock, issuer: FakeIssuer, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me:
        issuer.scripts.extend([error(503, "x")] * 1000)
        await trio.sleep(890)
        await network.end_tokens()
        await trio.sleep(600)
        assert network.connections == 1
        assert 20 < len(issuer.requests) < 120
        issuer.scripts.clear()
        with trio.fail_after(60):
            await me.whoami()
    assert network.shown == ["token-1", "token-2"]
    assert network.connections == 2


async def test_what_the_wire_ends_for_now_begins_anew_and_what_is_no_notification_is_a_fault(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async def stay() -> None:
        async with agent() as me, me.channel(CHANNEL):
            (session,) = network.sessions
            body = refuse("unavailable", "the store gives nothing now").body()
            await session.send(jsonrpc.notification("ended", {"channel": CHANNEL, "refusal": body}))
            await trio.sleep(30)
            assert len(network.sent("follow")) == 2
            assert msgspec.json.decode(network.sent("follow")[1]) == {"channel": CHANNEL, "after_seq": 0}
            await network.sessions[0].send(jsonrpc.notification("channel_message", {"seq": 1}))
            await trio.sleep(30)

    with pytest.raises(WireFault, match="can't be read"):
        await stay()


@pytest.mark.requirement("client.agent-secrets")
async def test_no_log_holds_a_token_or_an_assertion(
    autojump_clock: MockClock,
    issuer: FakeIssuer,
    network: FakeNetwork,
    agent: OpenAgent,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with agent() as me:
        await me.whoami()
        await network.end_tokens()
        await me.whoami()
    assert network.shown == ["token-1", "token-2"]
    logged = [each.getMessage() for each in caplog.records if each.name != "websockets.server"]  # the fake's
    assert logged
    for secret in ("token-", issuer.forms[0]["client_assertion"][0]):
        assert all(secret not in each for each in logged)
