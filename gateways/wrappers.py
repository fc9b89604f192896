"""ASGI wrappers that stand before every route: faults contained, Host and Origin checked, bodies bounded.

1. A body is read whole and counted before an application sees it; what is too large is never buffered.
2. Host and Origin are parsed, never compared by prefix (MCP transport, Security; CVE-2025-66416). A target that
   is a whole URL is refused: its host and the Host header could be read by two readers in two ways.
3. An answer given before its request was read is followed by a short draining, so that the client sees it.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec
import trio

from broker.app import Caller
from broker.wire.refusals import refuse
from gateways import render
from gateways.bodies import Gone, Held, NoRoom, Rooms, TooLarge, drain, read_body
from gateways.listen import Address, App, Bounds, Message, Receive, Scope, Send, read_hop, values_of

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
PROBES: Final = frozenset({"/healthz", "/readyz"})
"""Paths that any Host may ask: load balancers use the bare address, and these tell nothing."""

SHARED: Final = (
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-authorization-server",
    "/oauth/jwks",
)
"""Begin the paths of documents that pages of every origin may read; their door says so itself."""

ALLOW_HEADERS: Final = (
    "Authorization, Content-Type, Accept, Last-Event-ID, MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, "
    "Mcp-Name, Mcp-Param-Topic, Idempotency-Key, A2A-Version, A2A-Extensions"
)
EXPOSE_HEADERS: Final = "Mcp-Session-Id, WWW-Authenticate, Retry-After, X-Request-Id"


class Origins(msgspec.Struct, frozen=True, kw_only=True):
    """Who may ask by name. `public_url`: where clients find us; `allowed`: other origins, `https://host[:port]`.

    Without a `public_url` our names are not known, and every Host is taken on addresses that are not loopback.
    """

    public_url: str | None = None
    allowed: tuple[str, ...] = ()
    exact: bool = False
    """Only pages of the very origin that is asked may ask, not those of another port of this machine; no CORS."""


async def respond(
    receive: Receive, send: Send, answer: tuple[int, render.Headers, bytes], bounds: Bounds
) -> None:
    """Answer now, whether or not the request's body was read."""
    status, headers, body = answer
    if status != 204:
        headers = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await drain(receive, bounds.linger_s)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def contain(app: App) -> App:
    """An unexpected exception becomes a logged incident and, where nothing was sent yet, an answer of 500."""

    async def contained(scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        number = ""
        try:
            await app(scope, receive, sending)
        except* Exception as faults:
            number = render.incident(faults, "an HTTP door")
        if number and not started:
            status, headers, body = render.http_fault(number)
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body, "more_body": False})

    return contained


WHO: Final = "turret.caller"
"""In the scope: the Caller or the Refusal of who asks, where that was looked at before the body was read."""
NO_ROOM: Final = refuse("overloaded", "too many large requests at once", retry_after_ms=1000)
"""Why a large body is not read to its end."""
Reply = tuple[int, render.Headers, bytes]
Limit = Callable[[Scope], Awaitable[int | Reply]]
"""How many bytes a request may have, by who sends it; or what is answered before its body is read."""


def limit_body(app: App, most: int | Limit, bounds: Bounds) -> App:
    """Read each body whole, at most `most` bytes, before `app` runs; else 413, or 408 when it is slow."""

    rooms = Rooms()

    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        with Held(rooms) as held:
            await admit(scope, receive, send, held)

    async def admit(scope: Scope, receive: Receive, send: Send, held: Held) -> None:
        limit = most if isinstance(most, int) else await most(scope)
        if not isinstance(limit, int):
            await respond(receive, send, limit, bounds)
            return
        held.who = _bearer(scope)
        body: bytes | TooLarge | NoRoom | None = None
        size = _declared(scope)
        if size is not None and size > limit:
            body = TooLarge(size, whole=False)
        else:
            try:
                with trio.move_on_after(bounds.body_s):
                    body = await read_body(receive, limit, held)
            except Gone:
                return
        if isinstance(body, bytes):
            await app(scope, _replay(body, receive), send)
        elif body is None:
            await respond(receive, send, _closing(408, b'{"error":"timeout"}'), bounds)
        else:
            left = _replay(b"", receive) if body.whole else receive
            no = _no_room() if isinstance(body, NoRoom) else _too_large(limit, body.size)
            await respond(left, send, no, bounds)

    return limited


def _bearer(scope: Scope) -> str:
    """Whose request it is, where the limit asked for who bears a token; "": nobody's that may send much."""
    who = scope.get(WHO)
    return who.principal or "" if isinstance(who, Caller) else ""


def _closing(status: int, body: bytes) -> tuple[int, render.Headers, bytes]:
    return status, [*render.JSON_HEADERS, (b"connection", b"close")], body


def _too_large(limit: int, size: int) -> tuple[int, render.Headers, bytes]:
    refusal = refuse("too_large", f"a request here has at most {limit} bytes", limit=limit, size=size)
    status, _, text = render.http(refusal)
    return _closing(status, text)


def _no_room() -> tuple[int, render.Headers, bytes]:
    status, headers, text = render.http(NO_ROOM)
    return status, [*headers, (b"connection", b"close")], text


def _declared(scope: Scope) -> int | None:
    values = values_of(scope, b"content-length")
    return int(values[0]) if values and values[0].isdigit() and len(values[0]) < 20 else None


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body as one message, then whatever else the connection tells (http.disconnect)."""
    given = False

    async def replaying() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replaying


def check_origin(app: App, origins: Origins, bounds: Bounds) -> App:
    """421 for a Host that is not ours, 403 for an Origin that may not ask; CORS for one that may."""
    public = _site(origins.public_url)
    allowed = frozenset(each for each in (_site(text) for text in origins.allowed) if each is not None)

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        given = [value.decode("latin-1") for name, value in headers if name.lower() == b"origin"]
        host = _host(headers)
        server = _server(scope)
        local = server is not None and server.is_loopback
        if not scope["path"].startswith("/"):  # a whole URL
            await respond(receive, send, _barred(400, "name the path alone"), bounds)
            return
        probe = scope["path"] in PROBES and (host is not None or all(name != b"host" for name, _ in headers))
        if not probe and not _known_host(host, server, public):
            await respond(receive, send, _barred(421, "this broker does not answer for that Host"), bounds)
            return
        if not given or scope["path"].startswith(SHARED):
            await app(scope, receive, send)
            return
        site = _site(given[0]) if len(given) == 1 else None
        if origins.exact:
            if site not in (public, _asked(scope, host)) or site is None or _downgraded(site, host, public):
                await respond(receive, send, _barred(403, "this Origin may not ask"), bounds)
            else:
                await app(scope, receive, send)
            return
        ours = site == public or (_same_host(site, host, local) and not _downgraded(site, host, public))
        if site is None or not (site in allowed or ours):
            await respond(receive, send, _barred(403, "this Origin may not ask"), bounds)
        elif _is_preflight(scope):
            await respond(receive, send, (204, _preflight(given[0]), b""), bounds)
        else:
            await app(scope, receive, _with_cors(given[0], send))

    return checked


Site = tuple[str, str, int]
"""Scheme, host, port."""
_NETLOC: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^][:@]*)(?::[0-9]*)?")
"""A host and a port and nothing else: urlsplit takes `[::1].evil.example` for ::1."""
_NAME: Final = re.compile(r"(?:[A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63}\.?")
"""A name of a host as it is asked for (RFC 1123, 2.1; RFC 1035, 2.3.4): readers behind us choke on longer labels."""
PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def _site(url: str | None) -> Site | None:
    """The origin of a URL, or None for what is none (`null`, a path alone, a port that is no number)."""
    parts = _split(url or "")
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, parts.port or PORTS[parts.scheme]


def _split(text: str) -> SplitResult | None:
    if not text.isprintable():  # urlsplit drops what is not
        return None
    try:
        parts = urlsplit(text)
        good = _NETLOC.fullmatch(parts.netloc) and (parts.port is None or parts.port > 0)
        return parts if good else None
    except ValueError:
        return None


def _host(headers: Sequence[tuple[bytes, bytes]]) -> tuple[str, int | None] | None:
    """The one Host header, as name and port; None where it is absent, double or malformed."""
    values = [value for name, value in headers if name.lower() == b"host"]
    return _read_host(values[0]) if len(values) == 1 else None


@lru_cache(maxsize=256)
def _read_host(value: bytes) -> tuple[str, int | None] | None:
    text = value.decode("latin-1")
    if any(mark in text for mark in "/\\?#@ \t"):
        return None
    parts = _split(f"//{text}")
    if parts is None or not parts.hostname or not (":" in parts.hostname or _NAME.fullmatch(parts.hostname)):
        return None
    return parts.hostname, parts.port


def _server(scope: Scope) -> Address | None:
    """The address of ours on which the connection came in."""
    server = scope.get("server")
    return read_hop(server[0]) if server else None


def _known_host(host: tuple[str, int | None] | None, server: Address | None, public: Site | None) -> bool:
    """Ours are the public name, and the very address asked (a page that rebinds a name can't say that one)."""
    if host is None:
        return False
    if public is not None and host[0] == public[1]:
        return True
    if server is not None and read_hop(host[0]) == server:
        return True
    if server is not None and server.is_loopback:
        return host[0] in LOOPBACK_NAMES
    return public is None


def _downgraded(site: Site | None, host: tuple[str, int | None] | None, public: Site | None) -> bool:
    """A page of our public name, but without the TLS that the public URL has: anybody on the way wrote it."""
    return bool(site and host and public and host[0] == public[1] and site[0] != public[0])


def _asked(scope: Scope, host: tuple[str, int | None] | None) -> Site | None:
    """The origin of the URL that was asked."""
    if host is None:
        return None
    scheme = str(scope.get("scheme", "http"))
    return scheme, host[0], host[1] or PORTS[scheme]


def _same_host(site: Site | None, host: tuple[str, int | None] | None, local: bool) -> bool:
    """The page came from this very host; on loopback, from any port of this machine."""
    if site is None or host is None:
        return False
    if local and host[0] in LOOPBACK_NAMES:
        return site[1] in LOOPBACK_NAMES
    return (site[1], site[2]) == (host[0], host[1] or PORTS[site[0]])


def _barred(status: int, message: str) -> tuple[int, render.Headers, bytes]:
    return render.http(refuse("bad_request", message, status=status))


def _is_preflight(scope: Scope) -> bool:
    return bool(scope["method"] == "OPTIONS")


def _preflight(origin: str) -> render.Headers:
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
        (b"access-control-allow-headers", ALLOW_HEADERS.encode()),
        (b"access-control-expose-headers", EXPOSE_HEADERS.encode()),
        (b"access-control-max-age", b"600"),
        (b"vary", b"Origin"),
    ]


def _with_cors(origin: str, send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            shared = [
                (b"access-control-allow-origin", origin.encode("latin-1")),
                (b"access-control-expose-headers", EXPOSE_HEADERS.encode()),
                (b"vary", b"Origin"),
            ]
            message = {**message, "headers": [*message.get("headers", []), *shared]}
        await send(message)

    return sending
