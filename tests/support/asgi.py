"""One request to an ASGI application, with no server between."""

from collections.abc import Mapping
from typing import Any

import msgspec
import trio

from gateways.listen import App


class Answered(msgspec.Struct):
    """What came back."""

    status: int = 0
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    body: bytes = b""


async def asked(
    app: App,
    path: str,
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "GET",
    body: bytes = b"",
    client: str = "127.0.0.1",
    server: str = "127.0.0.1",
    scheme: str = "http",
) -> Answered:
    """The answer to one request. Host is the server's own address unless it is given."""
    answer, told = Answered(), False
    given = {"host": f"{server}:8766", **(headers or {})}
    where, _, query = path.partition("?")

    async def receive() -> dict[str, Any]:
        nonlocal told
        if told:
            await trio.sleep_forever()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        else:
            answer.body += message.get("body", b"")

    scope = {
        "type": "http",
        "asgi": {"spec_version": "2.1", "version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": scheme,
        "path": where,
        "raw_path": where.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
        "client": (client, 40_000),
        "server": (server, 8766),
        "extensions": {},
    }
    with trio.fail_after(5):
        await app(scope, receive, send)
    return answer
