"""A dealer's way to the broker: over the dealing port and a pipe, or by calling the broker itself.

Both are used alike. `Lost` means that nothing is known of what was asked: the broker may have done it.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import msgspec
import trio
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from broker.app import Broker, Caller, Ended, Slow
from broker.wire.refusals import Refusal
from tests.support.pipes import Pipe
from tests.support.ws import request

PATIENCE_S = 20.0
"""Seconds after which a client takes a connection that does not answer for dead."""
SILENCE_S = 45.0
"""The same for one on which nothing comes: the broker pings every 20 s."""
GONE = (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError, EOFError)


class Lost(Exception):
    """The connection ended before the answer came."""


class Wrong(Exception):
    """An answer that no correct broker gives."""


class Told(msgspec.Struct, frozen=True):
    """An answer: a result (code "") or a refusal."""

    code: str
    body: dict[str, Any]


Seen = Callable[[str, dict[str, Any]], None]
"""Takes an event: its kind and its params. "resume" is the answer to follow."""


class Link(Protocol):
    """One connection."""

    down: trio.Event
    pipe: Pipe | None
    paused: trio.Event
    """While it is not set, nothing is read."""

    async def ask(self, method: str, params: dict[str, Any]) -> Told:
        """Ask, and wait for the answer. Raises Lost."""
        ...

    async def follow(self, after: str) -> None:
        """Follow the dealer's own stream. Raises Lost."""
        ...

    async def run(self) -> None:
        """Read until the connection ends."""
        ...

    def drop(self) -> None:
        """End it now."""
        ...


class PortLink:
    """Over the dealing port: WebSocket on a pipe."""

    def __init__(self, pipe: Pipe, seen: Seen) -> None:
        self.down = trio.Event()
        self.pipe: Pipe | None = pipe
        self.paused = trio.Event()
        self.paused.set()
        self.hello: dict[str, Any] = {}
        self._seen = seen
        self._greeted = trio.Event()
        self._stream = pipe.near
        self._protocol = ClientProtocol(parse_uri("ws://127.0.0.1/"), max_size=None)
        self._answers: dict[int, Any] = {}
        self._waiting: dict[int, trio.Event] = {}
        self._ids = 0
        self._sending = trio.Lock()
        self._follows: set[int] = set()

    async def open(self) -> None:
        """Ask for the upgrade; `run` reads the answer, and the greeting. Raises Lost."""
        self._protocol.send_request(self._protocol.connect())
        await self._flush()
        with trio.move_on_after(PATIENCE_S):
            await self._greeted.wait()
        if not self.hello:
            self.drop()
            raise Lost

    async def ask(self, method: str, params: dict[str, Any]) -> Told:
        self._ids += 1
        return await self._ask(self._ids, method, params)

    async def follow(self, after: str) -> None:
        self._ids += 1
        self._follows.add(self._ids)
        told = await self._ask(self._ids, "follow", {"after": after})
        if told.code:
            raise Lost if told.code == "unavailable" else Wrong(f"follow was refused: {told}")

    async def _ask(self, id: int, method: str, params: dict[str, Any]) -> Told:
        event = self._waiting[id] = trio.Event()
        try:
            async with self._sending:
                if self.down.is_set():
                    raise Lost
                self._protocol.send_text(request(id, method, **params))
                await self._flush()
            with trio.move_on_after(PATIENCE_S):
                await event.wait()
        finally:
            del self._waiting[id]
        if id not in self._answers:
            self.drop()
            raise Lost
        return _told(self._answers.pop(id))

    async def run(self) -> None:
        try:
            while True:
                await self.paused.wait()
                data = b""
                with trio.move_on_after(SILENCE_S):
                    data = await self._stream.receive_some(4096)
                if not data:
                    break
                self._protocol.receive_data(data)
                for frame in self._protocol.events_received():
                    if isinstance(frame, Frame) and frame.opcode is Opcode.TEXT:
                        self._take(json.loads(bytes(frame.data)))
                async with self._sending:
                    await self._flush()
        except (*GONE, Lost):
            pass
        finally:
            self.drop()

    def _take(self, frame: dict[str, Any]) -> None:
        id, method = frame.get("id"), frame.get("method")
        if id in self._follows and "result" in frame:
            self._seen("resume", frame["result"])
        if id in self._waiting:
            self._answers[id] = frame
            self._waiting[id].set()
        elif method == "hello":
            self.hello = frame["params"]
            self._greeted.set()
        elif method is not None:
            self._seen(method, frame["params"])

    async def _flush(self) -> None:
        data = b"".join(self._protocol.data_to_send())
        if not data:
            return
        try:
            await self._stream.send_all(data)
        except GONE as error:
            self.drop()
            raise Lost from error
        if self._protocol.state is State.CLOSED:
            raise Lost

    def drop(self) -> None:
        assert self.pipe is not None
        self.pipe.cut()
        self.down.set()
        self._greeted.set()
        self.paused.set()
        for event in self._waiting.values():
            event.set()


def _told(frame: dict[str, Any]) -> Told:
    if "result" in frame:
        return Told("", frame["result"])
    error = frame["error"]
    body = error.get("data", {})
    body = body.get("refusal", body) if isinstance(body, dict) else {}
    if error["code"] == -32603 or "code" not in body:
        raise Wrong(f"the broker answered {error}")
    return Told(body["code"], body)


class DirectLink:
    """Without a door: what the doors call."""

    def __init__(self, broker: Broker, caller: Caller, seen: Seen) -> None:
        self.down = trio.Event()
        self.pipe: Pipe | None = None
        self.paused = trio.Event()
        self.paused.set()
        self._broker = broker
        self._caller = caller
        self._seen = seen
        self._scope = trio.CancelScope()
        self._reader: Any = None
        self._asking: set[trio.CancelScope] = set()

    async def ask(self, method: str, params: dict[str, Any]) -> Told:
        call = partial(self._broker.call, self._caller, method, json.dumps(params).encode())
        answer = await self._bounded(call)
        if isinstance(answer, Refusal):
            return Told(answer.code, json.loads(msgspec.json.encode(answer.body())))
        return Told("", json.loads(msgspec.json.encode(answer)))

    async def follow(self, after: str) -> None:
        reader = await self._bounded(partial(self._broker.follow, self._caller, after=after))
        if isinstance(reader, Refusal):
            raise Lost if reader.code == "unavailable" else Wrong(f"follow was refused: {reader}")
        if self.down.is_set():
            reader.close()
            raise Lost
        if self._reader is not None:
            self._reader.close()
        self._seen("resume", json.loads(msgspec.json.encode(reader.resume)))
        self._reader = reader

    async def _bounded(self, call: Callable[[], Any]) -> Any:
        if self.down.is_set():
            raise Lost
        with trio.move_on_after(PATIENCE_S) as scope:
            self._asking.add(scope)
            try:
                answer = await call()
            finally:
                self._asking.discard(scope)
        if scope.cancelled_caught:
            self.drop()
            raise Lost
        return answer

    async def run(self) -> None:
        """Feed what is followed; `follow` comes first."""
        reader = self._reader
        try:
            with self._scope:
                async with reader:
                    while True:
                        await self.paused.wait()
                        for delivery in await reader.receive():
                            self._seen(delivery.kind, json.loads(delivery.params))
        except (Slow, Ended, trio.ClosedResourceError):
            pass
        finally:
            self.drop()

    def drop(self) -> None:
        self.down.set()
        self.paused.set()
        self._scope.cancel()
        if self._reader is not None:
            self._reader.close()
        for scope in list(self._asking):
            scope.cancel()
