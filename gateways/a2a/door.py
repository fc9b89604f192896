"""`/a2a/{agent_id}`: an agent's card, and the JSON-RPC endpoint at which it is given tasks (network.md, A2A).

1. Whoever calls shows a token with the scope `task` that acts for an agent. Without one nothing is told: neither
   whether there is such an agent nor whether there is such a task.
2. The card of an agent in the directory is for anybody; that of another one is for agents.
3. Who may call nothing is refused before the body is read: only who may sends more than a frame of the wire.
4. Errors of JSON-RPC and A2A come with status 200, as JSON-RPC has it; a token that won't do with 401 or 403.

Raw ASGI beside Quart: a stream must be closed at every way out. Bodies are read and bounded before
(gateways.wrappers). Source: A2A specification 1.0, 3.6, 8.2, 8.6 and 9.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs

import msgspec

from broker.apart import LARGE, apart
from broker.app import Broker, Caller
from broker.tools.access import lacking
from broker.wire import a2a
from broker.wire.refusals import Refusal, refuse
from gateways import jsonrpc, render
from gateways.a2a import errors
from gateways.a2a.calls import Call
from gateways.a2a.card import CARD, PREFIX, Place, card, etag
from gateways.a2a.errors import Fault
from gateways.a2a.methods import METHODS
from gateways.a2a.streaming import STREAMING, open_stream, stream
from gateways.bodies import is_json
from gateways.caller import identify
from gateways.gate import Gate, refused
from gateways.listen import App, Bounds, Network, Receive, Scope, Send, values_of
from gateways.wrappers import WHO, Reply, limit_body

T = TypeVar("T")
MOST: Final = 262_144
"""Bytes of a request of who shows a token: what a message may have, as the longest JSON for it."""
MAX_AGE_S: Final = 60
LONGEST_ID: Final = 128
SCOPE: Final = "task"
_AGENT: Final = re.compile(r"[!-.0-~]{1,64}")
_KEY: Final = re.compile(r'"([!#-~]{1,128})"|([!-~]{1,128})')
_DENIED: Final = frozenset({"unauthenticated", "insufficient_scope", "agent_required", "suspended"})
"""Refusals of who calls, not of what is called: they are told by the status."""


def a2a_app(
    broker: Broker,
    place: Place,
    *,
    proxies: Sequence[Network] = (),
    gate: Gate | None = None,
    bounds: Bounds = Bounds(),  # noqa: B008  # frozen
) -> App:
    """The ASGI callable for every path below PREFIX. Without `gate` nobody can show a token, and all are refused."""
    door = _Door(broker, place, proxies, gate)
    return limit_body(door.answer, door.limit, bounds)


class _Door:
    def __init__(self, broker: Broker, place: Place, proxies: Sequence[Network], gate: Gate | None) -> None:
        self._broker = broker
        self._place = place
        self._proxies = proxies
        self._gate = gate

    async def limit(self, scope: Scope) -> int | Reply:
        """How much a request may have; for who shows a token that will not do, the answer."""
        bearing = _header(scope, b"authorization")[:7].lower() == "bearer "
        if scope["method"] != "POST" or not bearing:
            return self._broker.settings.limits.frame_bytes
        caller = scope[WHO] = await self._identify(scope)
        denied = caller if isinstance(caller, Refusal) else _denied(caller)
        return MOST if denied is None else self._refused(scope, denied)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix(PREFIX)
        agent_id, is_card = path.removesuffix("/"), path.endswith(CARD)
        if is_card:
            agent_id = path.removesuffix(CARD)
        wanted = ("GET", "HEAD") if is_card else ("POST",)
        if not _AGENT.fullmatch(agent_id):
            await self._refuse(scope, send, render.NOTHING)
        elif scope["method"] not in wanted:
            no = refuse("bad_request", f"this path is asked by {wanted[0]}", status=405)
            await self._refuse(scope, send, no, (b"allow", ", ".join(wanted).encode()))
        else:
            caller = scope.get(WHO) or await self._identify(scope)
            if isinstance(caller, Refusal):
                await self._refuse(scope, send, caller)
            elif is_card:
                await self._card(scope, send, caller, agent_id)
            else:
                await self._rpc(scope, receive, send, caller, agent_id)

    async def _identify(self, scope: Scope) -> Caller | Refusal:
        bearer = self._gate.admit if self._gate is not None else None
        return await identify(self._broker, scope, self._proxies, bearer=bearer)

    async def _card(self, scope: Scope, send: Send, caller: Caller, agent_id: str) -> None:
        facts = await self._broker.signin(caller, "agent_card", msgspec.json.encode({"agent_id": agent_id}))
        if isinstance(facts, Refusal):
            await self._refuse(scope, send, facts)
            return
        text = card(msgspec.to_builtins(facts), self._place)
        name = etag(text)
        kept = "private" if caller.principal is not None else "public"
        headers: render.Headers = [
            (b"etag", name.encode()),
            (b"cache-control", b"%b, max-age=%d" % (kept.encode(), MAX_AGE_S)),
            (b"vary", b"Authorization"),
        ]
        if _has(_header(scope, b"if-none-match"), name):
            await _send(send, 304, headers, b"")
        else:
            await _send(send, 200, [*render.JSON_HEADERS, *headers], text)

    async def _rpc(self, scope: Scope, receive: Receive, send: Send, caller: Caller, agent_id: str) -> None:
        denied = _denied(caller)
        if denied is not None:
            await self._refuse(scope, send, denied)
            return
        if not is_json(_header(scope, b"content-type")):
            await _send(send, 415, [*render.JSON_HEADERS], errors.NOT_JSON.reply(None))
            return
        body: bytes = (await receive())["body"]
        request = jsonrpc.read(body) if len(body) <= LARGE else await apart(jsonrpc.read, body)
        if isinstance(request, jsonrpc.Malformed):
            await _reply(send, request.reply())
            return
        fault = _judge(request, scope)
        if fault is not None or isinstance(request, jsonrpc.Response) or request.id is None:
            await _reply(send, (fault or errors.NO_ID).reply(request.id))
            return
        key = _key(scope)
        if isinstance(key, Fault):
            await _reply(send, key.reply(request.id))
            return
        call = Call(self._broker, caller, agent_id, key)
        if request.method in STREAMING:
            await self._stream(scope, receive, send, call, request)
        else:
            await self._method(scope, send, call, request)

    async def _method(self, scope: Scope, send: Send, call: Call, request: jsonrpc.Request) -> None:
        method = METHODS.get(request.method)
        if method is None:
            result: dict[str, Any] | Fault | Refusal = errors.NO_METHOD
        else:
            result = await _contained(request, partial(method, call, request.params))
        if isinstance(result, dict):
            await _reply(send, jsonrpc.result(request.id, result))
        else:
            await self._no(scope, send, request.id, result)

    async def _stream(
        self, scope: Scope, receive: Receive, send: Send, call: Call, request: jsonrpc.Request
    ) -> None:
        last_id = _header(scope, b"last-event-id")[:LONGEST_ID] or None
        followed = await _contained(
            request, partial(open_stream, call, request.method, request.params, last_id)
        )
        if isinstance(followed, Fault | Refusal):
            await self._no(scope, send, request.id, followed)
            return
        assert request.id is not None  # looked at before
        fresh = last_id is None or not followed.reader.resume.recovered or request.method != "SubscribeToTask"
        comment_s = self._broker.settings.streams.comment_s
        await stream(followed, request.id, fresh, receive, send, comment_s)

    async def _no(self, scope: Scope, send: Send, id: jsonrpc.Id | None, no: Fault | Refusal) -> None:
        if isinstance(no, Refusal) and no.code in _DENIED:
            await self._refuse(scope, send, no)
        else:
            await _reply(send, (no if isinstance(no, Fault) else errors.of_refusal(no)).reply(id))

    async def _refuse(self, scope: Scope, send: Send, refusal: Refusal, *more: tuple[bytes, bytes]) -> None:
        status, headers, body = self._refused(scope, refusal)
        await _send(send, status, [*headers, *more], body)

    def _refused(self, scope: Scope, refusal: Refusal) -> Reply:
        status, headers, body = refused(refusal, scope, self._gate)
        return status, [*headers, (b"cache-control", b"no-store")], body


async def _contained(request: jsonrpc.Request, run: Callable[[], Awaitable[T]]) -> T | Fault:
    """What `run` gives; of an exception no more than an incident's number."""
    try:
        return await run()
    except Exception as fault:
        return errors.internal(render.incident(fault, f"A2A's {request.method}"))


def _denied(caller: Caller) -> Refusal | None:
    """Why who calls may call nothing here."""
    if caller.principal is None:
        return refuse("unauthenticated", "this needs a token: `Authorization: Bearer <token>`", scope=SCOPE)
    if SCOPE not in caller.scopes:
        return lacking(SCOPE)
    if caller.agent is None:
        return refuse("agent_required", "tasks are given by agents; sign in again and choose one of yours")
    return None


def _judge(request: jsonrpc.Request | jsonrpc.Response, scope: Scope) -> Fault | None:
    """Whether a request may be looked at: it wants an answer, in a version that is spoken here."""
    if isinstance(request, jsonrpc.Response) or not request.has_id:
        return errors.NO_ID
    asked = _version(scope)
    good = asked == a2a.VERSION or asked.startswith(f"{a2a.VERSION}.")
    return None if good else errors.version(asked or "0.3", a2a.VERSION)


def _key(scope: Scope) -> str | Fault | None:
    """The Idempotency-Key, quoted or bare; None without one. One that is no key is said to be none: whoever sends it
    counts on it."""
    given = values_of(scope, b"idempotency-key")
    if not given:
        return None
    found = _KEY.fullmatch(given[0].decode("latin-1").strip()) if len(given) == 1 else None
    if found is None:
        return errors.invalid("Idempotency-Key", "send one, of 1 to 128 printable characters")
    return found[1] or found[2]


def _has(known: str, name: str) -> bool:
    """Whether a client has the card of this name (RFC 9110, 13.1.2: a list, weak names too, or any)."""
    return known.strip() == "*" or name in (each.strip().removeprefix("W/") for each in known.split(","))


def _version(scope: Scope) -> str:
    """The A2A-Version of a request: its header, else its query; "" where there is none, which means 0.3."""
    given = _header(scope, b"a2a-version").strip()
    if given:
        return given
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    return next((values[0] for name, values in query.items() if name.lower() == "a2a-version"), "").strip()


def _header(scope: Scope, wanted: bytes) -> str:
    values = values_of(scope, wanted)
    return values[0].decode("latin-1") if len(values) == 1 else ""


async def _reply(send: Send, body: bytes) -> None:
    await _send(send, 200, [*render.JSON_HEADERS, (b"cache-control", b"no-store")], body)


async def _send(send: Send, status: int, headers: render.Headers, body: bytes) -> None:
    if status != 304:
        headers = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
