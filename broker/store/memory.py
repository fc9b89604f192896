"""The reference adapter of the store's port: plain dicts, one commit at a time, and a gate for tests.

1. It keeps the law of port.py by being simple: check all, then change all, with no checkpoint between.
2. Nothing in it is durable. Tests compare the other adapters with it.
3. `gate` lets a test hold, release or break commits; the broker never touches it.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import msgspec
import outcome
import trio

from broker.histogram import Histogram
from broker.store.epoch import epoch_of, new_secret
from broker.store.port import (
    FIELDS,
    Append,
    Conflict,
    Deliver,
    Document,
    Entry,
    Event,
    Head,
    InDoubt,
    Listener,
    Put,
    Remember,
    Remembered,
    Retention,
    StoreStatistics,
    Then,
    Unavailable,
    Unit,
)
from broker.store.words import query, words


class _Fault(msgspec.Struct):
    error: Exception
    applied: bool
    told: bool
    when: Callable[[Unit], bool] | None


class Gate:
    """Where a test decides what happens to commits. One passes at a time, the others wait behind it."""

    def __init__(self, go_on: Callable[[], None]) -> None:
        self.waiting = 0
        """Commits that wait at a held gate (those behind the first wait for their turn and do not count)."""
        self.before = False
        self.after = False
        self._go_on = go_on
        self._faults: list[_Fault] = []

    def hold(self, *, written: bool = False) -> None:
        """Hold commits from now on: before they are written, or (`written`) after, before they return.

        Cancelling a commit held before leaves it unwritten, after it written; its caller can't know which.
        """
        if written:
            self.after = True
        else:
            self.before = True

    def release(self) -> None:
        """Let go all that is held, and hold no more."""
        self.before = self.after = False
        self._go_on()

    def fail_next(
        self,
        error: Exception,
        *,
        applied: bool = False,
        told: bool = True,
        when: Callable[[Unit], bool] | None = None,
    ) -> None:
        """Have the next commit (that `when` is true of) raise `error`; several queue up, each for one commit.

        `applied`: the unit is written all the same (only an InDoubt may say so), and the listener hears of
        it unless `told` is false. A unit that conflicts raises Conflict and leaves an applied fault in place.
        """
        if applied and not isinstance(error, InDoubt):
            raise ValueError("only what is in doubt may have been applied")
        self._faults.append(_Fault(error, applied, told, when))

    def take(self, unit: Unit) -> _Fault | None:
        """The fault that is meant for a unit, taken away."""
        for index, fault in enumerate(self._faults):
            if fault.when is None or fault.when(unit):
                return self._faults.pop(index)
        return None


Outcome = Exception | int | None
"""What became of a work: an error, what was removed, nothing to say."""


class _Letter(msgspec.Struct, eq=False):
    """A work in its turn, and who is told what became of it."""

    work: Unit | Retention | None
    """None: close."""
    then: Callable[[Any], object]
    limit: int = 0
    done: bool = False
    outcome: Outcome = None


class _Doc(msgspec.Struct):
    version: int
    doc: bytes
    marks: dict[tuple[str, str | int], int]
    """(name, value) → its place in the order of all index rows."""
    born: int
    """Rising, from one new document to the next."""
    text: tuple[frozenset[str], ...] = ()
    """The words of each field."""


class _Stream(msgspec.Struct):
    oldest: int = 1
    newest: int = 0
    events: dict[int, tuple[Deliver, Append | None]] = msgspec.field(default_factory=dict)
    """Position → what was delivered, and the unit's Append. Rising, since dicts keep their order."""


class MemoryStore:
    """A store that lasts as long as the process. See broker.store.port.Store for the contract."""

    def __init__(self) -> None:
        self.gate = Gate(self._go_on)
        self.free = 1 << 40
        """What free_bytes answers."""
        self.broken: str | None = None
        """Why the store refuses writes, for readiness; None: it does not."""
        self._secret = new_secret()
        self._queue: deque[_Letter] = deque()
        self._pumping = False
        self._closed = False
        self._listener: Listener | None = None
        self._order = 0
        self._logs: dict[str, list[Entry]] = {}
        self._dropped: set[str] = set()
        self._docs: dict[tuple[str, str], _Doc] = {}
        self._streams: dict[str, _Stream] = {}
        self._remembered: dict[tuple[str, str], Remembered] = {}

    async def commit(self, unit: Unit) -> None:
        await self._wait_for(unit)

    def submit(self, unit: Unit, then: Then) -> None:
        self._queue.append(_Letter(unit, then))
        self._go_on()

    async def _wait_for(self, work: Unit | Retention | None, limit: int = 0) -> int | None:
        await trio.lowlevel.checkpoint()
        letter = _Letter(work, partial(_wake, trio.lowlevel.current_task()), limit)
        if not self._queue and self._pass(letter):  # nobody sees it before the caller does
            done: int | None = _captured(letter.outcome).unwrap()
            return done
        self._queue.append(letter)
        self._go_on()

        def abort(_: object) -> trio.lowlevel.Abort:
            self._queue.remove(letter)
            self._go_on()
            return trio.lowlevel.Abort.SUCCEEDED

        answer: int | None = await trio.lowlevel.wait_task_rescheduled(abort)
        return answer

    def _go_on(self) -> None:
        """In the next tick, so that nobody is told before its own call has returned."""
        if self._queue and not self._pumping:
            self._pumping = True
            trio.lowlevel.current_trio_token().run_sync_soon(self._pump)

    def _pump(self) -> None:
        self._pumping = False
        self.gate.waiting = 0
        while self._queue:
            letter = self._queue[0]
            if not self._pass(letter):
                self.gate.waiting = 1
                return
            self._queue.popleft()
            letter.then(letter.outcome)

    def _pass(self, letter: _Letter) -> bool:
        """Do what is not yet done; whether it is through. Only units meet the gate."""
        work = letter.work
        if not letter.done and isinstance(work, Unit) and self.broken is None and self.gate.before:
            return False
        if not letter.done:
            letter.done = True
            try:
                self._check_usable()
                if isinstance(work, Unit):
                    letter.outcome = self._write(work)
                elif work is None:
                    self._closed = True
                else:
                    letter.outcome = self._sweep(work, letter.limit)
            except Exception as error:
                letter.outcome = error
                return True
        return not (isinstance(work, Unit) and self.gate.after)

    def _write(self, unit: Unit) -> Exception | None:
        """Raises what was not written; returns the error of what was written and is in doubt."""
        if self.broken is not None:
            raise Unavailable(self.broken)
        self._check(unit)
        fault = self.gate.take(unit)
        if fault is not None and not fault.applied:
            raise fault.error
        events = self._apply(unit)
        if events and self._listener is not None and (fault is None or fault.told):
            self._listener(events)
        return None if fault is None else fault.error

    def _check_usable(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")

    def _check(self, unit: Unit) -> None:
        if unit.append is None and any(letter.data is None for letter in unit.deliver):
            raise ValueError("an event without data needs an Append to refer to")
        if unit.append is not None:
            log = unit.append.log
            if log in self._dropped:
                raise Conflict("drop", log)
            if len(self._logs.get(log, ())) != unit.append.n:
                raise Conflict("append", log)
        versions: dict[tuple[str, str], int] = {}
        for put in unit.puts:
            if len(put.text) > FIELDS:
                raise ValueError(f"a document has at most {FIELDS} fields of text")
            place = (put.kind, put.id)
            known = self._docs.get(place)
            if versions.get(place, known.version if known else 0) != put.expect:
                raise Conflict("put", put.id)
            versions[place] = 0 if put.doc is None else put.expect + 1
        if unit.remember is not None and (unit.remember.scope, unit.remember.key) in self._remembered:
            raise Conflict("remember", unit.remember.key)

    def _apply(self, unit: Unit) -> list[Event]:
        append = unit.append
        if append is not None:
            self._logs.setdefault(append.log, []).append(Entry(append.n, append.data, append.at))
        for put in unit.puts:
            self._put(put)
        events = [self._deliver(letter, append) for letter in unit.deliver]
        if unit.remember is not None:
            self._remember(unit.remember)
        if unit.drop is not None:
            self._logs.pop(unit.drop.log, None)
            self._dropped.add(unit.drop.log)
        return events

    def _put(self, put: Put) -> None:
        old = self._docs.get((put.kind, put.id))
        if put.doc is None:
            self._docs.pop((put.kind, put.id), None)
            return
        marks: dict[tuple[str, str | int], int] = {}
        for mark in put.index:
            if old is not None and mark in old.marks:
                marks[mark] = old.marks[mark]
            elif mark not in marks:
                self._order += 1
                marks[mark] = self._order
        if old is None:
            self._order += 1
        born = self._order if old is None else old.born
        text = tuple(frozenset(words(each)) for each in put.text)
        self._docs[put.kind, put.id] = _Doc(put.expect + 1, put.doc, marks, born, text)

    def _deliver(self, letter: Deliver, append: Append | None) -> Event:
        stream = self._streams.setdefault(letter.stream, _Stream())
        stream.newest += 1
        stream.events[stream.newest] = (letter, append)
        event = self._event(letter, append, stream.newest)
        assert event is not None, "the append is still there: a Drop comes last"
        return event

    def _event(self, letter: Deliver, append: Append | None, position: int) -> Event | None:
        if letter.data is not None:
            return Event(letter.stream, position, letter.kind, letter.own, letter.data, letter.at)
        if append is None or append.log in self._dropped:
            return None
        return Event(letter.stream, position, letter.kind, letter.own, append.data, append.at)

    def _remember(self, remember: Remember) -> None:
        kept = Remembered(remember.digest, remember.outcome, remember.until)
        self._remembered[remember.scope, remember.key] = kept

    async def _read(self) -> None:
        await trio.lowlevel.checkpoint()
        self._check_usable()

    async def entries(self, log: str, after: int = -1, limit: int = 100) -> list[Entry]:
        await self._read()
        start = max(after + 1, 0)
        return self._logs.get(log, [])[start : start + limit]

    async def tail(self, log: str, before: int | None = None, limit: int = 100) -> list[Entry]:
        await self._read()
        rows = self._logs.get(log, [])
        end = len(rows) if before is None else max(min(before, len(rows)), 0)
        return rows[max(end - limit, 0) : end][::-1]

    async def get(self, kind: str, id: str) -> Document | None:
        await self._read()
        kept = self._docs.get((kind, id))
        return None if kept is None else Document(id, kept.version, kept.doc)

    async def find(
        self, kind: str, name: str, value: str, after: int = 0, limit: int = 100, *, newest: bool = False
    ) -> list[Document]:
        await self._read()
        found = [
            Document(id, kept.version, kept.doc, kept.marks[name, value])
            for (own_kind, id), kept in self._docs.items()
            if own_kind == kind and (name, value) in kept.marks
        ]
        if newest:
            found = [document for document in found if not after or document.order < after]
        else:
            found = [document for document in found if document.order > after]
        return sorted(found, key=lambda document: document.order, reverse=newest)[:limit]

    async def search(
        self,
        kind: str,
        text: str | None,
        marks: Sequence[tuple[str, str]] = (),
        after: int = 0,
        limit: int = 100,
    ) -> list[Document]:
        await self._read()
        found = []
        for (own_kind, id), kept in self._docs.items():
            if own_kind == kind and kept.text and all(mark in kept.marks for mark in marks):
                rank = 0 if text is None else _rank(kept.text, query(text))
                if rank is not None:
                    found.append(Document(id, kept.version, kept.doc, (rank + 1 << 48) - kept.born))
        found = [document for document in found if document.order > after]
        return sorted(found, key=lambda document: document.order)[: max(limit, 0)]

    async def due(self, kind: str, name: str, upto: int, limit: int = 100) -> list[Document]:
        await self._read()
        found = [
            (value, order, Document(id, kept.version, kept.doc, value))
            for (own_kind, id), kept in self._docs.items()
            for (own_name, value), order in kept.marks.items()
            if own_kind == kind and own_name == name and isinstance(value, int) and value <= upto
        ]
        return [document for _, _, document in sorted(found, key=lambda row: row[:2])[:limit]]

    async def recall(self, scope: str, key: str) -> Remembered | None:
        await self._read()
        return self._remembered.get((scope, key))

    async def head(self, stream: str) -> Head:
        await self._read()
        known = self._streams.get(stream) or _Stream()
        return Head(epoch_of(self._secret, stream), known.oldest, known.newest)

    async def events(self, stream: str, after: int, limit: int = 100) -> list[Event]:
        await self._read()
        known = self._streams.get(stream)
        if known is None:
            return []
        read = (
            self._event(*known.events[position], position)
            for position in range(max(after + 1, known.oldest), known.newest + 1)
        )
        return list(islice((event for event in read if event is not None), limit))

    def watch(self, listener: Listener | None) -> None:
        if listener is not None and self._listener is not None:
            raise RuntimeError("a store has one listener")
        self._listener = listener

    async def sweep(self, retention: Retention, limit: int = 1000) -> int:
        return await self._wait_for(retention, limit) or 0

    def _sweep(self, retention: Retention, limit: int) -> int:
        over = [place for place, kept in self._remembered.items() if kept.until < retention.now][:limit]
        for place in over:
            del self._remembered[place]
        removed = len(over)
        for stream in self._streams.values():
            removed += _sweep_stream(stream, self._dropped, retention, limit - removed)
        return removed

    def free_bytes(self) -> int:
        return self.free

    def statistics(self) -> StoreStatistics:
        return StoreStatistics(units=Histogram(()), commits=Histogram(()), checkpoints=Histogram(()))

    async def aclose(self) -> None:
        if self._closed:
            await trio.lowlevel.checkpoint()
        else:
            await self._wait_for(None)


def _rank(fields: tuple[frozenset[str], ...], looked_for: tuple[str, ...]) -> int | None:
    """How many fields beyond the first it takes to find all words; None: they are not in all of them."""
    found: set[str] = set()
    for rank, field in enumerate(fields):
        found |= field
        *whole, last = looked_for or ("",)
        if last and found.issuperset(whole) and any(word.startswith(last) for word in found):
            return rank
    return None


def _captured(answer: Outcome) -> outcome.Outcome[Any]:
    return outcome.Error(answer) if isinstance(answer, Exception) else outcome.Value(answer)


def _wake(task: trio.lowlevel.Task, answer: Outcome) -> None:
    trio.lowlevel.reschedule(task, _captured(answer))


def _sweep_stream(stream: _Stream, dropped: set[str], retention: Retention, limit: int) -> int:
    """Remove the oldest events up to the first young one: a clock that stepped back loses nothing."""
    first = stream.oldest
    while stream.oldest <= stream.newest - retention.events_keep and stream.oldest - first < limit:
        letter, append = stream.events[stream.oldest]
        if letter.data is None and append is not None:
            young = append.log not in dropped and append.at >= retention.events_before
        else:
            young = letter.at >= retention.events_before
        if young:
            break
        del stream.events[stream.oldest]
        stream.oldest += 1
    return stream.oldest - first
