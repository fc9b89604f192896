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

from broker.actors.actor import Actor, Stop
from broker.actors.once import MISMATCH, Once, read_outcome
from broker.actors.overdue import Overdue
from broker.clock import Clock
from broker.store.port import Append, Deliver, Put, Store, Unit
from broker.store.stored import stored

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
            if unit.append or unit.puts or unit.deliver:
                unit = msgspec.structs.replace(unit, puts=(*unit.puts, *once.notes(self.key)))
            else:
                once.nothing_to_tell()
        if not (unit.append or unit.puts or unit.deliver or unit.remember):
            return answer
        refused = await self.commit(unit)
        if refused is not None:
            return refused
        if changed:
            state.row = row
            state.version = state.version + 1 if row is not None else 0
            self.stands(row)
            for name, value in self.index_of(row) if row is not None else ():
                if name == "due" and isinstance(value, int):
                    self._nudge(value)
        return answer

    def _put(self, row: RowT | None) -> Put:
        assert self.state is not None
        if row is None:
            return Put(self.kind, self.key, self.state.version, None)
        return Put(self.kind, self.key, self.state.version, msgspec.json.encode(row), self.index_of(row))

    def _read(self, doc: bytes) -> RowT:
        return stored(self.type, doc, self.kind, self.key)


def _deliver(event: Told, at: int) -> Deliver:
    data = None if event.data is None else msgspec.json.encode(event.data)
    return Deliver(event.stream, event.kind, data=data, at=at)
