"""The actor of one stored document: an agent, an owner, a pair of agents, a channel, a grant.

1. Its state is the document and its version; there is none until the first write.
2. A change is one unit: the document with its index, other documents, rows of its log, events on streams, and what is
   remembered of the request. Whoever writes one of its documents beside it shows as a conflict, and it is read again.
3. A command with a key (`once`) that was done before is answered with what is remembered, before it is looked at.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import trio

from broker.actors.actor import Actor, Stop, Write
from broker.actors.once import MISMATCH, Once, read_outcome
from broker.actors.overdue import Overdue
from broker.clock import Clock
from broker.store.port import Append, Deliver, Put, Store, Unit
from broker.store.stored import stored
from broker.wire.refusals import Refusal

RowT = TypeVar("RowT", bound=msgspec.Struct)
Index = tuple[tuple[str, str | int], ...]


class Told(NamedTuple):
    """An event for a stream: a kind of broker.wire.events, and a JSON object."""

    stream: str
    kind: str
    data: Any
    """msgspec-encodable, an object; None: the text of the unit's Append."""


class Record(msgspec.Struct, Generic[RowT]):
    """The state: the row as stored, and its version. None and 0 where there is none."""

    row: RowT | None
    version: int


class RecordActor(Actor[Record[RowT]], Generic[RowT]):
    """One document of `kind`, decoded as `type`. Subclasses say its index, and what each command does (`do`)."""

    kind: str
    type: type[RowT]

    def __init__(
        self,
        key: str,
        *,
        store: Store,
        clock: Clock,
        mailbox: int,
        commit_timeout_s: float,
        overdue: Overdue | None = None,
        nudge: Callable[[int], None] = lambda _: None,
    ) -> None:
        super().__init__(
            key, store=store, mailbox=mailbox, commit_timeout_s=commit_timeout_s, overdue=overdue
        )
        self.clock = clock
        self._nudge = nudge

    @abstractmethod
    def index_of(self, row: RowT) -> Index:
        """What the document is found by. A name `due` with an integer is when Timers asks it (Due)."""

    @abstractmethod
    async def do(self, command: Any) -> Any:
        """Decide on one command and `write` what follows; returns its answer (a Refusal is one)."""

    def stands(self, row: RowT | None) -> None:
        """The row as it is now, for what others must be told of: after each commit that changed it, and after it was
        read, since a commit in doubt may have landed. It neither waits nor raises."""

    async def load(self) -> Record[RowT]:
        document = await self.store.get(self.kind, self.key)
        record = Record[RowT](None, 0)
        if document is not None:
            record = Record(self._read(document.doc), document.version)
        self.stands(record.row)
        return record

    async def handle(self, command: Any) -> Any:
        once: Once | None = getattr(command, "once", None)
        if once is not None and once.key:
            remembered = await self.store.recall(once.scope, once.key)
            if remembered is not None:
                once.nothing_to_tell()
                return read_outcome(remembered) if remembered.digest == once.digest else MISMATCH
        return await self.do(command)

    @property
    def row(self) -> RowT | None:
        """The document as it stands."""
        assert self.state is not None  # load() always gives one
        return self.state.row

    async def confirm(self) -> None:
        """Before an answer that writes no document. Raises Stop where the document was written beside us, by a commit
        in doubt that has landed: the command is asked again of an actor that has read it."""
        document = await self.store.get(self.kind, self.key)
        assert self.state is not None
        if self.state.version != (0 if document is None else document.version):
            raise Stop

    async def write(
        self,
        row: RowT | None,
        answer: Any,
        *,
        once: Once | None = None,
        puts: Sequence[Put] = (),
        events: Sequence[Told] = (),
        append: Append | None = None,
    ) -> Any:
        """Commit the row (None: it is deleted) with all that belongs to it; returns `answer`, or why not.

        Raises Stop where something was written beside us: the command is asked again of an actor that has read it.
        """
        unit = self._unit(row, answer, once, puts, events, append)
        if unit is None:
            return answer
        refused = await self.commit(unit)
        if refused is not None:
            return refused
        self._written(row)
        return answer

    def change(
        self,
        row: RowT,
        answer: Any,
        then: Callable[[], None],
        *,
        once: Once | None = None,
        append: Append | None = None,
    ) -> Write:
        """The same for `decide`: what is committed, and answered with `answer` once it is and `then` was called."""
        unit = self._unit(row, answer, once, (), (), append)
        assert unit is not None  # the row stands in it
        return _Change(self, unit, row, answer, then)

    def _unit(
        self,
        row: RowT | None,
        answer: Any,
        once: Once | None,
        puts: Sequence[Put],
        events: Sequence[Told],
        append: Append | None,
    ) -> Unit | None:
        """What is committed; None: nothing."""
        state = self.state
        assert state is not None
        at = self.clock.now_ms()
        changed = () if row is state.row else (self._put(row),)
        unit = Unit(
            append=append,
            puts=(*changed, *puts),
            deliver=tuple(_deliver(each, at) for each in events),
            remember=once.remember(answer) if once is not None else None,
        )
        if once is not None:
            if not (unit.append or unit.puts or unit.deliver):
                once.nothing_to_tell()
            elif notes := once.notes(self.key):
                unit = msgspec.structs.replace(unit, puts=(*unit.puts, *notes))
        return unit if unit.append or unit.puts or unit.deliver or unit.remember else None

    def _written(self, row: RowT | None) -> None:
        """The row was committed, if it is another one."""
        state = self.state
        assert state is not None
        if row is state.row:
            return
        state.row = row
        state.version = state.version + 1 if row is not None else 0
        self.stands(row)
        for name, value in self.index_of(row) if row is not None else ():
            if name == "due" and isinstance(value, int):
                self._nudge(value)

    def _put(self, row: RowT | None) -> Put:
        assert self.state is not None
        if row is None:
            return Put(self.kind, self.key, self.state.version, None)
        return Put(self.kind, self.key, self.state.version, msgspec.json.encode(row), self.index_of(row))

    def _read(self, doc: bytes) -> RowT:
        return stored(self.type, doc, self.kind, self.key)


class _Change(Write):
    """A row that was decided on without waiting."""

    __slots__ = ("_actor", "_answer", "_row", "_then")

    def __init__(
        self, actor: RecordActor[Any], unit: Unit, row: Any, answer: Any, then: Callable[[], None]
    ) -> None:
        self.began = trio.current_time()
        self.unit = unit
        self._actor = actor
        self._row = row
        self._answer = answer
        self._then = then

    def settle(self, refused: Refusal | None) -> Any:
        if refused is not None:
            return refused
        self._actor._written(self._row)
        self._then()
        return self._answer


def _deliver(event: Told, at: int) -> Deliver:
    data = None if event.data is None else msgspec.json.encode(event.data)
    return Deliver(event.stream, event.kind, data=data, at=at)
