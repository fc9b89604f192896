"""Which era a request is of, the era's own rungs, and how its answer travels.

1. The era is the request's own. `_meta` with a protocol version, or a header that names one that has no
   handshake, is 2026-07-28; everything else is the handshake era. Nothing is remembered of a connection.
2. Each rung is answered before the next is looked at, in the order that the code has.
3. Who lacks a token, or a scope of it, is answered by the exchange's status before a byte is streamed.
4. In the handshake era a disconnect cancels nothing; in 2026-07-28 it is the only way to cancel.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import trio

from broker.app import Caller
from broker.wire.refusals import Refusal, refuse
from gateways import jsonrpc, render
from gateways.mcp import exchange, headers
from gateways.mcp.dispatch import Dispatch, Params, value_of
from gateways.mcp.exchange import Answer, Http
from gateways.mcp.headers import Headers
from gateways.mcp.revisions import (
    BARE,
    CANCELLED,
    CAPABILITIES_KEY,
    LEGACY,
    LOG_LEVEL_KEY,
    METHODS,
    MODERN,
    SESSION_UNKNOWN,
    VERSION_KEY,
    Fault,
    row_of,
    status_of,
    unsupported,
)
from gateways.mcp.sessions import Session, Sessions
from gateways.mcp.surface import Ask, Denied, Result

Deny = Callable[[Http, jsonrpc.Id | None, Refusal], Answer]
WhileAllowed = Callable[[Caller, Callable[[], Awaitable[Any]]], Awaitable[Any]]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON-RPC request or notification that passed the rungs of both eras."""

    http: Http
    dispatch: Dispatch
    caller: Caller
    message: jsonrpc.Request
    params: Params
    meta: dict[str, Any]


class Eras:
    """The two eras over one set of sessions."""

    def __init__(
        self,
        sessions: Sessions,
        keep_alive_s: float,
        ending: trio.Event,
        deny: Deny,
        while_allowed: WhileAllowed,
    ) -> None:
        """`ending` is set when the process is about to stop. `deny` answers who lacks a token, `while_allowed` ends
        work with the caller's right (Broker.while_allowed)."""
        self._deny = deny
        self._while_allowed = while_allowed
        self._sessions = sessions
        self._keep_alive_s = keep_alive_s
        self._ending = ending

    async def answer(self, request: Request) -> Answer | None:
        """The request's answer, or None when it was given on the way."""
        return await (self._modern(request) if _is_modern(request) else self._legacy(request))

    async def _modern(self, request: Request) -> Answer | None:
        """2026-07-28: the rungs of headers.py, then the method."""
        message, head = request.message, request.http.head
        version = head.get(headers.VERSION)
        fault = headers.doubled_header(head)
        if fault is None and version not in (None, MODERN) and VERSION_KEY not in request.meta:
            fault = unsupported(str(version))
        if not message.has_id:
            # This era has no notification for a client to send; fire and forget, as ever.
            return Answer(202, b"") if fault is None else wrong(None, fault, MODERN)
        row = METHODS.get(message.method)
        if fault is None and row is not None and isinstance(gone := row_of(message.method, MODERN), Fault):
            fault = gone  # `initialize` from a client of both eras: say so, whatever else it lacks
        fault = fault or headers.check_meta(request.meta if "_meta" in request.params else None)
        fault = fault or headers.check_agreement(head, request.meta, message.method, row, request.params)
        fault = fault or request.dispatch.check_mirrored(head, message.method, request.params)
        if fault is not None:
            return wrong(message.id, fault, MODERN)
        if row is not None and row.streams and not request.http.accept.stream:
            return failed(406, "this answer is a stream: accept text/event-stream", message.id)
        return await self._do(request, MODERN, None)

    async def _legacy(self, request: Request) -> Answer | None:
        """The handshake era: which session, then the method.

        A request that names neither session nor revision is bare (curl, a first look) and is answered.
        """
        message, head = request.message, request.http.head
        if message.method == "initialize" and message.has_id:
            return self._initialize(request)
        session: Session | None = None
        if head.get(headers.SESSION) is not None or head.get(headers.VERSION) is not None:
            found = self.session(head, request.caller, message.id)
            if isinstance(found, Answer):
                return found
            session = found
        if message.has_id:
            return await self._do(request, session.revision if session is not None else BARE, session)
        if message.method == "notifications/cancelled" and session is not None:
            session.cancel(value_of(request.params.get("requestId", msgspec.Raw(b"null"))))
        return Answer(202, b"")

    def _initialize(self, request: Request) -> Answer:
        """The handshake; a refused one leaves no session behind."""
        id, caller = request.message.id, request.caller
        outcome = request.dispatch.initialize(request.params)
        if isinstance(outcome, Fault):
            return wrong(id, outcome, LEGACY[0])
        session = self._sessions.open(
            caller.identity or caller.address,
            caller.identity,
            outcome["protocolVersion"],
            request.dispatch.client_capabilities(request.params),
        )
        if session is None:
            return refused(id, refuse("overloaded", "no place for another session", retry_after_ms=5000))
        return Answer(200, jsonrpc.result(id, outcome), [(b"mcp-session-id", session.id.encode())])

    def session(self, head: Headers, caller: Caller, id: jsonrpc.Id | None) -> Session | Answer:
        """400 without a session's id (or with two), 404 for one that is not, or no longer, this caller's."""
        name = head.get(headers.SESSION)
        if name is None or head.doubled(headers.SESSION):
            return failed(400, "one Mcp-Session-Id header is needed: initialize gives it", id)
        session = self._sessions.find(name, caller.identity)
        if session is None:
            return Answer(404, jsonrpc.error(id, SESSION_UNKNOWN, "no such session: initialize again"))
        return session

    def client_response(self, head: Headers, caller: Caller, message: jsonrpc.Response) -> Answer:
        """An answer to a request of ours: taken in its session, else a fault. One that comes late is dropped."""
        if names_modern(head):
            return failed(400, "this revision knows no responses from clients")
        session = self.session(head, caller, message.id)
        if isinstance(session, Answer):
            return session
        session.answered(message)
        return Answer(202, b"")

    async def _do(self, request: Request, revision: str, session: Session | None) -> Answer | None:
        """Do the method: at once, or as work that may last."""
        message, http = request.message, request.http

        async def work(notify: exchange.Notify | None) -> Answer:
            ask = Ask(
                id=message.id,
                caller=request.caller,
                revision=revision,
                meta=request.meta,
                session=session,
                notify=notify,
                ending=self._ending,
                left=http.left,
                capabilities=session.capabilities if session is not None else _declared(request.meta),
                log_level=session.log_level if session is not None else request.meta.get(LOG_LEVEL_KEY),
            )

            async def answer() -> Result:
                return await request.dispatch.answer(ask, message.method, request.params)

            # A tool that waits ends by itself, and its refusal is its result.
            listens = message.method in METHODS and METHODS[message.method].streams
            outcome = await (self._while_allowed(request.caller, answer) if listens else answer())
            if isinstance(outcome, Refusal):
                return self._deny(http, message.id, outcome)
            if isinstance(outcome, Denied):
                return self._deny(http, message.id, outcome.refusal)
            if isinstance(outcome, Fault):
                return wrong(message.id, outcome, revision)
            return Answer(200, jsonrpc.result(message.id, outcome))

        async def cancellable(notify: exchange.Notify | None) -> Answer:
            if session is None or message.id is None:
                return await work(notify)
            with session.using(), session.cancellable(message.id) as scope:
                answer = await work(notify)
            cancelled = scope.cancelled_caught
            return wrong(message.id, Fault(CANCELLED, "cancelled"), revision) if cancelled else answer

        if not request.dispatch.waits(message.method, request.params, session):
            return await work(None)
        await exchange.run(
            cancellable,
            http,
            ends_with_client=revision == MODERN,
            keep_alive_s=self._keep_alive_s,
        )
        return None


def _declared(meta: dict[str, Any]) -> dict[str, Any]:
    """The capabilities that a request carries itself: an object, as the rungs made sure; none in the other era."""
    declared = meta.get(CAPABILITIES_KEY)
    return declared if isinstance(declared, dict) else {}


def _is_modern(request: Request) -> bool:
    version = request.http.head.get(headers.VERSION)
    if request.message.method == "initialize" and version != MODERN:
        return VERSION_KEY in request.meta  # a handshake is never refused for its header: the body negotiates
    return VERSION_KEY in request.meta or (version is not None and version not in LEGACY)


def names_modern(head: Headers) -> bool:
    """Whether the header names 2026-07-28."""
    return head.get(headers.VERSION) == MODERN


def names_legacy(head: Headers) -> bool:
    """Whether the header names a revision with a handshake, or none."""
    return head.get(headers.VERSION) in (None, *LEGACY)


def wrong(id: jsonrpc.Id | None, fault: Fault, revision: str) -> Answer:
    """A fault of the request, with the status that its revision gives the code."""
    return Answer(status_of(fault.code, revision), jsonrpc.error(id, fault.code, fault.message, fault.data))


def failed(
    status: int, message: str, id: jsonrpc.Id | None = None, extra: render.Headers | None = None
) -> Answer:
    """A fault of the transport, JSON-RPC shaped so that every client can read it."""
    return Answer(status, jsonrpc.error(id, jsonrpc.INVALID_REQUEST, message), extra or [])


def refused(id: jsonrpc.Id | None, refusal: Refusal) -> Answer:
    """A refusal before any method: its HTTP status, and the same object as everywhere."""
    status, head, _ = render.http(refusal)
    extra = [(name, value) for name, value in head if name != b"content-type"]
    return Answer(status, jsonrpc.error(id, jsonrpc.REFUSED, refusal.message, refusal.body()), extra)
