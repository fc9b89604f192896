"""Who may still speak: what agents, owners, grants and keys have lost their right (network.md, Identity, Sign-in).

1. A token says what was true when it was made; this says what is true now. Facts are read from the store once and
   kept; whoever commits a change of them tells it here, right after the commit.
2. Connections, streams and waits are held by the caller's right: they end where it ends, at once.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import msgspec

from broker.actors.latest import Latest
from broker.wire.refusals import Refusal, refuse

KEPT: Final = 20_000
"""Subjects whose facts are kept in memory."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is true of a subject now."""

    gone: bool = False
    ends_at: int | None = None
    """Wall milliseconds at which it is gone by itself."""
    suspended: bool = False
    after: int = 0
    """Unix seconds: tokens made before are over."""
    kids: frozenset[str] = frozenset()
    """An agent's live keys; a token that was got with another is over."""
    pks: frozenset[str] = frozenset()
    """The same keys as the wire knows them."""


class Speaking(Protocol):
    """What is looked at of a caller (broker.tools.context.Caller)."""

    @property
    def pk(self) -> str | None: ...
    @property
    def agent(self) -> str | None: ...
    @property
    def owner(self) -> str | None: ...
    @property
    def grant(self) -> str | None: ...
    @property
    def kid(self) -> str | None: ...
    @property
    def issued(self) -> int: ...


Load = Callable[[str], Awaitable[Facts | None]]
"""Reads a subject's facts from the store; None: there is no such subject."""
End = Callable[[Refusal], None]
"""Ends what a caller holds. It neither waits nor raises."""
_OVER: Final = refuse("unauthenticated", "the token is not valid any more; sign in again")
_SUSPENDED: Final = refuse("suspended", "the operators suspended this agent")


class _Held:
    __slots__ = ("caller", "end")

    def __init__(self, caller: Speaking, end: End) -> None:
        self.caller = caller
        self.end = end


class Standing:
    """The facts of all who speak, and what they hold."""

    def __init__(self, kept: int = KEPT, now_ms: Callable[[], int] = lambda: 0) -> None:
        self._now_ms = now_ms
        self._loads: dict[str, Load] = {}
        self._facts: Latest[str, Facts] = Latest(kept)
        self._held: dict[str, dict[_Held, None]] = {}
        self._holders: dict[str, str] = {}
        self._keys: dict[str, frozenset[str]] = {}
        """The keys of each agent, as `_holders` has them."""

    def learn(self, prefix: str, load: Load) -> None:
        """Say how facts of the ids with a prefix (`ag_`) are read; a second way is a programming error."""
        if prefix in self._loads:
            raise ValueError(f"two ways to read {prefix}")
        self._loads[prefix] = load

    async def judge(self, caller: Speaking) -> Refusal | None:
        """Why this caller may not speak now: unauthenticated, or suspended. Raises what the store raises."""
        for subject in self._subjects(caller):
            load = self._loads.get(subject[:3])
            facts = self._facts.get(subject)
            if facts is None and load is not None:
                read = await load(subject) or Facts(gone=True)
                facts = self._facts.get(subject) or read  # a commit that was told of meanwhile is newer
                self._facts[subject] = facts
            if facts is not None and (refused := self._judge(caller, subject, facts)) is not None:
                return refused
        return None

    def told(self, subject: str, facts: Facts) -> None:
        """A commit has changed a subject: what was held by a right that is over ends."""
        self._facts[subject] = facts
        had = self._keys.pop(subject, frozenset())
        gone = [pk for pk in had - facts.pks if self._holders.get(pk) == subject]
        for pk in gone:
            del self._holders[pk]
        self._holders.update(dict.fromkeys(facts.pks, subject))
        if facts.pks:
            self._keys[subject] = facts.pks
        places = (subject, *gone, *facts.pks)
        for held in dict.fromkeys(each for place in places for each in self._held.get(place, ())):
            if (refused := self._judge(held.caller, subject, facts)) is not None:
                held.end(refused)

    def holder(self, pk: str) -> str | None:
        """The agent whose key this is; a dictionary's look-up, for the hot path. Known from the start on (`told`)."""
        return self._holders.get(pk)

    @contextmanager
    def hold(self, caller: Speaking, end: End) -> Iterator[None]:
        """For as long as the block lasts `end` is called once the caller has lost its right: at once, if that was
        since it was judged. What a key holds is held by whatever agent's key it becomes."""
        held = _Held(caller, end)
        subjects = self._subjects(caller)
        places = subjects if caller.pk is None else (*subjects, caller.pk)
        for place in places:
            self._held.setdefault(place, {})[held] = None
        for subject in subjects:
            facts = self._facts.get(subject)
            if facts is not None and (refused := self._judge(caller, subject, facts)) is not None:
                end(refused)
        try:
            yield
        finally:
            for place in places:
                holding = self._held[place]
                del holding[held]
                if not holding:
                    del self._held[place]

    def _judge(self, caller: Speaking, subject: str, facts: Facts) -> Refusal | None:
        return _judge(caller, subject, facts, self._now_ms())

    def _subjects(self, caller: Speaking) -> tuple[str, ...]:
        holder = self._holders.get(caller.pk) if caller.pk is not None else None
        named = (caller.agent, holder, caller.owner, caller.grant)
        return tuple(dict.fromkeys(each for each in named if each is not None))


def _judge(caller: Speaking, subject: str, facts: Facts, now_ms: int) -> Refusal | None:
    if facts.gone or (facts.ends_at is not None and facts.ends_at <= now_ms):
        return _OVER
    if caller.issued and caller.issued < facts.after:
        return _OVER
    if subject == caller.agent and caller.kid is not None and caller.kid not in facts.kids:
        return _OVER
    if subject != caller.agent and subject.startswith("ag_") and caller.pk not in facts.pks:
        return _OVER  # it came as the agent's key, which is none any more
    return _SUSPENDED if facts.suspended else None
