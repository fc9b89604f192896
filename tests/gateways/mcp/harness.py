"""The MCP door driven without a socket: whole exchanges, streams read as they come, clients that leave."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio
from mcp_types import methods

from gateways.eventstream import Decoder
from gateways.mcp.endpoint import McpApp, mcp_app
from gateways.mcp.revisions import CAPABILITIES_KEY, MODERN, VERSION_KEY
from gateways.mcp.surface import Ask, Outcome, Surface, ToolOffer
from tests.support.broker_fake import FakeBroker, FakeTool

LEGACY_REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
BOTH = "application/json, text/event-stream"
WAIT_SCHEMA = {"type": "object", "properties": {"wait_ms": {"type": "integer"}}}


class Response(msgspec.Struct):
    """A whole answer. `left`: the app gave none."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def result(self) -> dict[str, Any]:
        answer = self.json
        assert "error" not in answer, answer
        found: dict[str, Any] = answer["result"]
        return found

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json["error"]
        return found

    @property
    def events(self) -> list[Any]:
        """The messages of an event stream."""
        return [json.loads(each.data) for each in Decoder().feed(self.body)]


class Exchange:
    """One exchange under way: what the app says, as it says it, and a client that can leave."""

    def __init__(self) -> None:
        self.started = trio.Event()
        self.finished = trio.Event()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self._said = trio.Condition()
        self._gone = trio.Event()
        self._request: list[dict[str, Any]] = []

    def leave(self) -> None:
        """The client disconnects."""
        self._gone.set()

    async def receive(self) -> dict[str, Any]:
        if self._request:
            await trio.lowlevel.checkpoint()
            return self._request.pop(0)
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        async with self._said:
            if message["type"] == "http.response.start":
                assert not self.started.is_set(), "two starts of one response"
                self.status = message["status"]
                self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
                self.started.set()
            else:
                assert self.started.is_set(), "a body before its start"
                assert not self.finished.is_set(), "a body after its end"
                self.body += message.get("body", b"")
                if not message.get("more_body", False):
                    self.finished.set()
            self._said.notify_all()

    async def wait_said(self, text: bytes) -> None:
        """Until the body so far holds `text`."""
        async with self._said:
            while text not in self.body:
                await self._said.wait()

    async def wait_requests(self, count: int) -> list[Any]:
        """Until the stream holds that many requests of the server; all of them so far."""
        async with self._said:
            while True:
                messages = [json.loads(each.data) for each in Decoder().feed(self.body)]
                found = [each for each in messages if "method" in each and "id" in each]
                if len(found) >= count:
                    return found
                await self._said.wait()

    def response(self) -> Response:
        return Response(self.status, self.headers, self.body)


class Door:
    """An endpoint and the ways to knock on it."""

    def __init__(self, app: McpApp, broker: Any) -> None:
        self.app = app
        self.broker = broker
        self.query = b""
        """The query string of every request."""
        self.client = "127.0.0.1"
        self.server = "127.0.0.1"

    async def ask(
        self, method: str = "POST", path: str = "/mcp", body: Any = b"", **headers: str
    ) -> Response:
        """A whole exchange. A body that is not bytes is sent as JSON; header names take _ for -."""
        exchange = Exchange()
        with trio.fail_after(90):
            await self._run(exchange, method, path, body, headers)
        return exchange.response()

    @asynccontextmanager
    async def open(
        self, method: str = "POST", path: str = "/mcp", body: Any = b"", **headers: str
    ) -> AsyncIterator[Exchange]:
        """An exchange under way; leaving the block disconnects the client and waits for the app's end."""
        exchange = Exchange()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run, exchange, method, path, body, headers)
            yield exchange
            exchange.leave()

    async def _run(
        self, exchange: Exchange, method: str, path: str, body: Any, headers: Mapping[str, str]
    ) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        pieces = [data[at : at + 1000] for at in range(0, len(data), 1000)] or [b""]
        exchange._request = [
            {"type": "http.request", "body": piece, "more_body": at < len(pieces) - 1}
            for at, piece in enumerate(pieces)
        ]
        named = {"accept": BOTH, **({"content_type": "application/json"} if data else {}), **headers}
        raw = [
            (name.replace("_", "-").lower().encode(), value.encode("latin-1"))
            for name, value in named.items()
            if value != ""
        ]
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": self.query,
            "headers": raw,
            "client": (self.client, 50000),
            "server": (self.server, 80),
        }
        await self.app(scope, exchange.receive, exchange.send)

    async def modern(self, method: str, id: Any = 1, path: str = "/mcp", **params: Any) -> Response:
        """A request of 2026-07-28 with all that it asks for."""
        body, headers = modern(method, id, **params)
        return checked(await self.ask(path=path, body=body, **headers), method, MODERN)

    async def bare(self, method: str, id: Any = 1, path: str = "/mcp", **params: Any) -> Response:
        """A request that names neither session nor revision."""
        return await self.ask(path=path, body=request(method, id, **params))

    async def session(
        self, revision: str = "2025-11-25", capabilities: Mapping[str, Any] | None = None, **headers: str
    ) -> "SessionDoor":
        """A handshake done."""
        params = {
            "protocolVersion": revision,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        answer = await self.ask(body=request("initialize", **params), **headers)
        assert answer.status == 200, answer
        checked(answer, "initialize", answer.result["protocolVersion"])
        return SessionDoor(self, answer.headers["mcp-session-id"], answer.result["protocolVersion"])


class SessionDoor:
    """A door and a session."""

    def __init__(self, door: Door, id: str, revision: str) -> None:
        self.door = door
        self.id = id
        self.revision = revision

    async def respond(self, id: Any, **outcome: Any) -> Response:
        """Answer a request of the server: result=… or error=…."""
        return await self.door.ask(body={"jsonrpc": "2.0", "id": id, **outcome}, **self.headers)

    @property
    def headers(self) -> dict[str, str]:
        named = {} if self.revision == "2025-03-26" else {"mcp_protocol_version": self.revision}
        return {"mcp_session_id": self.id, **named}

    async def ask(self, method: str, id: Any = 1, path: str = "/mcp", **params: Any) -> Response:
        answer = await self.door.ask(path=path, body=request(method, id, **params), **self.headers)
        return checked(answer, method, self.revision)


def request(method: str, id: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def modern(method: str, id: Any = 1, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Body and headers of a request of 2026-07-28. `_meta` members given are added to the required ones."""
    meta = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}, **params.pop("_meta", {})}
    headers = {"mcp_protocol_version": MODERN, "mcp_method": method}
    name = params.get("name", params.get("uri"))
    if isinstance(name, str) and method in ("tools/call", "prompts/get", "resources/read"):
        headers["mcp_name"] = name
    return request(method, id, **params, _meta=meta), headers


def checked(answer: Response, method: str, revision: str) -> Response:
    """The same answer, its result found good by the official types."""
    message = (
        answer.json if answer.headers["content-type"].startswith("application/json") else answer.events[-1]
    )
    if "result" in message:
        methods.validate_server_result(method, revision, message["result"])
    return answer


def offer(name: str, call: Any, *, waits: bool = False, schema: dict[str, Any] | None = None) -> ToolOffer:
    descriptor = {
        "name": name,
        "description": name,
        "inputSchema": schema or {"type": "object", "properties": {}},
    }
    return ToolOffer(descriptor=descriptor, call=call, waits=waits)


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], "isError": False}


class Tools:
    """A surface of tools that last, count, fail and finish when the test says so."""

    def __init__(self) -> None:
        self.go: dict[str, trio.Event] = {}
        self.entered: list[str] = []
        self.cancelled: list[str] = []
        self._seen = trio.Condition()
        self._ended = trio.Event()

    def surface(self) -> Surface:
        waiting = {
            "type": "object",
            "properties": {"mark": {"type": "string"}, "wait_ms": {"type": "integer"}},
        }
        return Surface(
            tools={
                "echo": offer("echo", self._echo),
                "wait": offer("wait", self._wait, waits=True, schema=waiting),
                "count": offer("count", self._count, waits=True, schema=waiting),
                "broken": offer("broken", self._broken),
            }
        )

    async def wait_entered(self, count: int) -> None:
        """Until that many calls of `wait` are under way."""
        async with self._seen:
            while len(self.entered) < count:
                await self._seen.wait()

    async def wait_cancelled(self) -> None:
        """Until one of them was cancelled."""
        await self._ended.wait()

    def finish(self, mark: str) -> None:
        self.go.setdefault(mark, trio.Event()).set()

    async def _echo(self, ask: Ask, arguments: bytes) -> Outcome:
        return text(arguments.decode())

    async def _wait(self, ask: Ask, arguments: bytes) -> Outcome:
        mark = json.loads(arguments)["mark"]
        async with self._seen:
            self.entered.append(mark)
            self._seen.notify_all()
        try:
            await self.go.setdefault(mark, trio.Event()).wait()
        except trio.Cancelled:
            self.cancelled.append(mark)
            self._ended.set()
            raise
        return text(mark)

    async def _count(self, ask: Ask, arguments: bytes) -> Outcome:
        for step in range(1, 4):
            await trio.sleep(1)
            await ask.progress(step, f"step {step}", total=3)
        return text("counted")

    async def _broken(self, ask: Ask, arguments: bytes) -> Outcome:
        raise RuntimeError("a secret of the inside")


def fake_broker() -> FakeBroker:
    """The fake with a waiting tool, as the wire's desk_rings is."""
    broker = FakeBroker()
    broker.tools["desk_rings"] = FakeTool(
        name="desk_rings", streams=True, read_only=True, input_schema=WAIT_SCHEMA
    )
    return broker


def tools_door(tools: Tools, **options: Any) -> Door:
    broker = fake_broker()
    return Door(mcp_app(broker, faces={"": tools.surface()}, **options), broker)
