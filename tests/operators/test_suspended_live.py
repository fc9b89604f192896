"""An agent is suspended: all that it has open ends within a second, over real sockets, whatever door it came by
(network.md, Standing). Lifted, all of it is to be had again.

One broker with its public port, its dealing port and its operators' port; the agent opens everything at once, one call
at the operators' port suspends it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import pytest
import trio
import trio.testing

from broker.app import Caller
from broker.wire.keys import SigningKey
from gateways.eventstream import Decoder
from gateways.mcp.endpoint import mcp_app
from gateways.mcp.protected import Protected
from gateways.metrics import Metrics
from gateways.operator.server import operator_app
from gateways.operator.token import OperatorToken
from gateways.web import web_app
from gateways.websocket import ws_app
from tests.gateways.mcp.harness import modern, request
from tests.support.a2a import said
from tests.support.agents import make_agent
from tests.support.broker import Bench, Party, open_bench
from tests.support.network import serving
from tests.support.operators import BEARER, TOKEN
from tests.support.pairs import agree
from tests.support.tokens import HERE, FakeBearers, gate_of
from tests.support.ws import Client, Port, authenticate, clock_of, open_port

WITHIN_S: Final = 1.0
BOTH: Final = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
SHOWN: Final = {"authorization": "Bearer ann"}
LEGACY: Final = "2025-06-18"


class Doors:
    """The ports of one broker, and what Ann is there: an agent with a desk and a channel."""

    def __init__(
        self, bench: Bench, ann: Caller, bob: str, desk: Party, town: str, http: str, ops: str, dealing: Port
    ):
        self.bench = bench
        self.ann = ann
        self.bob = bob
        self.desk = desk
        self.town = town
        self.http = http
        self.ops = ops
        self.dealing = dealing

    async def operate(self, tool: str, **params: Any) -> Any:
        """A call at the operators' port."""
        body, headers = modern("tools/call", name=tool, arguments=params)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.post(f"{self.ops}/mcp", json=body, headers={**BOTH, **named, **BEARER})
        result = answer.json()["result"]
        assert not result["isError"], result
        return result["structuredContent"]

    async def ws(self, path: str) -> Client:
        """A WebSocket on the public port, or ("/") on the dealing port."""
        if path == "/":
            return await self.dealing.dial()
        host, _, port = self.http.removeprefix("http://").partition(":")
        return await Client.open(await trio.open_tcp_stream(host, int(port)), path=path)


@asynccontextmanager
async def open_doors() -> AsyncIterator[Doors]:
    async with open_bench() as bench:
        key = SigningKey.generate()
        desk = Party("ANNE", key)
        opening = desk.statement("open_desk", bench.broker.pk, bench.ts, code="ANNE")
        await bench.call("open_desk", **opening)
        ann = await make_agent(bench, "Ann", key=key)
        town = (await bench.call("create_channel", ann, name="town"))["channel_id"]
        bob = await make_agent(bench, "Bob")
        await agree(bench, ann, bob, scopes=["task"])
        bearers = FakeBearers(bench.broker)
        bearers.give("ann", ann)
        gate = gate_of(bench.broker, bearers)[0]
        mcp = mcp_app(bench.broker, protected=Protected(HERE, bearers))  # type: ignore[arg-type]  # a fake
        wsapp = ws_app(bench.broker, shutdown=trio.Event(), clock=clock_of(bench.broker), gate=gate)
        app = web_app(bench.broker, Metrics(bench.broker), mcp_app=mcp, ws_app=wsapp, gate=gate)
        async with (
            serving(app) as public,
            serving(operator_app(bench.broker, OperatorToken(TOKEN))) as ops,
            open_port(bench.broker, sockets=True, gate=gate) as dealing,
        ):
            yield Doors(bench, ann, str(bob.agent), desk, town, public.url, ops.url, dealing)
            mcp.drain()


Told = Callable[[], None]
Thing = Callable[[Doors, Told], Awaitable[str]]
"""Opens a thing, says when it is open, and returns how it ended."""


async def socket(doors: Doors, path: str, told: Told) -> str:
    """A WebSocket that bears the token, and follows the agent and the channel."""
    client = await doors.ws(path)
    for method, params in (
        ("authenticate", {"token": "ann"}),
        ("follow", {}),
        ("follow", {"channel": doors.town}),
    ):
        assert "result" in await client.ask(method, **params), method
    told()
    code, reason = await client.wait_closed()
    await trio.aclose_forcefully(client.stream)
    return f"{code} {reason.partition(':')[0]}"


async def keyed_socket(doors: Doors, told: Told) -> str:
    """A dealer's, who has no token: it proved the agent's key."""
    client = await doors.ws("/")
    proven = authenticate(doors.desk, doors.bench, client.hello["challenge"])
    assert "result" in await client.ask("authenticate", **proven)
    told()
    code, reason = await client.wait_closed()
    await trio.aclose_forcefully(client.stream)
    return f"{code} {reason.partition(':')[0]}"


async def stream(doors: Doors, told: Told, method: str, path: str, **options: Any) -> str:
    """A response of events: how its last one ends it."""
    decoder, last = Decoder(), ""
    async with (
        httpx.AsyncClient(base_url=doors.http, trust_env=False, timeout=5) as client,
        client.stream(method, path, **{"headers": SHOWN, **options}) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        if not answer.headers["content-type"].startswith("text/event-stream"):
            told()
            return (await answer.aread()).decode()
        if method == "GET" and path == "/mcp":
            told()  # nothing is said on it until there is something to say
        async for piece in answer.aiter_bytes():
            told()
            for event in decoder.feed(piece):
                last = str(event.data) or last
    for word in ("suspended", "unauthenticated"):
        if word in last:
            return word
    return "ended"


async def listening(doors: Doors, told: Told) -> str:
    """MCP's subscription, of the era without a handshake."""
    uri = f"turret://channel/{doors.town}"
    body, headers = modern("subscriptions/listen", notifications={"resourceSubscriptions": [uri]})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await stream(doors, told, "POST", "/mcp", json=body, headers={**BOTH, **named, **SHOWN})


async def session(doors: Doors, told: Told) -> str:
    """MCP's session, with its GET stream."""
    async with httpx.AsyncClient(base_url=doors.http, trust_env=False) as client:
        hello = request(
            "initialize",
            protocolVersion=LEGACY,
            capabilities={},
            clientInfo={"name": "a test", "version": "1"},
        )
        answer = await client.post("/mcp", json=hello, headers={**BOTH, **SHOWN})
        assert answer.status_code == 200, answer.text
        own = {
            "mcp-session-id": answer.headers["mcp-session-id"],
            "mcp-protocol-version": LEGACY,
            **SHOWN,
        }
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await client.post("/mcp", json=ready, headers={**BOTH, **own})
    return await stream(doors, told, "GET", "/mcp", headers={"accept": "text/event-stream", **own})


async def task(doors: Doors, told: Told) -> str:
    """A2A's stream of a task that the agent gave to another."""
    headers = {"a2a-version": "1.0", "content-type": "application/json", **SHOWN}
    body = request("SendStreamingMessage", message=said())
    return await stream(doors, told, "POST", f"/a2a/{doors.bob}", json=body, headers=headers)


async def waiting(doors: Doors, told: Told) -> str:
    """A wait over plain HTTP."""
    async with httpx.AsyncClient(base_url=doors.http, trust_env=False, timeout=10) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_soon, told)
            answer = await client.post("/v1/wait_for_events", json={"wait_ms": 20_000}, headers=SHOWN)
            nursery.cancel_scope.cancel()
        return str(answer.json()["refusal"]["code"])


async def mcp_waiting(doors: Doors, told: Told) -> str:
    """A wait that is an MCP tool."""
    body, headers = modern("tools/call", name="wait_for_events", arguments={"wait_ms": 20_000})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(base_url=doors.http, trust_env=False, timeout=10) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_soon, told)
            answer = await client.post("/mcp", json=body, headers={**BOTH, **named, **SHOWN})
            nursery.cancel_scope.cancel()
        return "suspended" if "suspended" in answer.text else answer.text


async def _soon(told: Told) -> None:
    """What waits says nothing; it waits when nothing moves any more."""
    await trio.testing.wait_all_tasks_blocked(0.05)
    told()


THINGS: Final[dict[str, tuple[Thing, str]]] = {
    "A2A stream": (task, "ended"),
    "dealing socket with a token": (lambda d, told: socket(d, "/", told), "4001 suspended"),
    "/ws with a token": (lambda d, told: socket(d, "/ws", told), "4001 suspended"),
    "dealing socket with the agent's key": (keyed_socket, "4001 suspended"),
    "SSE of the desk": (lambda d, told: stream(d, told, "GET", "/rings/ANNE"), "suspended"),
    "SSE of the channel": (lambda d, told: stream(d, told, "GET", f"/channels/{d.town}"), "suspended"),
    "MCP listen": (listening, "suspended"),
    "MCP session": (session, "ended"),
    "wait_for_events": (waiting, "suspended"),
    "wait_for_events over MCP": (mcp_waiting, "suspended"),
}
"""What an agent may have open, and how it ends when the agent is suspended."""


@pytest.mark.requirement("moderation.live")
async def test_all_that_an_agent_has_open_ends_within_a_second_of_its_suspension() -> None:
    ends: dict[str, tuple[str, bool]] = {}
    opened = {name: trio.Event() for name in THINGS}
    began = trio.current_time()

    async def run(name: str, doors: Doors) -> None:
        end = await THINGS[name][0](doors, opened[name].set)
        ends[name] = end, trio.current_time() - began < WITHIN_S

    async with open_doors() as doors:
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                for name in THINGS:  # one after the other: what one does, another that waits would hear of
                    nursery.start_soon(run, name, doors)
                    await opened[name].wait()
                assert ends == {}
                began = trio.current_time()
                await doors.operate("suspend_agent", agent_id=doors.ann.agent, reason="spam")
        assert ends == {name: (end, True) for name, (_, end) in THINGS.items()}
        assert (await whoami(doors)).status_code == 403
        await doors.operate("unsuspend_agent", agent_id=doors.ann.agent)
        assert (await whoami(doors)).json()["agent_id"] == doors.ann.agent
        again = await doors.ws("/ws")
        assert "result" in await again.ask("authenticate", token="ann")
        assert "result" in await again.ask("follow", channel=doors.town)
        await trio.aclose_forcefully(again.stream)


async def whoami(doors: Doors) -> httpx.Response:
    async with httpx.AsyncClient(base_url=doors.http, trust_env=False) as client:
        return await client.post("/v1/whoami", json={}, headers=SHOWN)
