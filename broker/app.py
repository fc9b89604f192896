"""open_broker(): one broker without a socket; its verbs are call, admit, follow, watch, watch_conv and artifact.

Doors know these, the registry and the wire, and nothing else. What a verb refuses is a Refusal; an exception is a
fault, and the door shows no more of it than an incident number.
"""

import functools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from typing import Any, Literal, ParamSpec, TypeVar

import trio

from broker.actors.actor import Again
from broker.actors.admission import Admission
from broker.actors.calls import read_restored, stream_name
from broker.actors.convwatch import ConvWatch
from broker.actors.headkeeper import HeadKeeper
from broker.actors.house import House
from broker.actors.janitor import Janitor
from broker.actors.presence import Watch
from broker.actors.pusher import Courier
from broker.actors.standing import End
from broker.actors.streams import Delivery, Ended, Reader, Slow
from broker.actors.tape import Passed, TapeWatch
from broker.actors.tapesource import Source
from broker.actors.timers import Timers
from broker.clock import Clock
from broker.config import Settings
from broker.core.conversation import Rules
from broker.core.push import Outcome
from broker.core.tapes.source import Missed
from broker.core.trials.report import Report
from broker.store.port import Store, Unavailable
from broker.tools import artifacts, auditing, directory, grading, tapes, transcripts
from broker.tools.access import while_allowed
from broker.tools.areas import AREAS
from broker.tools.channel_reader import follow_channel
from broker.tools.context import Caller, Context, Progress, Services
from broker.tools.household import add_network_actors, add_wire_actors
from broker.tools.lookup import resolve
from broker.tools.parts import make_services
from broker.tools.proof import authentication, capability
from broker.tools.registry import Then, Tool, collect
from broker.tools.statistics import Statistics, statistics_of
from broker.tools.stream_reader import follow_stream, gone
from broker.tools.task_reader import Followed, follow_task
from broker.wire.ids import Pk
from broker.wire.keyring import Keyring
from broker.wire.refusals import Refusal, refuse
from broker.wire.safekeys import KEY_SIZE, SafeKeys

__all__ = [
    "AREAS",
    "Again",
    "Broker",
    "Caller",
    "ConvWatch",
    "Courier",
    "Delivery",
    "Ended",
    "Followed",
    "Missed",
    "Outcome",
    "Passed",
    "Progress",
    "Reader",
    "Refusal",
    "Report",
    "Slow",
    "Source",
    "Statistics",
    "TapeWatch",
    "Then",
    "Tool",
    "Watch",
    "open_broker",
]

VERSION = "0.1.0"
P = ParamSpec("P")
R = TypeVar("R")


def _refusing(verb: Callable[P, Awaitable[R]]) -> Callable[P, Coroutine[Any, Any, R | Refusal]]:
    """A verb that reads a store which gives nothing now answers `unavailable`."""

    @functools.wraps(verb)
    async def refusing(*args: P.args, **kwargs: P.kwargs) -> R | Refusal:
        try:
            return await verb(*args, **kwargs)
        except Unavailable:
            return refuse("unavailable", "the store gives nothing now; nothing was written, try again later")

    return refusing


class Broker:
    """One running broker. Made by open_broker."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.tools: Mapping[str, Tool] = collect("public")
        """What the public doors list and call."""
        self.operator_tools: Mapping[str, Tool] = collect("operator")
        """For callers with `operator`, never published."""
        self._verbs = collect("signin")
        self.settings = services.settings
        self.mcp_url: str | None = None
        self.dealing_url: str | None = None
        self.stopping = False

    @property
    def admission(self) -> Admission:
        """For a door that knows since when what it hands over could be read."""
        return self._services.house.admission

    @property
    def pk(self) -> Pk:
        """The wire's present public key."""
        return self._services.keyring.pk

    @_refusing
    async def call(
        self, caller: Caller, name: str, params: bytes, *, progress: Progress | None = None
    ) -> Any:
        """Call a tool with the JSON text of its params. Returns its result (msgspec-encodable) or a Refusal.

        Raises LookupError for a name that is not in `tools`. Cancelling ends the wait; a command that reached its
        actor goes on, and the identical request gets the stored answer.
        """
        tools = {**self.tools, **self.operator_tools} if caller.operator else self.tools
        return await tools[name].run(Context(caller, self._services, progress), params)

    @_refusing
    async def signin(self, caller: Caller, name: str, params: bytes) -> Any:
        """Call a verb of the sign-in (broker.tools, face "signin"): for the pages and endpoints behind which a person
        or a client has been identified, never for what a client names. Raises LookupError; cancelling as in `call`."""
        return await self._verbs[name].run(Context(caller, self._services), params)

    @_refusing
    async def judge(self, caller: Caller) -> Refusal | None:
        """Why this caller may not speak now: unauthenticated or suspended; None: it may."""
        return await self._services.standing.judge(caller)

    def hold(self, caller: Caller, end: End) -> AbstractContextManager[None]:
        """For as long as the block lasts `end` is called with why, once the caller has lost its right to speak."""
        return self._services.standing.hold(caller, end)

    async def while_allowed(self, caller: Caller, run: Callable[[], Awaitable[R]]) -> R | Refusal:
        """What `run` gives; or why the caller's right ended before: `run` is then cancelled, and must lose nothing."""
        return await while_allowed(self._services, caller, run)

    def begin(self, caller: Caller, tool: Tool, arguments: Any, then: Then) -> bool:
        """Call a tool without waiting, with arguments of its `quick.type`; nothing is waited for but the disk.

        True: `then` gets what `call` would return, once, maybe before this returns; or an Again, where `call` is
        needed after all. False: nothing was done, so `call` it. `then` neither waits nor raises.
        """
        return tool.start is not None and tool.start(Context(caller, self._services), arguments, then)

    @_refusing
    async def admit(
        self, caller: Caller, statement: bytes, sig: str, *, challenge: str | None = None
    ) -> Caller | Refusal:
        """What a follow statement (or, with `challenge`, an authenticate statement) makes of a caller."""
        context = Context(caller, self._services)
        if challenge is not None:
            return await authentication(context, statement, sig, challenge)
        return await capability(context, statement, sig)

    @_refusing
    async def follow(
        self, caller: Caller, *, code: str | None = None, after: str | None = None
    ) -> Reader | Refusal:
        """The caller's stream after a cursor (None: from now; "0": from the oldest kept).

        An agent's token reads the agent's stream. With `code` (or a capability for one) it is the stream of the key
        that the code resolves to now, and ends with desk_moved; a token reads that of a desk whose key is its agent's.
        Enter the reader as a context manager: while it is open whoever reads counts as online. It ends where the
        caller's right to speak ends.
        """
        return await follow_stream(Context(caller, self._services), code, after)

    @_refusing
    async def follow_channel(
        self,
        caller: Caller,
        channel_id: str,
        *,
        after: str | None = None,
        after_seq: int | None = None,
        reads: bool = True,
    ) -> Reader | Refusal:
        """The messages of a channel that the caller's agent is a member of: after a cursor, after a seq, or from now.

        Enter the reader as a context manager. It ends at once where the caller's right to speak ends or it is removed.
        `reads`: what it is handed counts as read by the agent.
        """
        return await follow_channel(Context(caller, self._services), channel_id, after, after_seq, reads)

    @_refusing
    async def follow_task(
        self, caller: Caller, task_id: str, *, after: str | None = None
    ) -> Followed | Refusal:
        """A task that the caller's agent gave, and a reader of what becomes of it after a cursor, or from there on.

        Enter its reader as a context manager. It ends at once where the caller's right to speak ends.
        """
        return await follow_task(Context(caller, self._services), task_id, after)

    @_refusing
    async def watch(self, caller: Caller, codes: Sequence[str]) -> Watch | Refusal:
        """Presence of at most 64 desks: a snapshot, then changes, coalesced to one answer a second."""
        del caller  # presence is public
        fault = directory.check_codes(codes)
        if fault is not None:
            return fault
        pks: dict[str, str | None] = {}
        for code in codes:
            row = await resolve(self._services, code)
            pks[code] = row.pk if row is not None else None
        watch = self._services.presence.watch(pks)
        try:
            for code, pk in pks.items():  # one may have moved before we watched
                row = await resolve(self._services, code)
                now = row.pk if row is not None else None
                if now != pk:
                    self._services.presence.rebind(code, now)
        except BaseException:
            watch.close()
            raise
        return watch

    @_refusing
    async def watch_conv(self, caller: Caller, conv: str) -> ConvWatch | Refusal:
        """Wake-ups for a conversation that the caller may read now; refused as read_conv is. No presence."""
        row = await transcripts.readable(Context(caller, self._services), conv)
        return row if isinstance(row, Refusal) else self._services.hub.convs.watch(conv)

    @_refusing
    async def artifact(self, caller: Caller, ref: str) -> bytes | Refusal:
        """The exact bytes of a published artifact, for whoever has its ref; NOT_FOUND, rate_limited for an address
        that guesses, unavailable where they do not have the hash that they were asked by."""
        return await artifacts.artifact(Context(caller, self._services), ref)

    @_refusing
    async def catalog(self, caller: Caller, which: Literal["all", "pricing"] | int) -> Any:
        """The catalog of tapes, its entry with an index, or what trials cost (msgspec-encodable); NOT_FOUND, and what
        is told to who has no token with the scope `trial`."""
        return await tapes.catalog(Context(caller, self._services), which)

    @_refusing
    async def report(self, caller: Caller, ref: str) -> Report | Refusal:
        """A finished trial with its grades, to be shown to whoever has its ref; refused as kestrel.grade refuses.
        Cancelling stops the work."""
        return await grading.report(Context(caller, self._services), ref)

    @_refusing
    async def tape(self, caller: Caller) -> TapeWatch | Refusal:
        """Envelopes as they are accepted, from now on: for operators alone. Enter the watch, or close it."""
        if not caller.operator:
            return refuse("insufficient_scope", "the tape is for the operators")
        return self._services.hub.tape.watch()

    def wire_info(self) -> dict[str, Any]:
        """The well-known document (wire.md, wire_info); `unsafe_limits` stands there only while they are on."""
        limits = self.settings.limits
        return {
            "wire": self.pk,
            "wire_keys": self._services.keyring.listing(),
            "limits": {
                **{name: getattr(limits, name) for name in limits.__struct_fields__},
                "body_bytes": 8192,
                "skew_s": self.settings.calls.skew_s,
                "ring_s": self.settings.calls.ring_s,
                "idle_s": self.settings.calls.idle_s,
            },
            "time": self._services.clock.now_ms(),
            "version": VERSION,
            "transcripts": self.settings.transcripts,
            "mcp": {"url": self.mcp_url},
            "dealing": self.dealing_url,
            **({"unsafe_limits": True} if self.settings.unsafe_limits else {}),
        }

    def readiness(self) -> list[str]:
        """Why the broker should get no new work; empty when it is ready."""
        reasons = ["stopping"] if self.stopping else []
        if self._services.store.free_bytes() < self.settings.store.min_free_bytes:
            reasons.append("disk space below store.min_free_bytes: no new calls or desks")
        if self._services.store.broken is not None:
            reasons.append("the store takes no writes")
        return reasons

    def statistics(self) -> Statistics:
        """A frozen moment for metrics."""
        return statistics_of(self._services)

    def end_streams(self, refusal: Refusal) -> None:
        """Tell all readers that the broker stops; what was committed before is still handed out."""
        self.stopping = True
        self._services.hub.end(None, refusal)

    def desk_changed(self, code: str, old_pk: str | None, new_pk: str | None) -> None:
        """A desk was opened, moved or closed: streams followed through its code end, watchers see the new key."""
        if old_pk is not None:
            self._services.hub.end(stream_name(old_pk), gone(code, new_pk), code=code)
        self._services.presence.rebind(code, new_pk)
        suspended = self._services.suspended
        if old_pk is not None and suspended.is_desk(old_pk):
            suspended.desk(old_pk, False)  # the desk is, whoever holds it; a closed one is none
            if new_pk is not None:
                suspended.desk(new_pk, True)


async def _rules(settings: Settings, store: Store) -> Rules:
    limits, calls = settings.limits, settings.calls
    window_s, restored = limits.window_ms / 1000, await read_restored(store)
    return Rules(limits.envelopes, window_s, calls.skew_s, calls.ring_s, calls.idle_s, restored)


@asynccontextmanager
async def open_broker(
    settings: Settings, store: Store, clock: Clock, keyring: Keyring, *,
    keeper: HeadKeeper | None = None, courier: Courier | None = None, source: Source | None = None,
    safe_keys: SafeKeys | None = None,
) -> AsyncIterator[Broker]:  # fmt: skip
    """A broker on an open store, with its actors and timers in a nursery of its own.

    Leaving the context lets no new command in, finishes commits under way and ends the actors. The store stays
    the caller's to close. `keeper`: where the audit's head is kept apart from it. `courier`: the way out to webhooks;
    without it nothing is sent. `source`: the way to files of others; without it none is fetched. `safe_keys`: what
    secrets are sealed with; without them by a key that ends with the broker.
    """
    calls, rules = settings.calls, await _rules(settings, store)
    async with trio.open_nursery() as nursery:
        house = House(nursery, idle_s=settings.actors.idle_s, late_s=settings.actors.late_s)
        broker: Broker
        services = await make_services(
            settings, store, clock, keyring, house, rules,
            info=lambda: broker.wire_info(), keeper=keeper, courier=courier, source=source,
            safe_keys=safe_keys or SafeKeys([secrets.token_bytes(KEY_SIZE)]),
        )  # fmt: skip
        broker = Broker(services)
        timers = Timers(store, house, clock, ring_s=calls.ring_s, idle_s=calls.idle_s)
        add_wire_actors(services, timers, broker.desk_changed)
        add_network_actors(services, timers)
        shared = (services.presence.run, services.verifier.run, partial(auditing.run, services))
        for run in (
            *shared,
            house.reap,
            house.overdue.run,
            timers.run,
            services.pusher.run,
            services.mill.run,
        ):
            nursery.start_soon(run)
        nursery.start_soon(Janitor(store, clock, settings).run)
        trio.lowlevel.add_instrument(house.admission)
        try:
            yield broker
            await auditing.settle(services)
        finally:
            trio.lowlevel.remove_instrument(house.admission)
            nursery.cancel_scope.cancel()
            store.watch(None)
