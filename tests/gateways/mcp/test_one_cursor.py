"""One cursor for all faces: a reader that leaves one door goes on at another, with no gap and no repeat."""

import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import trio

from broker.app import Caller
from broker.app import Reader as Stream
from gateways.caller import write_proof
from gateways.eventstream import Decoder
from gateways.listen import Bounds
from gateways.mcp.endpoint import mcp_app
from gateways.metrics import Metrics
from gateways.web import web_app
from gateways.websocket import ws_app
from tests.gateways.mcp.harness import modern, request
from tests.support.broker import Bench, Line, Party
from tests.support.network import Served, serving
from tests.support.peers import Download, dial
from tests.support.ws import Client, authenticate

QUICK = Bounds(linger_s=0.1, grace_s=0.5)
CALLS, ENVELOPES = 6, 12
SHARE = 13
"""Events that a door is read for before the reader leaves it, whatever it was sent beyond them."""


@asynccontextmanager
async def doors(bench: Bench) -> AsyncIterator[Served]:
    """All doors of the public port over one broker."""
    shutdown = trio.Event()
    mcp = mcp_app(bench.broker)
    app = web_app(
        bench.broker,
        Metrics(bench.broker),
        mcp_app=mcp,
        ws_app=ws_app(bench.broker, shutdown=shutdown),
    )
    async with serving(app, bounds=QUICK) as served:
        try:
            yield served
        finally:
            mcp.drain()
            shutdown.set()


class Reader:
    """The reader of one desk's stream: what it has, and its cursor."""

    def __init__(self, bench: Bench, served: Served, party: Party) -> None:
        self.bench = bench
        self.served = served
        self.party = party
        self.cursor = "0"
        self.seen: list[tuple[str, int]] = []
        statement = party.statement(
            "follow", bench.broker.pk, bench.ts, code=party.code, until=bench.ts + 3600
        )
        text = json.dumps(statement["statement"], sort_keys=True, separators=(",", ":")).encode()
        self.headers = {"authorization": f"Turret {write_proof(text, statement['sig'])}"}

    def take(self, event: dict[str, Any]) -> bool:
        """Keep an event; whether this door has been read for long enough."""
        self.seen.append((event["conv"], event["n"]))
        self.cursor = event["cursor"]
        return len(self.seen) % SHARE == 0

    async def by_websocket(self) -> None:
        client = await Client.open(await trio.open_tcp_stream(*self.served.address), path="/ws")
        async with client.stream:
            proven = authenticate(self.party, self.bench, client.hello["challenge"])
            assert "result" in await client.ask("authenticate", **proven)
            await client.send(request_text("follow", code=self.party.code, after=self.cursor))
            while True:
                message = await client.receive()
                if "result" in message:
                    assert message["result"]["recovered"] is True
                elif self.take(message["params"]):
                    return

    async def by_sse(self) -> None:
        decoder = Decoder()
        async with dial(self.served.address) as stream:
            download = Download(stream)
            headers = {**self.headers, "last-event-id": self.cursor}
            await download.ask(f"/rings/{self.party.code}", headers)
            assert download.status == 200
            while True:
                for event in decoder.feed(await download.read()):
                    if event.event == "resume":
                        assert json.loads(event.data)["recovered"] is True
                    elif self.take(json.loads(event.data)):
                        return

    async def by_waiting(
        self, call: Callable[[httpx.AsyncClient, dict[str, Any]], Awaitable[dict[str, Any]]]
    ) -> None:
        async with httpx.AsyncClient(base_url=self.served.url, timeout=30, headers=self.headers) as http:
            while True:
                limit = SHARE - len(self.seen) % SHARE
                found = await call(http, {"after": self.cursor, "wait_ms": 5000, "limit": limit})
                assert found["resume"]["recovered"] is True
                left = [self.take(event) for event in found["events"]]
                assert found["events"] == [] or found["cursor"] == self.cursor
                if any(left):
                    return

    async def by_mcp(self) -> None:
        async def call(http: httpx.AsyncClient, arguments: dict[str, Any]) -> dict[str, Any]:
            body, headers = modern("tools/call", name="wait_for_events", arguments=arguments)
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return structured(await http.post("/mcp", json=body, headers=named))

        await self.by_waiting(call)

    async def by_session(self) -> None:
        session: dict[str, str] = {}

        async def call(http: httpx.AsyncClient, arguments: dict[str, Any]) -> dict[str, Any]:
            if not session:
                params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}}
                opened = await http.post("/mcp", json=request("initialize", **params))
                session["mcp-session-id"] = opened.headers["mcp-session-id"]
            body = request("tools/call", 2, name="wait_for_events", arguments=arguments)
            return structured(await http.post("/mcp/wire", json=body, headers=session))

        await self.by_waiting(call)

    async def by_plain(self) -> None:
        async def call(http: httpx.AsyncClient, arguments: dict[str, Any]) -> dict[str, Any]:
            answer = await http.post("/v1/wait_for_events", json=arguments)
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            return found

        await self.by_waiting(call)


def request_text(method: str, **params: Any) -> bytes:
    return json.dumps(request(method, "follow", **params)).encode()


def structured(answer: httpx.Response) -> dict[str, Any]:
    """The tool's result out of JSON or of an event stream."""
    assert answer.status_code == 200, answer.text
    if answer.headers["content-type"].startswith("application/json"):
        message = answer.json()
    else:
        last = [line for line in answer.text.splitlines() if line.startswith("data: ")][-1]
        message = json.loads(last[6:])
    assert not message["result"]["isError"], message
    found: dict[str, Any] = message["result"]["structuredContent"]
    return found


async def talk(bench: Bench, lines: list[Line]) -> None:
    """Envelopes of several conversations, interleaved."""
    for _ in range(ENVELOPES):
        for line in lines:
            await line.send("SAY", {"qty": 1})
            await trio.lowlevel.checkpoint()


ROUTE = ("by_websocket", "by_mcp", "by_sse", "by_websocket", "by_session", "by_plain")


@pytest.mark.requirement("mcp.one-cursor")
@pytest.mark.parametrize("live", [True, False], ids=["live", "stored"])
@pytest.mark.parametrize("start", range(len(ROUTE)), ids=ROUTE)
async def test_a_reader_goes_from_door_to_door_with_no_gap_and_no_repeat(
    bench: Bench, start: int, live: bool
) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    lines = [await bench.dial(alfa, brav) for _ in range(CALLS)]
    route = itertools.cycle(ROUTE[start:] + ROUTE[:start])
    total = CALLS * (ENVELOPES + 2)
    with trio.fail_after(30):
        async with doors(bench) as served, trio.open_nursery() as nursery:
            reader = Reader(bench, served, brav)
            if live:
                nursery.start_soon(answer_and_talk, bench, lines)
            else:
                await answer_and_talk(bench, lines)
            while len(reader.seen) < total - total % SHARE:
                await getattr(reader, next(route))()
    whole = await bench.broker.follow(Caller(pk=brav.key.pk), after="0")
    assert isinstance(whole, Stream)
    stored: list[tuple[str, int]] = []
    async with whole as stream:
        while len(stored) < len(reader.seen):
            for each in await stream.receive():
                row = json.loads(each.params)
                stored.append((row["conv"], row["n"]))
    assert reader.seen == stored[: len(reader.seen)]
    assert len(set(reader.seen)) == len(reader.seen)


async def answer_and_talk(bench: Bench, lines: list[Line]) -> None:
    for line in lines:
        await line.send("PICKUP")
    await talk(bench, lines)


@pytest.mark.requirement("mcp.one-cursor")
async def test_rings_that_were_heard_over_mcp_are_not_heard_again_over_the_websocket(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    first = await bench.dial(alfa, brav)
    with trio.fail_after(10):
        async with doors(bench) as served:
            reader = Reader(bench, served, brav)
            async with httpx.AsyncClient(base_url=served.url, headers=reader.headers) as http:
                body = request("tools/call", name="desk_rings", arguments={"code": "BRAV", "after": "0"})
                found = structured(await http.post("/mcp", json=body))
            assert [ring["conv"] for ring in found["rings"]] == [first.conv]
            reader.cursor = found["cursor"]
            second = await bench.dial(alfa, brav)
            client = await Client.open(await trio.open_tcp_stream(*served.address), path="/ws")
            async with client.stream:
                proven = authenticate(brav, bench, client.hello["challenge"])
                await client.ask("authenticate", **proven)
                await client.send(request_text("follow", code="BRAV", after=reader.cursor))
                messages = [await client.receive(), await client.receive()]
            rings = [each["params"]["conv"] for each in messages if "method" in each]
            assert rings == [second.conv]


@pytest.mark.requirement("mcp.one-cursor")
@pytest.mark.parametrize(
    ("after", "reason"), [("nonsense", "unknown"), ("{epoch}", "epoch_changed"), ("{far}", "future")]
)
async def test_a_cursor_that_leads_nowhere_is_answered_with_its_reason(
    bench: Bench, after: str, reason: str
) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    await bench.dial(alfa, brav)
    with trio.fail_after(10):
        async with doors(bench) as served:
            reader = Reader(bench, served, brav)
            async with httpx.AsyncClient(base_url=served.url, headers=reader.headers) as http:

                async def ask(cursor: str) -> dict[str, Any]:
                    body = request("tools/call", name="wait_for_events", arguments={"after": cursor})
                    return structured(await http.post("/mcp", json=body))

                tag, epoch, position = (await ask("0"))["cursor"].split(".")
                other = ("0" if epoch[0] != "0" else "1") + epoch[1:]
                cursor = after.format(epoch=f"{tag}.{other}.{position}", far=f"{tag}.{epoch}.99999")
                found = await ask(cursor)
    assert (found["resume"]["recovered"], found["resume"]["reason"]) == (False, reason)
    assert found["events"] == []
