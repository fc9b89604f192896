"""Far ends of a WebSocket: a session without a carrier, a strict client over any Trio stream, raw frames."""

import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
import trio
import trio.testing
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import SEND_EOF, State
from websockets.uri import parse_uri

from broker.app import Broker, Caller
from broker.clock import Clock, SystemClock
from broker.config import Settings
from gateways.caller import Bearing
from gateways.dealing import serve_dealing
from gateways.outbox import Outbox, open_outbox
from gateways.session import Session
from tests.support.broker import Bench, Party
from tests.support.network import MemoryListener

SETTINGS = Settings(store=msgspec.structs.replace(Settings().store, min_free_bytes=0))


def request(id: Any, method: str, **params: Any) -> bytes:
    """A request frame's text."""
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


class Direct:
    """A session whose frames a test hands in and takes out itself."""

    def __init__(self, session: Session, outbox: Outbox, nursery: trio.Nursery) -> None:
        self.session = session
        self.outbox = outbox
        self.nursery = nursery
        self._frames: deque[bytes] = deque()
        self._ids = 0

    async def next(self) -> dict[str, Any]:
        """The next frame that the peer would get."""
        with trio.fail_after(5):
            while not self._frames:
                await self.outbox.wait_work()
                self._frames.extend(self.outbox.take())
        frame: dict[str, Any] = json.loads(self._frames.popleft())
        return frame

    async def rest(self) -> list[dict[str, Any]]:
        """All frames that came until nothing moved any more."""
        await trio.testing.wait_all_tasks_blocked()
        self._frames.extend(self.outbox.take())
        frames = [json.loads(each) for each in self._frames]
        self._frames.clear()
        return frames

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one request and give the next frame, which must be its answer."""
        self._ids += 1
        await self.session.receive([request(self._ids, method, **params)])
        answer = await self.next()
        assert answer.get("id") == self._ids, answer
        return answer

    async def result(self, method: str, **params: Any) -> Any:
        """As `ask`, for one that succeeds."""
        answer = await self.ask(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    async def refusal(self, method: str, **params: Any) -> dict[str, Any]:
        """As `ask`, for one that is refused: the refusal's body."""
        error = (await self.ask(method, **params))["error"]
        body: dict[str, Any] = error["data"]["refusal"] if error["code"] == -32602 else error["data"]
        return body


def clock_of(broker: Any) -> Clock:
    """The clock that a broker goes by; the machine's for a fake."""
    return broker._services.clock if isinstance(broker, Broker) else SystemClock()


@asynccontextmanager
async def open_session(
    broker: Any,
    caller: Caller | None = None,
    settings: Settings | None = None,
    bearing: Bearing | None = None,
) -> AsyncIterator[Direct]:
    """A session of this broker, before its greeting."""
    outbox = open_outbox((settings or broker.settings).streams)
    async with trio.open_nursery() as nursery:
        session = Session(
            broker, caller or Caller(), outbox, nursery, clock=clock_of(broker), bearing=bearing
        )
        yield Direct(session, outbox, nursery)
        nursery.cancel_scope.cancel()


def authenticate(party: Party, bench: Bench, challenge: str) -> dict[str, Any]:
    """The params of `authenticate`."""
    return party.statement("authenticate", bench.broker.pk, bench.ts, nonce=challenge)


def capability(party: Party, bench: Bench, seconds: int = 3600, **members: Any) -> dict[str, Any]:
    """A follow statement and its sig, good for some seconds."""
    until = bench.ts + seconds
    return party.statement("follow", bench.broker.pk, bench.ts, until=until, **members)


class Client:
    """A WebSocket client that follows the RFC, frame by frame under the test's control."""

    def __init__(self, stream: trio.abc.Stream, protocol: ClientProtocol) -> None:
        self.stream = stream
        self.protocol = protocol
        self.reads = True
        self.answers = True
        """Whether it sends what the protocol owes: pongs and its half of the close."""
        self.pings = 0
        self.hello: dict[str, Any] = {}
        self._texts: deque[bytes] = deque()
        self._ids = 0

    @classmethod
    async def open(
        cls, stream: trio.abc.Stream, headers: dict[str, str] | None = None, path: str = "/"
    ) -> "Client":
        """The opening handshake, and the server's hello. AssertionError where it is refused."""
        protocol = ClientProtocol(parse_uri(f"ws://127.0.0.1{path}"), max_size=None)
        asked = protocol.connect()
        asked.headers.update(headers or {})
        protocol.send_request(asked)
        client = cls(stream, protocol)
        await client._flush()
        while protocol.state is State.CONNECTING and protocol.handshake_exc is None:
            await client._read()
        assert protocol.handshake_exc is None, protocol.handshake_exc
        client.hello = (await client.receive())["params"]
        return client

    async def send_raw(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def send(self, *texts: bytes) -> None:
        """Text frames, in one write."""
        await self.stream.send_all(b"".join(masked(each) for each in texts))

    async def receive(self, seconds: float = 5) -> dict[str, Any]:
        """The next message. EOFError when the connection ends first."""
        with trio.fail_after(seconds):
            while not self._texts:
                await self._read()
        message: dict[str, Any] = json.loads(self._texts.popleft())
        return message

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """One request and the frame that answers it; notifications in between are dropped."""
        self._ids += 1
        await self.send(request(self._ids, method, **params))
        while (answer := await self.receive()).get("id") != self._ids:
            pass
        return answer

    async def wait_closed(self, seconds: float = 5) -> tuple[int, str]:
        """Read to the end: the close code (1006: none came) and its reason."""
        with trio.fail_after(seconds):
            try:
                while True:
                    await self._read()
            except (EOFError, trio.BrokenResourceError):
                pass
        rcvd = self.protocol.close_rcvd
        return (rcvd.code, rcvd.reason) if rcvd is not None else (1006, "")

    def texts(self) -> list[dict[str, Any]]:
        """The messages that were read and not yet taken."""
        return [json.loads(each) for each in self._texts]

    async def close(self) -> None:
        """The close handshake from our side."""
        self.protocol.send_close(1000)
        await self._flush()
        await self.wait_closed()
        await self.stream.aclose()

    async def _read(self) -> None:
        data = await self.stream.receive_some(65_536)
        if not data:
            self.protocol.receive_eof()
            raise EOFError
        self.protocol.receive_data(data)
        for event in self.protocol.events_received():
            if isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                assert event.fin, "the server does not fragment"
                self._texts.append(bytes(event.data))
            elif isinstance(event, Frame) and event.opcode is Opcode.PING:
                self.pings += 1
        await self._flush()

    async def _flush(self) -> None:
        for data in self.protocol.data_to_send():
            if self.answers and data != SEND_EOF:
                await self.stream.send_all(data)


def masked(payload: bytes, opcode: Opcode = Opcode.TEXT, fin: bool = True) -> bytes:
    """A client's frame."""
    return Frame(opcode, payload, fin).serialize(mask=True)


class Port:
    """A dealing port over memory streams or sockets, and how to reach it."""

    def __init__(
        self, shutdown: trio.Event, connect: Callable[[], Any], dialled: list[trio.abc.Stream]
    ) -> None:
        self.shutdown = shutdown
        self._connect = connect
        self._dialled = dialled
        self.address = ("", 0)
        self.returned = trio.Event()

    async def connect(self) -> Any:
        """A new connection, before any handshake; closed when the port is."""
        stream = await self._connect()
        self._dialled.append(stream)
        return stream

    async def dial(self, headers: dict[str, str] | None = None, path: str = "/") -> Client:
        return await Client.open(await self.connect(), headers, path)


@asynccontextmanager
async def open_port(broker: Any, *, sockets: bool = False, **options: Any) -> AsyncIterator[Port]:
    """Serve a broker's dealing port; on leaving everything is cut."""
    options.setdefault("clock", clock_of(broker))
    shutdown = trio.Event()
    dialled: list[trio.abc.Stream] = []
    listeners: Sequence[Any]
    if sockets:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        address = listeners[0].socket.getsockname()[:2]

        port = Port(shutdown, partial(trio.open_tcp_stream, *address), dialled)
        port.address = address
    else:
        listener = MemoryListener()
        listeners = [listener]
        port = Port(shutdown, listener.connect, dialled)

    async def serve(task_status: trio.TaskStatus[None]) -> None:
        await serve_dealing(broker, listeners, shutdown=shutdown, task_status=task_status, **options)
        port.returned.set()

    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(serve)
            yield port
            nursery.cancel_scope.cancel()
    finally:
        for stream in dialled:
            await trio.aclose_forcefully(stream)
