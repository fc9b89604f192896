"""The house: at most one actor a key, started on demand, contained when it crashes, let go when idle.

The ask order (checked): tools ask desks and conversations; an actor asks no actor, it may only tell. So no two
actors can wait for each other. This is the one place that contains an actor's crash: it is logged, those who wait
get Crashed, and the next ask reads the log again.
"""

import contextvars
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import trio

from broker.actors.actor import Actor, Crashed, Gone, Letter, Reply, Then
from broker.actors.admission import Admission
from broker.actors.overdue import Overdue
from broker.wire.refusals import Refusal, refuse

log = logging.getLogger("turret.actors")
_inside: contextvars.ContextVar[str | None] = contextvars.ContextVar("actor", default=None)

Factory = Callable[[str], Actor[Any]]


class House:
    """All live actors. Lives in the nursery given; cancelling that ends them between two letters."""

    def __init__(self, nursery: trio.Nursery, *, idle_s: float, late_s: float = 0.02) -> None:
        self._nursery = nursery
        self._idle_s = idle_s
        self._factories: dict[str, Factory] = {}
        self._alive: dict[tuple[str, str], Actor[Any]] = {}
        self.overdue = Overdue()
        """Their commits under way; `run` it beside `reap`."""
        self.admission = Admission(late_s)
        """Whether new work is taken now."""
        self.crashes = 0
        self.turned_away = 0
        """Letters that found a mailbox full."""

    def add(self, kind: str, factory: Factory) -> None:
        """Say how an actor of `kind` is made; a second one for the kind is a programming error."""
        if kind in self._factories:
            raise ValueError(f"two factories for {kind}")
        self._factories[kind] = factory

    async def ask(self, kind: str, key: str, command: Any) -> Any:
        """Have the actor handle `command`, starting it if need be; returns its answer.

        A full mailbox answers overloaded at once. Cancelling ends the wait, not the command. Raises Crashed when
        the actor met an unexpected fault.
        """
        if _inside.get() is not None:
            raise RuntimeError(f"{_inside.get()} asked {kind}: an actor asks no actor")
        for _ in range(4):
            if self._nursery.cancel_scope.cancel_called:
                return refuse(
                    "unavailable", "the broker is stopping; nothing was written, send it again later"
                )
            reply = Reply()
            refused = self.actor(kind, key).post(Letter(command, reply.answer))
            if isinstance(refused, Refusal):
                self.turned_away += 1
                return refused
            if refused is None:
                answer = await reply.wait()
                if isinstance(answer, Crashed):
                    raise answer
                if not isinstance(answer, Gone):
                    return answer
            await trio.lowlevel.checkpoint()
        return refuse("overloaded", "this one keeps changing; try again shortly", retry_after_ms=250)

    def begin(self, actor: Actor[Any], command: Any, then: Then) -> bool:
        """Have a live actor handle `command`; `then` gets the answer, or the Crashed, or GONE (then ask again).

        False: it takes no letter now, and `then` is not called; `ask` says why, or starts another.
        """
        return actor.post(Letter(command, then)) is None

    def tell(self, kind: str, key: str, command: Any) -> None:
        """Put a letter in a live actor's mailbox, waiting for nothing. One that is not alive reads the log later."""
        actor = self._alive.get((kind, key))
        if actor is not None:
            actor.post(Letter(command, None))

    def rouse(self, kind: str, key: str, command: Any) -> None:
        """As `tell`, but one that is not alive is started for it. While the broker stops nothing is told."""
        if not self._nursery.cancel_scope.cancel_called:
            self.actor(kind, key).post(Letter(command, None))

    def alive(self, kind: str, key: str) -> Actor[Any] | None:
        """The live actor, or None; starts nothing."""
        return self._alive.get((kind, key))

    def actor(self, kind: str, key: str) -> Actor[Any]:
        """The actor for a key; starts one where there is none (or the old one is just leaving)."""
        actor = self._alive.get((kind, key))
        if actor is None or actor.gone:
            actor = self._factories[kind](key)
            self._alive[(kind, key)] = actor
            # In a context of its own: an actor outlives the request that started it, and speaks for many.
            start = contextvars.Context().run
            start(partial(self._nursery.start_soon, self._contain, kind, actor, name=f"{kind} actor"))
        return actor

    def __iter__(self) -> Iterator[Actor[Any]]:
        return iter(list(self._alive.values()))

    def counts(self) -> dict[str, int]:
        """How many actors of each kind are alive."""
        counts = dict.fromkeys(self._factories, 0)
        for kind, _ in self._alive:
            counts[kind] += 1
        return counts

    async def reap(self) -> None:
        """Let idle actors go, for ever. One look at all of them a tenth of the idle time."""
        while True:
            await trio.sleep(self._idle_s / 10)
            before = trio.current_time() - self._idle_s
            for actor in list(self._alive.values()):
                if actor.used <= before:
                    actor.leave()

    async def _contain(self, kind: str, actor: Actor[Any]) -> None:
        _inside.set(kind)
        try:
            await actor.run()
        except Exception:
            self.crashes += 1
            log.exception("a %s actor crashed; its state is read from the log again", kind)
        finally:
            if self._alive.get((kind, actor.key)) is actor:
                del self._alive[(kind, actor.key)]
