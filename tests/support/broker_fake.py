"""A small broker in memory with the verbs that the doors know, for tests of one door alone.

`FakeBroker.answers[name]` is what a tool answers: a value, a Refusal, an exception to raise, or an async function
of (caller, params, progress). `calls` and `admitted` tell what the door asked. `tell` puts an event on every
open reader of a key.
"""

import base64
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, get_origin

import msgspec
import trio

from broker.actors.admission import Admission
from broker.actors.pusher import PushStatistics
from broker.app import Caller, Delivery, Ended, Slow, Statistics
from broker.config import Settings
from broker.histogram import Histogram
from broker.store.port import StoreStatistics
from broker.tools.statistics import Rehearsals
from broker.wire import canonical
from broker.wire.events import Resume
from broker.wire.refusals import Refusal, refuse

Progress = Callable[[bytes], Awaitable[None]]

WIRE_PK = "0f" * 32
DEALER_PK = "1a" * 32
"""The key that every admitted statement is taken to prove, unless the statement names another `pk`."""


class FakeTool(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a registry's Tool that doors read."""

    name: str
    face: str = "wire"
    title: str = ""
    description: str = "A tool of the fake broker."
    params: tuple[str, ...] = ()
    input_schema: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"type": "object", "properties": {}, "additionalProperties": False}
    )
    output_schema: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"type": "object", "properties": {"refusal": {"type": "object"}}}
    )
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = True
    streams: bool = False

    quick: None = None
    scope: str | None = None
    agent: bool = True
    keyed: bool = False

    @property
    def annotations(self) -> dict[str, bool]:
        return {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": True,
        }


def statistics_of(**figures: Any) -> Statistics:
    """A broker's statistics: these figures, and nothing of all others."""
    store = {name: Histogram((1.0,)) for name in ("units", "commits", "checkpoints")}
    whole = {
        "store": StoreStatistics(**store),
        "pushes": PushStatistics(**_nothing(PushStatistics)),
        "trials": Rehearsals(**_nothing(Rehearsals)),
    }
    return Statistics(**{**_nothing(Statistics), **whole, **figures})


def _nothing(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.name: {} if get_origin(field.type) is dict else 0 for field in msgspec.structs.fields(kind)}


class FakeReader:
    """A reader over a memory channel; `slow` and `end` are what a real one raises."""

    def __init__(self, after: str | None) -> None:
        self.after = after
        self.resume = Resume(True, after or "f00df00d.0000000000000001.0", "f00df00d.0000000000000001.0")
        self.open = False
        self._send, self._receive = trio.open_memory_channel[Delivery | Exception](1024)

    async def __aenter__(self) -> "FakeReader":
        self.open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.open = False

    def push_to(self, push: Any) -> None:
        """This reader has no shorter way."""

    async def receive(self) -> list[Delivery]:
        """What was told, in order; raises what was put in its place."""
        first = await self._receive.receive()
        if isinstance(first, Exception):
            raise first
        return [first]

    def put(self, delivery: Delivery) -> None:
        self._send.send_nowait(delivery)

    def fall_behind(self) -> None:
        self._send.send_nowait(Slow())

    def end(self, refusal: Refusal) -> None:
        self._send.send_nowait(Ended(refusal))


class FakeWatch:
    """Presence of some codes, all offline at first."""

    def __init__(self, codes: Sequence[str]) -> None:
        self.snapshot = dict.fromkeys(codes, False)
        self._send, self._receive = trio.open_memory_channel[dict[str, bool]](64)

    async def __aenter__(self) -> "FakeWatch":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._receive.close()

    async def receive(self) -> dict[str, bool]:
        return await self._receive.receive()

    def change(self, **online: bool) -> None:
        self._send.send_nowait(online)


class FakeBroker:
    """The verbs of broker.app.Broker; see the module's words."""

    mcp_url: str | None = None

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.pk = WIRE_PK
        self.admission = Admission(self.settings.actors.late_s)
        self.tools = {
            each.name: each
            for each in (
                FakeTool(name="wire_info", read_only=True),
                FakeTool(name="echo"),
                FakeTool(name="send_call", params=("to_code", "from_pk", "sig", "envelope")),
                FakeTool(name="send_env", params=("conv", "n", "from_pk", "sig", "envelope")),
                FakeTool(name="desk_rings", read_only=True, streams=True),
            )
        }
        self.operator_tools: dict[str, FakeTool] = {}
        self.answers: dict[str, Any] = {
            "wire_info": self.wire_info(),
            "send_env": {
                "conv": "a1b2c3d4e5f6a7b8",
                "n": 1,
                "chain": "00" * 32,
                "accepted_at": 1782345678000,
            },
        }
        self.artifacts: dict[str, bytes | Refusal | BaseException] = {}
        self.reports: dict[str, Refusal | BaseException] = {}
        self.calls: list[tuple[Caller, str, bytes]] = []
        self.admitted: list[tuple[Caller, bytes, str, str | None]] = []
        self.readers: list[FakeReader] = []
        self.watches: list[FakeWatch] = []
        self.lost: dict[str, Refusal] = {}
        self.held: list[tuple[str, Callable[[Refusal], None]]] = []
        self.refuse_admission: Refusal | None = None
        self.refuse_follow: Refusal | None = None
        self.reasons: list[str] = []
        self._position = 0

    async def call(
        self, caller: Caller, name: str, params: bytes, *, progress: Progress | None = None
    ) -> Any:
        """Strict JSON is asked for as by the registry; `echo` answers what it was given."""
        await trio.lowlevel.checkpoint()
        if name not in self.tools:
            raise LookupError(name)
        self.calls.append((caller, name, params))
        members = canonical.members(params)
        if isinstance(members, Refusal):
            return members
        if name == "echo" and name not in self.answers:
            value = canonical.read(params, code="bad_request")
            return value if isinstance(value, Refusal) else {"echo": value}
        answer = self.answers.get(name, {})
        if isinstance(answer, BaseException):
            raise answer
        return await answer(caller, params, progress) if callable(answer) else answer

    async def artifact(self, caller: Caller, ref: str) -> bytes | Refusal:
        """What `artifacts` has under the ref; an exception there is raised."""
        await trio.lowlevel.checkpoint()
        found = self.artifacts.get(ref, refuse("NOT_FOUND", "there is no such artifact", path="ref"))
        if isinstance(found, BaseException):
            raise found
        return found

    async def report(self, caller: Caller, ref: str) -> Refusal:
        """What `reports` has under the ref; an exception there is raised."""
        await trio.lowlevel.checkpoint()
        found = self.reports.get(ref, refuse("NOT_FOUND", "there is no such artifact", path="ref"))
        if isinstance(found, BaseException):
            raise found
        return found

    def begin(self, caller: Caller, tool: FakeTool, arguments: Any, then: Any) -> bool:
        """No tool of this broker's goes without a task."""
        return False

    async def admit(
        self, caller: Caller, statement: bytes, sig: str, *, challenge: str | None = None
    ) -> Caller | Refusal:
        """Take every statement that is a JSON object, unless `refuse_admission` says no."""
        await trio.lowlevel.checkpoint()
        self.admitted.append((caller, statement, sig, challenge))
        if self.refuse_admission is not None:
            return self.refuse_admission
        read = canonical.read(statement, code="bad_statement")
        if not isinstance(read, dict):
            return refuse("bad_statement", "a statement is an object")
        return msgspec.structs.replace(
            caller, pk=read.get("pk", DEALER_PK), code=read.get("code"), until=read.get("until")
        )

    async def judge(self, caller: Caller) -> Refusal | None:
        """Whoever is not in `lost` may speak."""
        await trio.lowlevel.checkpoint()
        return self.lost.get(caller.principal or caller.pk or "")

    @contextmanager
    def hold(self, caller: Caller, end: Callable[[Refusal], None]) -> Iterator[None]:
        """`lose` ends it."""
        held = (caller.principal or caller.pk or "", end)
        self.held.append(held)
        try:
            yield
        finally:
            self.held.remove(held)

    def lose(self, subject: str, refusal: Refusal) -> None:
        """A subject (a principal, or a pk) loses its right to speak."""
        self.lost[subject] = refusal
        for held, end in list(self.held):
            if held == subject:
                end(refusal)

    async def while_allowed(self, caller: Caller, run: Callable[[], Awaitable[Any]]) -> Any:
        """Ended by `lose`; no token of this broker's runs out by itself."""
        why: list[Refusal] = []
        with trio.CancelScope() as scope:

            def end(refusal: Refusal) -> None:
                why.append(refusal)
                scope.cancel()

            with self.hold(caller, end):
                return await run()
        return why[0]

    async def follow(
        self, caller: Caller, *, code: str | None = None, after: str | None = None
    ) -> FakeReader | Refusal:
        """A reader for any caller with a key, unless `refuse_follow` says no."""
        await trio.lowlevel.checkpoint()
        if self.refuse_follow is not None:
            return self.refuse_follow
        if caller.pk is None and caller.agent is None:
            return refuse("unauthenticated", "a stream needs its owner's proof")
        self.readers.append(FakeReader(after))
        return self.readers[-1]

    async def watch(self, caller: Caller, codes: Sequence[str]) -> FakeWatch | Refusal:
        await trio.lowlevel.checkpoint()
        if len(codes) > 64:
            return refuse("bad_request", "at most 64 codes", path="codes")
        self.watches.append(FakeWatch(codes))
        return self.watches[-1]

    def tell(self, kind: str, **members: Any) -> str:
        """Put an event on every reader; returns its cursor."""
        self._position += 1
        cursor = f"f00df00d.0000000000000001.{self._position}"
        params = msgspec.json.encode({"cursor": cursor, "own": False, **members})
        for each in self.readers:
            each.put(Delivery(kind, cursor, params, False, self._position))
        return cursor

    def wire_info(self) -> dict[str, Any]:
        return {"wire": WIRE_PK, "wire_keys": [{"pk": WIRE_PK, "from": 0}], "version": "0.0.0"}

    def end_streams(self, refusal: Refusal) -> None:
        for each in self.readers:
            each.end(refusal)

    def readiness(self) -> list[str]:
        return self.reasons

    def statistics(self) -> Statistics:
        return statistics_of(accepted=len(self.calls), readers=sum(each.open for each in self.readers))


def proof(**members: Any) -> str:
    """A value for `Authorization: Turret …` that the fake takes; `members` go into the statement."""
    statement = msgspec.json.encode({"do": "follow", "pk": DEALER_PK, **members})
    return base64.urlsafe_b64encode(statement).rstrip(b"=").decode() + "." + "ab" * 64
