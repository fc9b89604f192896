"""A2A's door over a broker of a test's own: two agents that have agreed, tokens, calls, streams."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio

from broker.app import Caller
from gateways.a2a.card import PREFIX, Place
from gateways.a2a.door import a2a_app
from gateways.eventstream import Decoder, Event
from gateways.gate import Gate
from tests.support.agents import make_agent
from tests.support.broker import Bench
from tests.support.pairs import agree
from tests.support.tokens import HERE, ORIGIN, FakeBearers

PLACE = Place(ORIGIN, f"{ORIGIN}/oauth/token")


class Answer(msgspec.Struct):
    status: int = 0
    headers: dict[str, str] = {}
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Stream:
    """A stream that is being read. `events`: those so far; `over`: it has ended."""

    def __init__(self) -> None:
        self.answer = Answer()
        self.events: list[Event] = []
        self.over = trio.Event()
        self.leave = trio.Event()
        self._grown = trio.Event()
        self._decoder = Decoder()

    @property
    def results(self) -> list[Any]:
        return [json.loads(each.data)["result"] for each in self.events]

    @property
    def said(self) -> list[str]:
        """Of each event what it is, and how the task stands then."""
        told: list[str] = []
        for each in self.results:
            (kind, value), *_ = each.items()
            status = value.get("status", {}).get("state", "")
            told.append(f"{kind} {status.removeprefix('TASK_STATE_').lower()}".rstrip())
        return told

    async def first(self, count: int) -> list[str]:
        """What is said, once there are so many events."""
        with trio.fail_after(5):
            while len(self.events) < count:
                await self._grown.wait()
        return self.said

    def feed(self, chunk: bytes) -> None:
        self.answer.body += chunk
        if self.answer.headers.get("content-type", "").startswith("text/event-stream"):
            self.events += self._decoder.feed(chunk)
            self._grown.set()
            self._grown = trio.Event()


class Doors:
    """See the module. `ann` gives `bob` tasks; `eve` has agreed with bob too."""

    def __init__(self, bench: Bench, ann: Caller, bob: Caller, eve: Caller) -> None:
        self.bench = bench
        self.ann, self.bob, self.eve = ann, bob, eve
        self.bearers = FakeBearers(bench.broker)
        for name, caller in (("ann", ann), ("bob", bob), ("eve", eve)):
            self.bearers.give(name, caller)
        self.app = a2a_app(bench.broker, PLACE, gate=Gate(self.bearers, HERE))  # type: ignore[arg-type]

    async def ask(
        self,
        path: str,
        method: str = "GET",
        body: bytes = b"",
        token: str | None = None,
        stream: Stream | None = None,
        **headers: str,
    ) -> Answer:
        """One request; a stream is read until it ends, or is left."""
        reading = stream or Stream()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            given["authorization"] = f"Bearer {token}"
        told = False

        async def receive() -> dict[str, Any]:
            nonlocal told
            if told:
                await reading.leave.wait()
                return {"type": "http.disconnect"}
            told = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            await trio.lowlevel.checkpoint()
            if message["type"] == "http.response.start":
                reading.answer.status = message["status"]
                pairs = [(k.decode().lower(), v.decode()) for k, v in message["headers"]]
                reading.answer.headers = dict(reversed(pairs))  # of repeated ones the first
            else:
                reading.feed(message.get("body", b""))

        where, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": where,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "client": ("203.0.113.7", 4711),
        }
        await self.app(scope, receive, send)
        reading.over.set()
        return reading.answer

    async def rpc(
        self, method: str, params: Any = None, token: str | None = "ann", to: str | None = None, **more: Any
    ) -> Answer:
        """A method at bob's endpoint (or another agent's), as A2A 1.0 has it."""
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params or {}}
        headers = {"content-type": "application/json", "a2a-version": "1.0", **more}
        path = PREFIX + (to or str(self.bob.agent))
        return await self.ask(path, "POST", json.dumps(body).encode(), token, **headers)

    async def result(self, method: str, params: Any = None, **more: Any) -> Any:
        """What a method answers; it must not be an error."""
        answer = await self.rpc(method, params, **more)
        assert answer.status == 200, answer.body
        assert answer.json.keys() == {"jsonrpc", "id", "result"}, answer.json
        return answer.json["result"]

    async def error(self, method: str, params: Any = None, **more: Any) -> Any:
        """The error that a method answers."""
        answer = await self.rpc(method, params, **more)
        assert (answer.status, answer.json["id"]) == (200, 7)
        return answer.json["error"]

    async def send(self, text: str = "do it", wait: bool = False, **message: Any) -> Any:
        """A task that ann gives bob."""
        params = {"message": said(text, **message), "configuration": {"returnImmediately": not wait}}
        return (await self.result("SendMessage", params))["task"]

    async def complete(self, task_id: str, text: str = "done", outcome: str = "completed") -> None:
        """Bob answers, over his own door."""
        await self.bench.call("complete_task", self.bob, task_id=task_id, outcome=outcome, text=text)

    async def update(self, task_id: str, status: str, text: str | None = None) -> None:
        """Bob says how it stands."""
        said = {"text": text} if text is not None else {}
        await self.bench.call("update_task", self.bob, task_id=task_id, status=status, **said)

    @asynccontextmanager
    async def streaming(self, method: str, params: Any, **more: Any) -> AsyncIterator[Stream]:
        """A streaming method, read while the block lasts."""
        stream = Stream()

        async def read() -> None:
            await self.rpc(method, params, stream=stream, **more)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            yield stream
            stream.leave.set()
            with trio.fail_after(5):
                await stream.over.wait()


def said(text: str = "do it", **more: Any) -> dict[str, Any]:
    """A message of a client's."""
    return {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": text}], **more}


async def open_doors(bench: Bench) -> Doors:
    """See Doors."""
    ann, bob, eve = [await make_agent(bench, name, public=name == "Bob") for name in ("Ann", "Bob", "Eve")]
    await agree(bench, ann, bob, scopes=["task"])
    await agree(bench, eve, bob, scopes=["task"])
    return Doors(bench, ann, bob, eve)
