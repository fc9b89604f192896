"""How the peers' servers on uvicorn are run: logs off, TCP_NODELAY on, uvloop and httptools where they are there."""

import asyncio
import importlib.util
import json
import socket
from typing import Any, Final

import uvicorn

HOST: Final = "127.0.0.1"
FAST: Final = ("uvloop", "httptools")


def run_uvicorn(app: Any, **options: Any) -> None:
    """Serve on a free port until a signal says stop. One line of JSON on stdout: `url`, and what it runs on."""
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=1, **options
    )
    # asyncio sets TCP_NODELAY where the listener names its protocol; uvloop always does.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, 0))
        listener.listen(1024)
        announce(f"http://{HOST}:{listener.getsockname()[1]}", *present())
        uvicorn.Server(config).run(sockets=[listener])


def run_loop(main: Any) -> None:
    """asyncio.run, on uvloop where it is installed."""
    if "uvloop" in present():
        import uvloop

        uvloop.run(main)
    else:
        asyncio.run(main)


def present() -> tuple[str, ...]:
    """Of uvloop and httptools those that are installed: uvicorn then takes them by itself."""
    return tuple(name for name in FAST if importlib.util.find_spec(name) is not None)


def announce(url: str, *runs_on: str) -> None:
    """Say that the server is ready."""
    print(json.dumps({"url": url, "runs_on": runs_on}), flush=True)
