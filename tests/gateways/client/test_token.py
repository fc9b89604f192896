"""An agent's token: got, kept, renewed in time, asked for once."""

from collections.abc import AsyncIterator

import httpx
import pytest
import trio
from trio.testing import MockClock

from broker.wire.keys import SigningKey
from gateways.client.clockwork import WireClock
from gateways.client.errors import Disconnected, Refused, WireFault
from gateways.client.token import Token, Tokens
from tests.gateways.client.fake_issuer import ORIGIN, START_S, FakeIssuer, error
from tests.gateways.client.fake_network import AGENT


def right_clock() -> WireClock:
    return WireClock(lambda: START_S * 1000 + round(trio.current_time() * 1000))


@pytest.fixture
async def tokens(issuer: FakeIssuer, alfa: SigningKey) -> AsyncIterator[Tokens]:
    async with httpx.AsyncClient(transport=issuer.transport) as http:
        yield Tokens(ORIGIN, alfa, AGENT, right_clock(), http)


@pytest.mark.requirement("client.agent-token")
async def test_a_token_is_kept_and_renewed_at_four_fifths_of_its_life(
    autojump_clock: MockClock, issuer: FakeIssuer, tokens: Tokens
) -> None:
    first = await tokens.get()
    await trio.sleep(719)
    assert await tokens.get() is first
    await trio.sleep(2)
    second = await tokens.get()
    assert (first.text, second.text) == ("token-1", "token-2")
    assert len(first.scopes) == 8
    assert issuer.requests.count("/.well-known/oauth-authorization-server") == 1


@pytest.mark.requirement("client.agent-one-refresh")
async def test_who_comes_while_somebody_asks_gets_the_same(
    autojump_clock: MockClock, issuer: FakeIssuer, tokens: Tokens
) -> None:
    issuer.delay_s = 1
    got: list[Token] = []

    async def get() -> None:
        got.append(await tokens.get())

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(get)
    assert len(set(map(id, got))) == 1
    assert len(issuer.forms) == 1


@pytest.mark.requirement("client.agent-one-refresh")
async def test_a_failure_is_shared_too_and_a_cancelled_one_is_taken_over(
    autojump_clock: MockClock, issuer: FakeIssuer, tokens: Tokens
) -> None:
    await tokens.get()
    issuer.delay_s = 1
    issuer.scripts.append(error(503, "temporarily_unavailable"))
    old = await tokens.get()
    faults: list[Exception] = []

    async def get() -> None:
        try:
            await tokens.get(instead_of=old)
        except Disconnected as fault:
            faults.append(fault)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(get)
    assert len(faults) == 5
    assert issuer.requests.count("/oauth/token") == 2
    with trio.move_on_after(0.5):
        await tokens.get(instead_of=old)
    assert (await tokens.get(instead_of=old)).text == "token-2"


@pytest.mark.requirement("client.agent-token")
async def test_one_that_was_not_taken_is_not_given_again(
    autojump_clock: MockClock, issuer: FakeIssuer, tokens: Tokens
) -> None:
    dead = await tokens.get()
    fresh = await tokens.get(instead_of=dead)
    assert fresh is not dead
    assert await tokens.get(instead_of=dead) is fresh


async def test_while_the_last_one_is_good_a_server_that_is_away_is_no_matter(
    autojump_clock: MockClock, issuer: FakeIssuer, tokens: Tokens
) -> None:
    first = await tokens.get()
    await trio.sleep(800)
    issuer.scripts.extend(
        [httpx.ConnectError("gone"), error(502, "x"), error(429, "x", **{"retry-after": "9"})]
    )
    assert await tokens.get() is first
    assert await tokens.get() is first
    await trio.sleep(101)
    with pytest.raises(Disconnected, match="429") as busy:
        await tokens.get()
    assert busy.value.retry_after_s == 9
    assert (await tokens.get()).text == "token-2"


@pytest.mark.requirement("client.agent-token-clock")
@pytest.mark.parametrize("off_s", [-7_200, -40, 90, 86_400])
async def test_a_wrong_clock_signs_by_the_servers(
    autojump_clock: MockClock, issuer: FakeIssuer, alfa: SigningKey, off_s: int
) -> None:
    clock = WireClock(lambda: (START_S + off_s) * 1000 + round(trio.current_time() * 1000))
    async with httpx.AsyncClient(transport=issuer.transport) as http:
        tokens = Tokens(ORIGIN, alfa, AGENT, clock, http)
        await tokens.get()
    assert len(issuer.forms) == 1
    assert abs(issuer.claims[0]["iat"] - START_S) <= 1


@pytest.mark.requirement("client.agent-token-clock")
async def test_a_clock_that_was_set_wrong_later_is_put_right_by_the_refusal(
    autojump_clock: MockClock, issuer: FakeIssuer, alfa: SigningKey
) -> None:
    wrong_ms = 0
    clock = WireClock(lambda: START_S * 1000 + wrong_ms + round(trio.current_time() * 1000))
    async with httpx.AsyncClient(transport=issuer.transport) as http:
        tokens = Tokens(ORIGIN, alfa, AGENT, clock, http)
        old = await tokens.get()
        wrong_ms = -600_000
        assert (await tokens.get(instead_of=old)).text == "token-3"
        assert len(issuer.forms) == 3


@pytest.mark.requirement("client.agent-revoked")
async def test_a_key_that_is_the_agents_no_more_gets_no_token_and_is_not_tried_again(
    autojump_clock: MockClock, issuer: FakeIssuer, tokens: Tokens
) -> None:
    old = await tokens.get()
    issuer.enter(AGENT)
    with pytest.raises(Refused, match="unauthenticated: no token: invalid_client: not proved"):
        await tokens.get(instead_of=old)
    assert len(issuer.forms) == 2


async def test_scopes_are_asked_for_and_a_refusal_of_them_is_told(
    autojump_clock: MockClock, issuer: FakeIssuer, alfa: SigningKey
) -> None:
    async with httpx.AsyncClient(transport=issuer.transport) as http:
        tokens = Tokens(ORIGIN, alfa, AGENT, right_clock(), http, ["message", "profile"])
        token = await tokens.get()
        assert token.scopes == {"message", "profile"}
        issuer.scripts.append(error(400, "invalid_scope"))
        with pytest.raises(Refused) as no:
            await tokens.get(instead_of=token)
        assert no.value.code == "insufficient_scope"


@pytest.mark.parametrize(
    "content", [b"[]", b'{"access_token":7}', b'{"access_token":"x","token_type":"mac","expires_in":9}']
)
async def test_an_answer_that_is_none_is_a_fault(
    autojump_clock: MockClock, issuer: FakeIssuer, tokens: Tokens, content: bytes
) -> None:
    issuer.scripts.append(httpx.Response(200, content=content))
    with pytest.raises(WireFault):
        await tokens.get()


@pytest.mark.requirement("client.agent-secrets")
async def test_no_text_of_ours_holds_a_token_or_an_assertion(
    autojump_clock: MockClock, issuer: FakeIssuer, tokens: Tokens
) -> None:
    token = await tokens.get()
    shown = [repr(token), str(token)]

    def broken(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(f"could not send {request.content!r}")

    issuer.scripts.append(broken)
    with pytest.raises(Disconnected) as lost:
        await tokens.get(instead_of=token)
    shown += [str(lost.value), repr(lost.value.__cause__)]
    for secret in ("token-", issuer.forms[0]["client_assertion"][0].rsplit(".")[2], "client_assertion"):
        assert all(secret not in each for each in shown)
