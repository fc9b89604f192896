"""The peer "starlette": a WebSocket service as a competent user would write it in an afternoon.

`python -m bench.peers.starlette_server DATA`. Each party opens /<pk> and sends {id, sig, envelope} in text frames. The
envelope is judged, written with a group commit, acknowledged by {"ack": id}, and forwarded to the other party's socket.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from bench.peers.ledger import FILE, Heads, Refused, Store
from bench.peers.listening import run_uvicorn


class Sent(msgspec.Struct):
    """A frame from a party."""

    id: int
    sig: str
    envelope: msgspec.Raw


_sent: Final = msgspec.json.Decoder(Sent)


class Service:
    """The parties that are connected, and what they have said."""

    def __init__(self, data: Path) -> None:
        self._file = data / FILE
        self._heads = Heads()
        self._sockets: dict[str, WebSocket] = {}
        self._store: Store | None = None

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """The writer runs as long as the application."""
        self._store = Store(self._file)
        writer = asyncio.create_task(self._store.run())
        yield
        writer.cancel()
        self._store.close()

    async def party(self, socket: WebSocket) -> None:
        """One party's connection."""
        pk = socket.path_params["pk"]
        await socket.accept()
        self._sockets[pk] = socket
        try:
            while True:
                await self._take(socket, await socket.receive_text())
        except WebSocketDisconnect:
            pass
        finally:
            self._sockets.pop(pk, None)

    async def _take(self, socket: WebSocket, text: str) -> None:
        assert self._store is not None  # the application has started
        frame = _sent.decode(text)
        try:
            envelope = self._heads.accept(bytes(frame.envelope), frame.sig)
        except Refused as refused:
            await socket.send_json({"refused": frame.id, "why": str(refused)})
            return
        await self._store.append((envelope.conv, envelope.n, frame.sig, bytes(frame.envelope)))
        await socket.send_text(f'{{"ack":{frame.id}}}')
        other = self._sockets.get(envelope.to)
        if other is not None:
            await other.send_text(f'{{"sig":"{frame.sig}","envelope":{bytes(frame.envelope).decode()}}}')


def app(data: Path) -> Starlette:
    """The application; its store lies in the folder `data`."""
    service = Service(data)
    return Starlette(routes=[WebSocketRoute("/{pk}", service.party)], lifespan=service.lifespan)


if __name__ == "__main__":
    run_uvicorn(app(Path(sys.argv[1])), ws_per_message_deflate=False)
