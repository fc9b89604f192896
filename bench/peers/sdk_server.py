"""The peer "sdk": the official MCP SDK's server with two tools, as a user would make agents deal over it.

`python -m bench.peers.sdk_server DATA`. `send_env` judges, writes with a group commit and acknowledges; MCP has no push
that clients hand to their models, so that the other party waits in `wait_env` (a long poll, as such servers do it).
Streamable HTTP with JSON answers, which is the SDK's fastest mode.
"""

import asyncio
import contextlib
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from mcp.server.mcpserver import MCPServer

from bench.peers.ledger import FILE, Heads, Store
from bench.peers.listening import HOST, run_uvicorn

WAIT_S: Final = 25.0


class Book:
    """What was said in each conversation, and who waits for more."""

    def __init__(self, data: Path) -> None:
        self._file = data / FILE
        self._heads = Heads()
        self._said: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        self._waiting: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)
        self._store: Store | None = None

    @contextlib.asynccontextmanager
    async def running(self, server: Any) -> AsyncIterator[None]:
        """The writer runs as long as the server."""
        self._store = Store(self._file)
        writer = asyncio.create_task(self._store.run())
        yield
        writer.cancel()
        self._store.close()

    async def send_env(self, sig: str, envelope: str) -> dict[str, Any]:
        """Write one signed envelope, given as its canonical text; answered when it is on disk."""
        assert self._store is not None  # the server has started
        text = envelope.encode()
        accepted = self._heads.accept(text, sig)
        await self._store.append((accepted.conv, accepted.n, sig, text))
        self._said[accepted.conv].append((sig, envelope))
        for waiting in self._waiting.pop(accepted.conv, ()):
            if not waiting.done():
                waiting.set_result(None)
        return {"conv": accepted.conv, "n": accepted.n}

    async def wait_env(self, conv: str, n: int) -> dict[str, Any]:
        """Envelope n of a conversation, as soon as it is there; an empty answer after 25 s."""
        said = self._said[conv]
        if len(said) <= n:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting[conv].add(waiting)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waiting, WAIT_S)
        return {"sig": said[n][0], "envelope": said[n][1]} if len(said) > n else {}


def app(data: Path) -> Any:
    """The ASGI application; its store lies in the folder `data`."""
    book = Book(data)
    server = MCPServer("bench", log_level="WARNING", lifespan=book.running)
    server.tool()(book.send_env)
    server.tool()(book.wait_env)
    return server.streamable_http_app(host=HOST, json_response=True)


if __name__ == "__main__":
    run_uvicorn(app(Path(sys.argv[1])))
