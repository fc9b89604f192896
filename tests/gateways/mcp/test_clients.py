"""The official client over real sockets: legacy, auto and pinned, on Trio, doing what a dealer does."""

import gc
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import trio
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared._httpx_utils import create_mcp_http_client

from broker.wire.statement import build_statement
from gateways.caller import write_proof
from gateways.http import serve_http
from gateways.listen import Bounds
from gateways.mcp.endpoint import McpApp, mcp_app
from gateways.wrappers import Origins, check_origin
from tests.gateways.mcp.harness import Tools, fake_broker
from tests.support.broker import Bench, Line, Party

MODES = ("legacy", "auto", "2026-07-28")
# The client leaves its response iterators to the garbage collector; nothing of ours.
pytestmark = pytest.mark.filterwarnings(r"ignore:Async generator '(httpx2|httpcore2)\.:ResourceWarning")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What the client leaves behind is collected here, under this module's filter."""
    yield
    gc.collect()


@asynccontextmanager
async def serving(app: McpApp) -> AsyncIterator[str]:
    """The endpoint on a port of loopback, behind the wrapper that all HTTP doors have; its URL."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    bounds, shutdown = Bounds(linger_s=0.2, grace_s=1), trio.Event()
    guarded = check_origin(app, Origins(), bounds)
    settings = fake_broker().settings
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: serve_http(guarded, listeners, settings, shutdown=shutdown, bounds=bounds))
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            app.drain()
            shutdown.set()


@pytest.fixture
async def url(bench: Bench) -> AsyncIterator[str]:
    async with serving(mcp_app(bench.broker)) as found:
        yield found


@pytest.mark.requirement("mcp.official-client")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("path", ["", "/", "/wire"])
async def test_the_official_client_lists_calls_and_reads(
    url: str, bench: Bench, mode: str, path: str
) -> None:
    alfa = await bench.open("ALFA")
    with trio.fail_after(20):
        async with Client(url + path, mode=mode) as client:
            tools = await client.list_tools()
            assert {"send_call", "read_conv"} <= {tool.name for tool in tools.tools}
            found = await client.call_tool("resolve_code", {"code": "ALFA"})
            assert found.structured_content is not None
            assert found.structured_content["pk"] == alfa.pk
            refused = await client.call_tool("resolve_code", {"code": "NOPE"})
            assert refused.is_error
            assert refused.structured_content is not None
            assert refused.structured_content["refusal"]["code"] == "unknown_desk"
            desk = await client.read_resource("turret://desk/ALFA")
            assert json.loads(desk.contents[0].text)["pk"] == alfa.pk  # type: ignore[union-attr]  # text
            prompts = await client.list_prompts()
            assert len(prompts.prompts) == 3
            prompt = await client.get_prompt("answer_a_ring", {"code": "ALFA"})
            assert "ALFA" in str(prompt.messages[0].content)
            catalog = ["kestrel://catalog", "kestrel://catalog-pricing"]
            inbox = [] if path == "/wire" else ["turret://inbox", *catalog]
            assert [str(each.uri) for each in (await client.list_resources()).resources] == inbox
            templates = (await client.list_resource_templates()).resource_templates
            assert len(templates) == (3 if path == "/wire" else 7)


@pytest.mark.requirement("mcp.official-client")
@pytest.mark.parametrize("mode", MODES)
async def test_a_whole_call_goes_through_the_official_client(url: str, bench: Bench, mode: str) -> None:
    with trio.fail_after(20):
        async with Client(url, mode=mode) as client:

            async def ask(name: str, params: dict[str, Any]) -> dict[str, Any]:
                result = await client.call_tool(name, params)
                assert not result.is_error, result.content
                assert result.structured_content is not None
                return dict(result.structured_content)

            alfa, brav = Party("ALFA"), Party("BRAV")
            for party in (alfa, brav):
                statement = party.statement("open_desk", bench.broker.pk, bench.ts, code=party.code)
                assert (await ask("open_desk", statement))["code"] == party.code
            params = bench.calling(alfa, brav)
            call = await ask("send_call", params)
            line = Line(bench, call["conv"], alfa, brav, params["sig"])
            for type in ("PICKUP", "RFQ", "QUOTE", "HIT", "CONFIRM", "CONFIRM", "END"):
                envelope = line.next(type, {"qty": 3})
                assert (await ask("send_env", envelope))["n"] == envelope["n"]
                line.n, line.sig = envelope["n"], envelope["sig"]
            transcript = await ask("read_conv", {"conv": line.conv})
            assert [row["envelope"]["type"] for row in transcript["rows"]][-1] == "END"
            assert transcript["state"] == "ended"
            assert transcript["untrusted"] is True


@pytest.mark.requirement("mcp.progress", "mcp.official-client")
@pytest.mark.parametrize("mode", MODES)
async def test_rings_reach_the_official_client_as_progress(url: str, bench: Bench, mode: str) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    follow = brav.statement("follow", bench.broker.pk, bench.ts, code="BRAV", until=bench.ts + 3600)
    told: list[dict[str, Any]] = []
    came = trio.Event()

    async def progress(step: float, total: float | None, message: str | None) -> None:
        told.append(json.loads(message or ""))
        came.set()

    with trio.fail_after(20):
        async with Client(url, mode=mode) as client, trio.open_nursery() as nursery:

            async def listen() -> None:
                arguments = {"code": "BRAV", "after": "0", "wait_ms": 500, **follow}
                result = await client.call_tool("desk_rings", arguments, progress_callback=progress)
                assert result.structured_content is not None
                assert [ring["conv"] for ring in result.structured_content["rings"]] == [line.conv]

            nursery.start_soon(listen)
            line = await bench.dial(alfa, brav)
            await came.wait()
    assert [(ring["conv"], ring["untrusted"]) for ring in told] == [(line.conv, True)]


def proved(party: Party, bench: Bench) -> httpx2.AsyncClient:
    """An HTTP client whose requests carry the party's follow statement."""
    statement, sig = build_statement(
        "follow", party.key, bench.broker.pk, bench.ts, "0f" * 16, code=party.code, until=bench.ts + 3600
    )
    return create_mcp_http_client({"authorization": f"Turret {write_proof(statement, sig)}"})


@pytest.mark.requirement("mcp.listen", "mcp.watch", "mcp.official-client")
async def test_the_official_client_listens_for_rings_and_reads_them(url: str, bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    uri = "turret://desk/BRAV/rings"
    with trio.fail_after(20):
        async with (
            proved(brav, bench) as http,
            Client(streamable_http_client(url, http_client=http), mode="auto") as client,
            client.listen(resource_subscriptions=[uri]) as updates,
        ):
            line = await bench.dial(alfa, brav)
            event = await anext(aiter(updates))
            assert event == ResourceUpdated(uri)
            content = (await client.read_resource(uri)).contents[0]
            found = json.loads(content.text)  # type: ignore[union-attr]  # text
            assert [ring["conv"] for ring in found["rings"]] == [line.conv]
            assert found["untrusted"] is True


@pytest.mark.requirement("mcp.subscribe", "mcp.watch", "mcp.official-client")
@pytest.mark.filterwarnings("ignore:.*is removed as of 2026-07-28")
async def test_the_official_client_subscribes_in_the_handshake_era(url: str, bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    line = await bench.connect(alfa, brav)
    told: list[Any] = []
    came = trio.Event()

    async def hear(message: Any) -> None:
        told.append(message)
        came.set()

    with trio.fail_after(20):
        async with (
            proved(alfa, bench) as http,
            Client(
                streamable_http_client(url, http_client=http), mode="legacy", message_handler=hear
            ) as client,
        ):
            await client.subscribe_resource(f"turret://conv/{line.conv}")
            await line.send("SAY", {"text": "hello"})
            await came.wait()
    assert told[0].params.uri == f"turret://conv/{line.conv}"


@pytest.mark.requirement("mcp.disconnect", "mcp.cancel")
@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_cancels_in_the_way_of_its_era(tools: Tools, mode: str) -> None:
    broker = fake_broker()
    app = mcp_app(broker, faces={"": tools.surface()})
    with trio.fail_after(20):
        async with serving(app) as url, Client(url, mode=mode) as client:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.call_tool, "wait", {"mark": "a"})
                await tools.wait_entered(1)
                nursery.cancel_scope.cancel()
            await tools.wait_cancelled()
            tools.finish("b")
            result = await client.call_tool("wait", {"mark": "b"})
            assert result.content[0].text == "b"  # type: ignore[union-attr]  # text
    assert tools.cancelled == ["a"]
