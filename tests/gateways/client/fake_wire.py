"""A small wire in memory, honest unless told otherwise: what the dealer's client is tried against.

It speaks the WebSocket protocol of wire.md over memory streams, keeps conversations and streams, and does one
scripted thing for each request that a test has scripted: refuse it, do it and lose the answer, break the
connection before or after doing it, or lie in the answer.
"""

import contextlib
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, Literal

import msgspec
import trio
import trio.testing
from websockets.exceptions import InvalidState
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

from broker.wire.chain import chain_next, chain_start
from broker.wire.envelope import Envelope, build, read_envelope
from broker.wire.keys import SigningKey, verify
from broker.wire.refusals import Refusal, refuse
from gateways import jsonrpc
from gateways.client.errors import Disconnected

START_MS = 1_782_345_678_000
URL = "ws://wire.test/ws"

Action = (
    Literal["lose answer", "swallow", "break after", "break before", "hold"] | Refusal | Callable[[Any], Any]
)
"""What to do with one request; a callable is given the honest result and gives the one to show."""


class Session:
    """One connection as the fake sees it."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.protocol = ServerProtocol()
        self.pk: str | None = None
        self.position: int | None = None
        """How many of its stream's events it has been sent; None: it does not follow."""
        self.challenge = "00" * 16
        self.lock = trio.Lock()

    async def send(self, payload: bytes) -> None:
        async with self.lock:
            with contextlib.suppress(InvalidState):
                self.protocol.send_text(payload)
            await self.flush()

    async def flush(self) -> None:
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            for data in self.protocol.data_to_send():
                if data:
                    await self.stream.send_all(data)

    async def close(self, code: int, reason: str = "") -> None:
        async with self.lock:
            with contextlib.suppress(InvalidState):
                self.protocol.send_close(code, reason)
            await self.flush()
        await trio.aclose_forcefully(self.stream)


class FakeWire:
    """Desks, conversations, streams. `requests` holds every request in order: (method, params' text)."""

    def __init__(self, own_ms: Callable[[], int] | None = None) -> None:
        self.key = SigningKey.from_seed("57" * 32)
        self.shown_pk: str = self.key.pk
        self.now_ms = own_ms or (lambda: START_MS + round(trio.current_time() * 1000))
        self.desks: dict[str, str] = {}
        self.convs: dict[str, list[dict[str, Any]]] = {}
        self.events: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
        self.sessions: list[Session] = []
        self.requests: list[tuple[str, bytes]] = []
        self.scripts: dict[str, deque[Action]] = defaultdict(deque)
        self.refuse_connections = 0
        self.recovered = True
        self.silent_events = False
        self.connections = 0
        self.called = trio.Event()
        """Set by the first CALL."""
        self._nursery: trio.Nursery | None = None

    def script(self, method: str, *actions: Action) -> None:
        """Do these with the next requests of the method, one each."""
        self.scripts[method].extend(actions)

    def sent(self, method: str) -> list[bytes]:
        """The params of each request of the method."""
        return [params for name, params in self.requests if name == method]

    async def serve(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            await trio.sleep_forever()

    async def open_stream(self, url: str, ssl_context: object) -> trio.abc.Stream:
        """Stands in for the client's opener of TCP connections."""
        self.connections += 1
        if self.refuse_connections:
            self.refuse_connections -= 1
            raise Disconnected("connection refused")
        ours, theirs = trio.testing.memory_stream_pair()
        assert self._nursery is not None
        self._nursery.start_soon(self._connection, Session(ours))
        return theirs

    async def drop_all(self, code: int | None = None, reason: str = "") -> None:
        """End every connection, with a close frame or without."""
        for session in list(self.sessions):
            if code is not None:
                await session.close(code, reason)
            else:
                await trio.aclose_forcefully(session.stream)

    async def _connection(self, session: Session) -> None:
        self.sessions.append(session)
        try:
            while data := await session.stream.receive_some():
                session.protocol.receive_data(data)
                for event in session.protocol.events_received():
                    await self._frame(session, event)
                await session.flush()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self.sessions.remove(session)

    async def _frame(self, session: Session, event: object) -> None:
        if isinstance(event, Request):
            session.protocol.send_response(session.protocol.accept(event))
            await session.flush()
            hello = {
                "challenge": session.challenge,
                "wire": self.shown_pk,
                "limits": {},
                "time": self.now_ms(),
            }
            await session.send(jsonrpc.notification("hello", hello))
        elif isinstance(event, Frame) and event.opcode is Opcode.TEXT:
            request = jsonrpc.read(bytes(event.data))
            assert isinstance(request, jsonrpc.Request), request
            self.requests.append((request.method, request.params))
            await self._request(session, request)

    async def _request(self, session: Session, request: jsonrpc.Request) -> None:
        queue = self.scripts[request.method]
        action = queue.popleft() if queue else None
        if action == "swallow":
            return
        if action == "break before":
            await trio.aclose_forcefully(session.stream)
            return
        if isinstance(action, Refusal):
            answer = jsonrpc.error(request.id, jsonrpc.REFUSED, action.message, action.body())
            await session.send(answer)
            return
        params = msgspec.json.decode(request.params, type=dict[str, msgspec.Raw])
        result = getattr(self, f"do_{request.method}")(session, params)
        if action == "break after":
            await trio.aclose_forcefully(session.stream)
            return
        if callable(action):
            result = action(result)
        if isinstance(result, Refusal):
            await session.send(jsonrpc.error(request.id, jsonrpc.REFUSED, result.message, result.body()))
        elif action != "lose answer":
            await session.send(jsonrpc.result(request.id, result))
        await self.push()

    async def push(self) -> None:
        """Bring each follower up to date."""
        for session in list(self.sessions):
            if session.position is None or session.pk is None or self.silent_events:
                continue
            for kind, event in self.events[session.pk][session.position :]:
                session.position += 1
                await session.send(jsonrpc.notification(kind, event))

    def do_authenticate(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        statement = msgspec.json.decode(params["statement"])
        assert statement["wire"] == self.key.pk, "signed for another wire"
        assert statement["nonce"] == session.challenge
        assert abs(statement["ts"] - self.now_ms() // 1000) <= 300
        assert verify(statement["pk"], bytes(params["statement"]), msgspec.json.decode(params["sig"]))
        session.pk = statement["pk"]
        return {"pk": session.pk}

    def do_follow(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        assert session.pk is not None
        head = len(self.events[session.pk])
        after = msgspec.json.decode(params["after"]) if "after" in params else f"t.e.{head}"
        session.position = head if not self.recovered else int(after.rpartition(".")[2])
        resume = {"recovered": self.recovered, "from": f"t.e.{session.position}", "head": f"t.e.{head}"}
        return resume if self.recovered else {**resume, "reason": "trimmed"}

    def do_open_desk(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        statement = msgspec.json.decode(params["statement"])
        assert verify(statement["pk"], bytes(params["statement"]), msgspec.json.decode(params["sig"]))
        self.desks[statement["code"]] = statement["pk"]
        return {"code": statement["code"], "pk": statement["pk"], "opened_at": self.now_ms()}

    def do_resolve_code(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        code = msgspec.json.decode(params["code"])
        if code not in self.desks:
            return refuse("unknown_desk", f"no desk answers to {code}")
        return {"code": code, "pk": self.desks[code], "opened_at": START_MS, "online": True}

    def do_list_convs(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        ringing = [rows for rows in self.convs.values() if len(rows) == 1]
        envelopes = [msgspec.json.decode(rows[0]["envelope"]) for rows in ringing]
        return {
            "convs": [
                {"conv": each["conv"], "state": "ringing", "parties": {"called": {"pk": each["to"]}}}
                for each in envelopes
            ]
        }

    def do_read_conv(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        conv = msgspec.json.decode(params["conv"])
        after = msgspec.json.decode(params["after"]) if "after" in params else -1
        if conv not in self.convs:
            return refuse("unknown_conv", "no conversation has this id")
        rows = self.convs[conv][after + 1 : after + 4]  # small pages, so that paging is tried
        more = len(self.convs[conv]) > after + 4
        return {"conv": conv, "rows": rows, **({"next": rows[-1]["n"]} if more else {})}

    def do_send_call(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        return self.accept(bytes(params["envelope"]), msgspec.json.decode(params["sig"]))

    do_send_env = do_send_call

    def accept(self, raw: bytes, sig: str) -> dict[str, Any] | Refusal:
        """Judge an envelope roughly as a wire does, and write it."""
        envelope = read_envelope(raw)
        assert isinstance(envelope, Envelope), envelope
        rows = self.convs.get(envelope.conv, [])
        if envelope.n < len(rows) and rows[envelope.n]["sig"] == sig:
            row = rows[envelope.n]
            return {**{name: row[name] for name in ("conv", "n", "chain", "accepted_at")}, "replayed": True}
        assert verify(envelope.sender, raw, sig), "bad signature"
        if rows and msgspec.json.decode(rows[-1]["envelope"])["type"] == "END":
            return refuse("conv_ended", "the conversation has ended")
        if envelope.n != len(rows):
            return refuse("conflict", "n is taken", head={"n": len(rows) - 1})
        if abs(envelope.ts - self.now_ms() // 1000) > 300:
            return refuse("clock_skew", "ts is too far from the wire's clock", wire_ts=self.now_ms() // 1000)
        return self.write(envelope, sig)

    def write(self, envelope: Envelope, sig: str) -> dict[str, Any]:
        rows = self.convs.setdefault(envelope.conv, [])
        prev = bytes.fromhex(rows[-1]["chain"]) if rows else b""
        chain = chain_next(prev, sig) if rows else chain_start(envelope.conv)
        row = {
            "conv": envelope.conv,
            "n": envelope.n,
            "sig": sig,
            "envelope": msgspec.Raw(envelope.canonical),
            "chain": chain.hex(),
            "accepted_at": self.now_ms(),
        }
        rows.append(row)
        self.called.set()
        first = msgspec.json.decode(rows[0]["envelope"])
        for pk in (first["from"], first["to"]):
            own = pk == envelope.sender
            ring = envelope.n == 0 and not own
            kind = "ring" if ring else "end" if envelope.type == "END" else "env"
            cursor = f"t.e.{len(self.events[pk]) + 1}"
            self.events[pk].append((kind, {"cursor": cursor, "own": own, **row}))
        return {name: row[name] for name in ("conv", "n", "chain", "accepted_at")}

    async def say(
        self, key: SigningKey, conv: str, type: str, body: dict[str, Any] | None = None, to: str | None = None
    ) -> None:
        """Another party's envelope (or the wire's END), written and pushed at once."""
        rows = self.convs.get(conv, [])
        first = msgspec.json.decode(rows[0]["envelope"]) if rows else {}
        if to is None:
            to = first["to"] if first["from"] == key.pk else first["from"]
        raw = build(
            conv=conv,
            n=len(rows),
            type=type,
            sender=key.pk,
            to=to,
            ts=self.now_ms() // 1000,
            prev_sig=rows[-1]["sig"] if rows else chain_start(conv).hex(),
            body=body or {},
        )
        answer = self.accept(raw, key.sign(raw))
        assert isinstance(answer, dict), answer
        await self.push()

    async def ring(self, key: SigningKey, code: str, conv: str = "c0" * 8) -> str:
        """Another party dials a desk that is open here."""
        body = {"code_from": "BRAV", "code_to": code, "wire": self.key.pk}
        await self.say(key, conv, "CALL", body, self.desks[code])
        return conv
