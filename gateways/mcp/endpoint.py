"""POST, GET and DELETE on /mcp and its faces: the rungs that both eras share, and the session's own verbs.

1. Order: path, verb, Accept, Content-Type, size, JSON, who asks (401), then the era's rungs (eras.py). A face that
   is entered with a token alone asks for it before all of these but the path. A token that is shown is judged before
   the size, which depends on it, and refused in its turn.
2. Every error is JSON-RPC, with the request's id where it could be read; its status is decided before a byte.
3. An exchange owns its answer: no answer is ever looked up by an id that a client chose.

Origin, Host and preflights are the wrapper's around all HTTP doors (gateways.wrappers). Source:
MCP 2025-03-26 to 2026-07-28, Transports (Streamable HTTP).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
import trio

from broker.apart import LARGE, apart
from broker.app import Broker, Caller
from broker.wire.refusals import Refusal
from gateways import caller as callers
from gateways import jsonrpc
from gateways.bodies import Gone, Held, NoRoom, Rooms, drain, is_json, read_body
from gateways.mcp import eras, exchange, headers, subscriptions
from gateways.mcp.dispatch import Dispatch, read_meta, read_params
from gateways.mcp.eras import Eras, Request, failed, names_modern, refused, wrong
from gateways.mcp.exchange import Answer, Http, Reply
from gateways.mcp.faces import surfaces
from gateways.mcp.headers import Headers
from gateways.mcp.protected import Protection
from gateways.mcp.revisions import LEGACY, MODERN, Fault
from gateways.mcp.sealed import Seal
from gateways.mcp.sessions import Session, Sessions
from gateways.mcp.surface import Surface
from gateways.oauth.metadata import GUARDED
from gateways.streaming import wait_left
from gateways.wrappers import NO_ROOM

ROOT: Final = "/mcp"
DISCARD_S: Final = 2.0
"""Seconds for reading away a body beyond the limit, so that the client reads its 413 and no reset."""
STREAM_S: Final = 3600.0
"""Seconds after which a GET stream ends by itself; the client opens another."""


def mcp_app(
    broker: Broker,
    *,
    proxies: Sequence[callers.Network] = (),
    faces: Mapping[str, Surface] | None = None,
    sessions: Sessions | None = None,
    keep_alive_s: float = exchange.KEEP_ALIVE_S,
    protected: Protection | None = None,
) -> "McpApp":
    """The ASGI callable for /mcp and /mcp/<face>, with and without a trailing slash.

    `faces` (by name; "" is /mcp itself) stands in for those of the broker's registry: for tests. Without `protected`
    no token is taken, and the faces that need one are not there.
    """
    offered = dict(faces if faces is not None else surfaces(broker, GUARDED))
    if protected is None:
        offered = {name: face for name, face in offered.items() if name not in GUARDED}
    return McpApp(broker, offered, proxies, sessions or Sessions(), keep_alive_s, protected)


class McpApp:
    """See mcp_app."""

    def __init__(
        self,
        broker: Broker,
        faces: Mapping[str, Surface],
        proxies: Sequence[callers.Network],
        sessions: Sessions,
        keep_alive_s: float,
        protected: Protection | None,
    ) -> None:
        self._broker = broker
        seal = Seal()
        self._faces = {name: Dispatch(surface, seal) for name, surface in faces.items()}
        self._portable = {
            name: Dispatch(surface, seal, portable_names=True) for name, surface in faces.items()
        }
        self._proxies = proxies
        self._protected = protected
        self._rooms = Rooms()
        self._keep_alive_s = keep_alive_s
        self._ending = trio.Event()
        self._eras = Eras(sessions, keep_alive_s, self._ending, self._refused, broker.while_allowed)
        self.sessions = sessions

    def drain(self) -> None:
        """End every stream that only waits: the process is about to stop. Calls under way end by themselves."""
        self._ending.set()
        self.sessions.end_streams()

    async def __call__(self, scope: dict[str, Any], receive: exchange.Receive, send: exchange.Send) -> None:
        """One exchange. A client that leaves ends its waiting call in 2026-07-28, and not before that era."""
        head = Headers(scope["headers"])
        accept = headers.read_accept(head.joined("accept"))
        http = Http(scope=scope, head=head, accept=accept, receive=receive, reply=Reply(send, accept))
        dispatch = self._face(scope["path"], scope.get("query_string", b""))
        verb = scope["method"]
        known = await self._enter(http) if dispatch is not None else None
        if dispatch is None:
            answer: Answer | None = failed(404, f"nothing is served here; MCP is at {ROOT}")
        elif isinstance(known, Answer):
            answer = known
        elif verb == "POST":
            with Held(self._rooms) as held:
                answer = await self._post(dispatch, http, known, held)
        elif verb in ("GET", "DELETE") and not names_modern(head):
            answer = await self._session_verb(dispatch, http, known)
        else:
            allow = b"POST" if names_modern(head) else b"POST, GET, DELETE"
            answer = failed(405, "send a JSON-RPC message by POST", extra=[(b"allow", allow)])
        if answer is not None:
            await http.reply.finish(answer)

    def _face(self, path: str, query: bytes) -> Dispatch | None:
        """The face that a path names. `?names=portable` lists the same tools under names without dots."""
        path = path.removesuffix("/")
        faces = self._portable if query and _portable(query) else self._faces
        if path == ROOT:
            return faces.get("")
        name = path.removeprefix(f"{ROOT}/")
        return faces.get(name) if name and name != path else None

    async def _enter(self, http: Http) -> Caller | Answer | None:
        """Who enters a guarded face, or the 401; None on the open faces, which ask later."""
        if self._protected is None or not self._protected.guards(http.scope["path"]):
            return None
        caller = await self._identify(http)
        if isinstance(caller, Caller):
            return caller
        if http.scope["method"] == "POST":
            await drain(http.receive, DISCARD_S)
        return self._refused(http, None, caller)

    async def _identify(self, http: Http) -> Caller | Refusal:
        if self._protected is not None:
            return await self._protected.identify(self._broker, http, self._proxies)
        return await callers.identify(self._broker, http.scope, self._proxies)

    def _refused(self, http: Http, id: jsonrpc.Id | None, refusal: Refusal) -> Answer:
        answer = refused(id, refusal)
        return answer if self._protected is None else self._protected.challenge(http, refusal, answer)

    async def _post(self, dispatch: Dispatch, http: Http, known: Caller | None, held: Held) -> Answer | None:
        """The shared rungs. None: the exchange was ended already, or its client has left."""
        if not (http.accept.json or http.accept.stream):
            return failed(406, "accept application/json or text/event-stream")
        content_type = http.head.get("content-type")
        if content_type is not None and not is_json(content_type):
            return failed(415, "send application/json in UTF-8")
        shown: Caller | Refusal | None = known
        if known is None and _bears(http):  # who shows a good token may send more
            shown = await self._identify(http)
        limit = self._limit(http, shown)
        held.who = (shown.principal or "") if isinstance(shown, Caller) else ""
        try:
            body = await read_body(http.receive, limit, held)
        except Gone:
            return None
        if not isinstance(body, bytes):
            if not body.whole:
                await drain(http.receive, DISCARD_S)
            if isinstance(shown, Refusal):  # told first: with a good token it may be little enough
                return self._refused(http, None, shown)
            full = isinstance(body, NoRoom)
            return refused(None, NO_ROOM) if full else failed(413, f"a request is at most {limit} bytes")
        message = jsonrpc.read(body) if len(body) <= LARGE else await apart(jsonrpc.read, body)
        if isinstance(message, jsonrpc.Malformed):
            return Answer(400, message.reply())
        caller = shown if shown is not None else await self._identify(http)
        if isinstance(caller, Refusal):
            return self._refused(http, message.id, caller)
        if isinstance(message, jsonrpc.Response):
            return self._eras.client_response(http.head, caller, message)
        text = message.params
        params = read_params(text) if len(text) <= LARGE else await apart(read_params, text)
        meta = params if isinstance(params, Fault) else read_meta(params)
        if isinstance(params, Fault) or isinstance(meta, Fault):
            fault = meta if isinstance(meta, Fault) else Fault(jsonrpc.INVALID_PARAMS, "malformed params")
            return wrong(message.id, fault, LEGACY[0] if eras.names_legacy(http.head) else MODERN)
        request = Request(
            http=http, dispatch=dispatch, caller=caller, message=message, params=params, meta=meta
        )
        return await self._eras.answer(request)

    def _limit(self, http: Http, shown: Caller | Refusal | None) -> int:
        """Bytes of a request: more for who has shown a good token, but not on the wire's own face."""
        limits = self._broker.settings.limits
        good = isinstance(shown, Caller) and shown.principal is not None
        more = good and http.scope["path"].removesuffix("/") != f"{ROOT}/wire"
        return limits.token_bytes if more else limits.frame_bytes

    async def _session_verb(self, dispatch: Dispatch, http: Http, known: Caller | None) -> Answer | None:
        """GET opens the session's stream (the newest wins); DELETE ends the session."""
        reads = http.scope["method"] == "GET"
        if reads and not http.accept.stream:
            return failed(406, "accept text/event-stream")
        caller = known or await self._identify(http)
        if isinstance(caller, Refusal):
            return self._refused(http, None, caller)
        session = self._eras.session(http.head, caller, None)
        if isinstance(session, Answer):
            return session
        if reads:
            await self._stream(session, dispatch, http, caller)
            return None
        self.sessions.close(session)
        return Answer(204, b"")

    async def _stream(self, session: Session, dispatch: Dispatch, http: Http, caller: Caller) -> None:
        """The session's messages until the client leaves, another stream replaces it, or its time or the caller's right
        is up."""
        stream = session.open_stream()
        left = False
        # The stream as a whole ends with the token: what it tells of need not end before, and is there for the next.
        watching = msgspec.structs.replace(caller, until=None)

        async def tell() -> None:
            await exchange.relay(stream.receive, http.reply, self._keep_alive_s)

        with session.using():
            await http.reply.open()
            async with trio.open_nursery() as nursery:

                async def watch() -> None:
                    nonlocal left
                    await wait_left(http.receive)
                    left = True
                    nursery.cancel_scope.cancel()

                nursery.cancel_scope.deadline = trio.current_time() + STREAM_S
                nursery.start_soon(watch)
                nursery.start_soon(subscriptions.pump, session, stream, watching, dispatch.lists)
                await self._broker.while_allowed(caller, tell)
                nursery.cancel_scope.cancel()
            stream.end()
        if not left:
            await http.reply.end()


def _bears(http: Http) -> bool:
    return (http.head.get("authorization") or "").lower().startswith("bearer")


def _portable(query: bytes) -> bool:
    return ("names", "portable") in parse_qsl(query.decode("latin-1"))
