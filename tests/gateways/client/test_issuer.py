"""From the broker's address to the token endpoint, and to nowhere else."""

from typing import Any

import httpx
import pytest

from gateways.client.errors import Disconnected, Refused, WireFault
from gateways.client.issuer import Issuer, find_issuer, http_origin
from tests.gateways.client.fake_issuer import ORIGIN, TOKEN, FakeIssuer


async def find(issuer: FakeIssuer, url: str = ORIGIN) -> Issuer:
    async with httpx.AsyncClient(transport=issuer.transport) as http:
        return (await find_issuer(http, url))[0]


@pytest.mark.parametrize("url", [ORIGIN, f"{ORIGIN}/", "wss://wire.test/ws", f"{ORIGIN}/mcp"])
async def test_whichever_door_the_address_names_the_endpoint_is_found(url: str) -> None:
    issuer = FakeIssuer()
    assert await find(issuer, url) == Issuer(ORIGIN, TOKEN, f"{ORIGIN}/mcp")
    assert issuer.requests == [
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
    ]


def test_a_secure_sockets_origin_is_a_secure_one() -> None:
    assert http_origin("wss://wire.example:8443/ws") == "https://wire.example:8443"


async def test_an_issuer_with_a_path_has_its_document_before_it() -> None:
    issuer = FakeIssuer()
    issuer.resource["authorization_servers"] = [f"{ORIGIN}/tenant/"]
    with pytest.raises(Refused, match="404"):
        await find(issuer)
    assert issuer.requests[-1] == "/.well-known/oauth-authorization-server/tenant"


@pytest.mark.requirement("client.agent-issuer")
@pytest.mark.parametrize(
    ("where", "member", "value"),
    [
        ("resource", "resource", "http://elsewhere.test/mcp"),
        ("resource", "authorization_servers", [7]),
        ("resource", "authorization_servers", ["ftp://wire.test"]),
        ("document", "issuer", f"{ORIGIN}/"),
        ("document", "token_endpoint", "file:///token"),
        ("document", "token_endpoint", "http://127.0.0.1/token"),
        ("document", "token_endpoint", None),
    ],
)
async def test_a_document_that_is_another_ones_leads_nowhere(where: str, member: str, value: Any) -> None:
    issuer = FakeIssuer()
    getattr(issuer, where)[member] = value
    with pytest.raises(WireFault):
        await find(issuer)


@pytest.mark.requirement("client.agent-issuer")
@pytest.mark.parametrize(
    "url", ["http://wire.test", "ws://10.0.0.7:8766/ws", "http://127.0.0.1.wire.test@evil/"]
)
async def test_nothing_is_proved_to_another_machine_without_tls(url: str) -> None:
    issuer = FakeIssuer()
    with pytest.raises(ValueError, match="without TLS"):
        await find(issuer, url)
    assert issuer.requests == []


@pytest.mark.requirement("client.agent-issuer")
async def test_on_this_machine_it_needs_none_but_leads_no_further() -> None:
    here = "http://127.0.0.1:8766"
    issuer = FakeIssuer()
    issuer.resource = {"resource": f"{here}/mcp", "authorization_servers": [here]}
    issuer.document.update(issuer=here, token_endpoint=f"{here}/oauth/token")
    assert (await find(issuer, here)).token_endpoint == f"{here}/oauth/token"
    issuer.resource["authorization_servers"] = ["http://wire.test"]
    with pytest.raises(WireFault, match="sends us to"):
        await find(issuer, here)


@pytest.mark.parametrize(
    ("where", "member", "value"),
    [
        ("resource", "authorization_servers", []),
        ("document", "token_endpoint_auth_methods_supported", ["none"]),
    ],
)
async def test_a_broker_that_takes_no_agents_key_says_so(where: str, member: str, value: Any) -> None:
    issuer = FakeIssuer()
    getattr(issuer, where)[member] = value
    with pytest.raises(Refused, match="unauthenticated"):
        await find(issuer)


async def test_no_answer_and_nonsense_are_told_apart() -> None:
    async def say(status: int, content: bytes = b"", **headers: str) -> None:
        answer = httpx.Response(status, content=content, headers=headers)
        async with httpx.AsyncClient(transport=httpx.MockTransport(lambda _: answer)) as http:
            await find_issuer(http, ORIGIN)

    def broken(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(Disconnected) as busy:
        await say(503, **{"retry-after": "7"})
    assert busy.value.retry_after_s == 7
    with pytest.raises(WireFault, match="JSON"):
        await say(200, b"[]")
    async with httpx.AsyncClient(transport=httpx.MockTransport(broken)) as http:
        with pytest.raises(Disconnected, match="refused"):
            await find_issuer(http, ORIGIN)
