"""Who may ask from where: Host, Origin and CORS on the endpoint, on loopback and behind a proxy with a public name."""

from typing import Any

import pytest
import trio

from gateways.caller import read_proxies
from gateways.listen import Bounds
from gateways.mcp.endpoint import McpApp, mcp_app
from gateways.mcp.sessions import Sessions
from gateways.wrappers import Origins, check_origin
from tests.gateways.mcp.harness import Door, fake_broker, modern, request

PUBLIC = Origins(public_url="https://turret.example/", allowed=("https://console.example:8443",))
PROXY = "10.0.0.2"
BOUNDS = Bounds(linger_s=0.01)
VERBS = ("POST", "GET", "DELETE", "OPTIONS", "PUT")


def guarded(origins: Origins, server: str, client: str, **options: Any) -> tuple[Door, McpApp]:
    broker = fake_broker()
    app = mcp_app(broker, **options)
    door = Door(check_origin(app, origins, BOUNDS), broker)  # type: ignore[arg-type]  # an ASGI callable
    door.server, door.client = server, client
    return door, app


@pytest.fixture
def local() -> Door:
    """On loopback, no name given: the default."""
    return guarded(Origins(), "127.0.0.1", "127.0.0.1")[0]


@pytest.fixture
def public() -> Door:
    """Behind a proxy that has the TLS and the name."""
    return guarded(PUBLIC, "10.0.0.5", PROXY, proxies=read_proxies([PROXY]))[0]


async def statuses(door: Door, **headers: str) -> set[int]:
    """What each verb is answered with."""
    return {
        (await door.ask(verb, body=request("ping") if verb == "POST" else b"", **headers)).status
        for verb in VERBS
    }


FOREIGN = [
    "https://evil.example",
    "null",
    "https://turret.example.evil.example",
    "https://turret.example:444",
    "http://turret.example",
    "https://evilturret.example",
    "https://turret.example@evil.example",
    "turret.example",
    "https://",
    "file://",
    "https://turret.example, https://evil.example",
    "ftp://turret.example",
    "https://turret.example:99999",
    "https://[::1",
]


@pytest.mark.requirement("mcp.origin")
@pytest.mark.parametrize("origin", FOREIGN)
async def test_a_foreign_origin_is_403_whatever_the_verb(public: Door, origin: str) -> None:
    assert await statuses(public, host="turret.example", origin=origin) == {403}
    assert public.broker.calls == []


@pytest.mark.requirement("mcp.origin")
@pytest.mark.parametrize(
    "origin",
    [
        "",
        "https://turret.example",
        "https://TURRET.example",
        "https://turret.example:443",
        "https://console.example:8443",
    ],
)
async def test_no_origin_our_own_and_an_allowed_one_are_served(public: Door, origin: str) -> None:
    body, headers = modern("tools/list")
    answer = await public.ask(body=body, **headers, host="turret.example", origin=origin)
    assert answer.status == 200
    assert answer.headers.get("access-control-allow-origin", "") == origin
    if origin:
        exposed = answer.headers["access-control-expose-headers"].lower()
        assert {"mcp-session-id", "www-authenticate"} <= {each.strip() for each in exposed.split(",")}
        assert answer.headers["vary"] == "Origin"


@pytest.mark.requirement("mcp.origin")
@pytest.mark.parametrize(
    "host",
    ["evil.example", "turret.example.evil.example", "localhost", "127.0.0.1", "turret.example@evil.example",
     "turret.example/x", "turret.example:x", "", "10.0.0.6"],
)  # fmt: skip
async def test_a_foreign_host_is_421_whatever_the_verb(public: Door, host: str) -> None:
    assert await statuses(public, host=host) == {421}
    assert await statuses(public, host=host, origin="https://turret.example") == {421}
    assert public.broker.calls == []


@pytest.mark.requirement("mcp.origin")
@pytest.mark.parametrize("host", ["turret.example", "turret.example:443", "TURRET.EXAMPLE", "10.0.0.5"])
async def test_the_public_name_and_the_very_address_asked_are_ours(public: Door, host: str) -> None:
    assert (await public.ask(body=request("ping"), host=host)).status == 200


@pytest.mark.requirement("mcp.origin")
@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:8766", "", 200),
        ("127.0.0.1:8766", "http://localhost:6274", 200),
        ("[::1]:8766", "http://127.0.0.1:5173", 200),
        ("localhost:8766", "https://evil.example", 403),
        ("localhost:8766", "http://localhost.evil.example", 403),
        ("localhost:8766", "null", 403),
        ("evil.example", "http://evil.example", 421),
        ("localhost.evil.example", "", 421),
        ("localhost:80.evil.example", "", 421),
    ],
)
async def test_on_loopback_a_page_of_this_machine_may_ask_and_a_rebound_name_may_not(
    local: Door, host: str, origin: str, status: int
) -> None:
    assert (await local.ask(body=request("ping"), host=host, origin=origin)).status == status


@pytest.mark.requirement("mcp.origin")
async def test_a_preflight_is_answered_before_anybody_is_asked_who_he_is(public: Door) -> None:
    page = {"host": "turret.example", "origin": "https://console.example:8443"}
    for path in ("/mcp", "/mcp/", "/mcp/wire"):
        answer = await public.ask("OPTIONS", path, access_control_request_method="POST", **page)
        assert (answer.status, answer.body) == (204, b"")
        allowed = {each.strip().lower() for each in answer.headers["access-control-allow-headers"].split(",")}
        assert {
            "authorization", "content-type", "accept", "mcp-protocol-version", "mcp-session-id", "mcp-method",
            "mcp-name", "last-event-id",
        } <= allowed  # fmt: skip
        assert {"GET", "POST", "DELETE"} <= {
            each.strip() for each in answer.headers["access-control-allow-methods"].split(",")
        }
    refused = await public.ask(body=request("ping"), authorization="Bearer x", **page)
    assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, page["origin"])


@pytest.mark.requirement("mcp.origin")
async def test_a_stream_carries_the_shared_headers_too(public: Door) -> None:
    page = {"host": "turret.example", "origin": "https://console.example:8443"}
    session = await public.session(**page)
    async with public.open("GET", **session.headers, **page) as stream:
        with trio.fail_after(5):
            await stream.started.wait()
    assert stream.headers["access-control-allow-origin"] == page["origin"]
    assert "mcp-session-id" in stream.headers["access-control-expose-headers"].lower()


@pytest.mark.requirement("mcp.behind-proxy")
async def test_behind_a_proxy_each_client_has_its_own_places_for_sessions() -> None:
    door, app = guarded(
        PUBLIC, "10.0.0.5", PROXY, proxies=read_proxies([PROXY]), sessions=Sessions(most_of_one=1)
    )
    first = await door.session(host="turret.example", x_forwarded_for="203.0.113.7")
    await door.session(host="turret.example", x_forwarded_for="198.51.100.9, 203.0.113.8")
    assert app.sessions.statistics().sessions == 2
    await door.session(host="turret.example", x_forwarded_for="203.0.113.7")
    assert app.sessions.statistics().sessions == 2
    gone = await door.ask(body=request("ping"), **first.headers, host="turret.example")
    assert gone.status == 404  # its only place went to the newer one of the same client


@pytest.mark.requirement("mcp.behind-proxy")
@pytest.mark.parametrize(
    ("client", "forwarded", "address", "loopback"),
    [
        (PROXY, "203.0.113.7", "203.0.113.7", False),
        (PROXY, "127.0.0.1, 203.0.113.7", "203.0.113.7", False),
        (PROXY, "", PROXY, False),
        ("203.0.113.9", "127.0.0.1", "203.0.113.9", False),
        ("127.0.0.1", "203.0.113.7", "127.0.0.1", True),
    ],
)
async def test_only_a_configured_proxy_says_who_the_client_is(
    client: str, forwarded: str, address: str, loopback: bool
) -> None:
    door, _ = guarded(PUBLIC, "10.0.0.5", client, proxies=read_proxies([PROXY]))
    body = request("tools/call", name="echo")
    assert (await door.ask(body=body, host="turret.example", x_forwarded_for=forwarded)).status == 200
    caller = door.broker.calls[-1][0]
    assert (caller.address, caller.loopback) == (address, loopback)
