"""What a session of the arena and a trial have in common: attempts that were rejected, and a time at which it is over.

1. A rejected attempt is a row of a log of its own, with its answer if that is final; the first ones are kept.
2. Its time ends it, or that its agent is gone. Whether somebody acted since is looked at then.
"""

from abc import abstractmethod
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from broker.actors.agentdocs import read_agent
from broker.actors.once import Once
from broker.actors.record import Record, RecordActor
from broker.core.arena import REJECTED_KEPT, rejected_log
from broker.store.port import Append
from broker.wire.refusals import Refusal


class Rejected(msgspec.Struct, frozen=True):
    """An attempt that was not accepted, as kept."""

    code: str
    message: str
    expected_version: int
    action: dict[str, Any]
    by: str


class Timed(Protocol):
    """A session's document, as far as its time goes."""

    @property
    def agent_id(self) -> str: ...
    @property
    def changed_at(self) -> int: ...
    @property
    def due(self) -> int | None: ...


RowT = TypeVar("RowT", bound=msgspec.Struct)


class SessionActor(RecordActor[RowT]):
    """One session; the key is its id. Its row is Timed."""

    def __init__(self, key: str, *, idle_h: float, **parts: Any) -> None:
        super().__init__(key, **parts)
        self._idle_ms = round(idle_h * 3_600_000)
        self._rejected = 0

    async def load(self) -> Record[RowT]:
        record = await super().load()
        if record.row is not None:
            last = await self.store.tail(rejected_log(self.key), limit=1)
            self._rejected = last[0].n + 1 if last else 0
        return record

    @abstractmethod
    async def close(self, row: RowT) -> Any:
        """End it without an action: its time is over."""

    def rejected(self, code: str) -> None:
        """An attempt is rejected: for figures."""

    async def reject(self, attempt: Rejected, refusal: Refusal, once: Once | None) -> Refusal:
        """Keep a rejected attempt, and its answer where that is final."""
        await self.confirm()
        self.rejected(refusal.code)
        if self._rejected >= REJECTED_KEPT:
            return refusal
        text, now = msgspec.json.encode(attempt), self.clock.now_ms()
        append = Append(rejected_log(self.key), self._rejected, text, now)
        final = None if refusal.retryable else once
        answer: Refusal = await self.write(self.row, refusal, once=final, append=append)
        if answer is refusal:
            self._rejected += 1
        return answer

    def later(self, row: Timed, now: int) -> int | None:
        """When somebody looks, of a session in which something is done now."""
        return None if row.due is None else min(row.due, now + self._idle_ms)

    async def look_at_time(self, row: RowT) -> Any:
        """Its time is over, or its agent is gone: end it. Something was done since: look again later."""
        now, timed = self.clock.now_ms(), _timed(row)
        if timed.due is None:
            return None
        if await read_agent(self.store, timed.agent_id, now) is not None:
            if timed.due > now:
                return None
            changed = min(timed.changed_at, now)  # it is later than now where the clock has stepped back
            due = changed + self._idle_ms
            if due > now:
                return await self.write(replace(row, due=due, changed_at=changed), None)
        return await self.close(row)


def _timed(row: Any) -> Timed:
    timed: Timed = row
    return timed
