"""The port to durable memory. It speaks meaning (expected position, durable, visible), never SQL.

The law that each adapter keeps (tests/broker/store/conformance.py):

1. One `commit(unit)` is one transaction: all of its ops, or none.
2. It returns when the unit is durable (fsync done) AND visible to every later read of this store.
3. Units become visible in one order; a stream's positions are given in that order, 1, 2, 3 … without a gap.
4. `watch` is told of a committed unit's deliveries, in order, before `commit` returns for it.
5. `Conflict`: nothing of the unit was written, some expectation did not hold. `Unavailable`: certainly not
   written. `InDoubt`: not known; settle by committing the identical unit again (it then conflicts or lands).
   Cancelling `commit` leaves the outcome unknown. A unit that makes no sense (an event without a text) is
   ValueError.
6. `submit(unit, then)` is `commit` for one who does not wait: `then` is called on the loop where `commit` would
   return or raise, never before `submit` has returned, and in the order of submission.
7. Reads see a committed prefix. They never wait for the writer, and they write nothing: what anybody may ask for,
   under any name, takes no room.
8. Search sees what is committed. A hit has every word looked for in its text, as broker/store/words.py knows words, the
   last one maybe as a beginning. The best are those whose first field has all of them, then those whose first two
   fields have, then the others; among equals those come first that were put first last. What comes, goes or changes
   moves no other hit.

Positions are ours: n in a log, a count in a stream. No rowid crosses the port.

(`gc=False`: these hold nothing that could lead back to them, and millions are made: the collector need not look.)
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import msgspec

from broker.histogram import Histogram

FIELDS: Final = 3
"""Fields of a document's text."""


class Append(msgspec.Struct, frozen=True, gc=False):
    """Row `n` of `log`. Conflicts unless the log's last row is n - 1 (an empty log awaits 0)."""

    log: str
    n: int
    data: bytes
    at: int
    """Wall milliseconds when it was accepted."""


class Put(msgspec.Struct, frozen=True):
    """Replace document `id` of `kind`. Conflicts unless its version is `expect` (0: it must not exist).

    The new version is expect + 1. `index` is the whole set of its index rows (name, value); rows already
    there stay where they are in the order, new ones come last. `doc` None deletes it and its index rows.
    """

    kind: str
    id: str
    expect: int
    doc: bytes | None
    index: tuple[tuple[str, str | int], ...] = ()
    text: tuple[str, ...] = ()
    """What it is found by in a search, at most FIELDS of them, the weightiest first; (): it is not found."""


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """Give the next position of principal stream `stream` to an event.

    `data` None: the event's text is that of the unit's Append, stored once and referred to; a Drop of that
    log takes the event's text with it, and the event is read no more (its position is never given again).
    """

    stream: str
    kind: str
    own: bool = False
    data: bytes | None = None
    at: int = 0
    """Wall milliseconds, where `data` is given: what retention goes by. 0: older than everything."""


class Remember(msgspec.Struct, frozen=True):
    """Keep the answer to a request under (scope, key). Conflicts while the key is there: until it is swept."""

    scope: str
    key: str
    digest: bytes
    outcome: bytes
    until: int
    """Wall milliseconds after which a sweep forgets it."""


class Drop(msgspec.Struct, frozen=True):
    """Remove all rows of a log (retention); the log takes no row ever again (Conflict "drop")."""

    log: str


class Unit(msgspec.Struct, frozen=True, gc=False):
    """What one request changes, in this order. All expectations are those before the unit (a second Put of a
    document expects what the first made of it)."""

    append: Append | None = None
    puts: tuple[Put, ...] = ()
    deliver: tuple[Deliver, ...] = ()
    remember: Remember | None = None
    drop: Drop | None = None


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A row of a log as stored."""

    n: int
    data: bytes
    at: int


class Document(msgspec.Struct, frozen=True):
    """A document with its version (≥ 1)."""

    id: str
    version: int
    doc: bytes
    order: int = 0
    """In `find`: the place of its index row, to page after; in `search` its place among the hits. In `due`: the
    value."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """An event of a principal's stream. `at` is the Append's where `data` is a row's text, else Deliver's."""

    stream: str
    position: int
    kind: str
    own: bool
    data: bytes
    at: int = 0


class Head(msgspec.Struct, frozen=True):
    """Where a stream stands. One that nobody wrote to has newest 0, oldest 1, its epoch, and no room taken."""

    epoch: str
    """16 lowercase hex characters, made from the stream's name and a random secret that the store keeps: always
    the same, and not to be told without the secret. A restore renews the secret, and with it every epoch."""
    oldest: int
    newest: int


class Remembered(msgspec.Struct, frozen=True):
    """What `Remember` kept."""

    digest: bytes
    outcome: bytes
    until: int


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """What `sweep` removes: a stream's oldest events up to the first not older than `events_before` (wall ms; one
    whose text a Drop took is older than everything), but never its last `events_keep`; remembered answers whose
    `until` is before `now`."""

    now: int
    events_before: int
    events_keep: int


class Conflict(Exception):
    """An expectation did not hold; nothing was written. `what` is "append", "put", "remember" or "drop"."""

    def __init__(self, what: str, key: str = "") -> None:
        super().__init__(f"{what} {key}")
        self.what = what
        self.key = key


class Unavailable(Exception):
    """Certainly not written: the disk is full, the store is closed or refuses writes."""


class InDoubt(Exception):
    """Not known whether it was written: the commit itself failed or took too long."""


class SchemaTooNew(Exception):
    """The store was written by a newer Turret; it is left as it is."""


class NotAStore(Exception):
    """There is something else where the store should be; it is left as it is."""


class InUse(Exception):
    """Another process has the store open."""


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something in a store that is not as it must be: what a check finds."""

    where: str
    """schema, pages, text, conversation, document, answer, log or stream."""
    name: str
    """Which one of them; where there is but one, what of it."""
    message: str
    n: int | None = None
    """The envelope's number, or the position in a stream."""


Step = Fault | int
"""What a check yields: a fault, or how many more rows and events it has looked at."""


Listener = Callable[[Sequence[Event]], None]
"""Called on the loop's thread with the deliveries of one or more committed units, in order.
Must neither block nor raise."""

Then = Callable[[BaseException | None], None]
"""Called on the loop's thread with what became of a unit: None where it is durable and visible, else what `commit`
would raise. Must neither block nor raise."""


class StoreStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """A moment of a store, for metrics. Sizes are bytes, times seconds; 0 where there is no disk."""

    units: Histogram
    """Units that were committed together."""
    commits: Histogram
    """How long a commit took, from its first statement to the word that it is durable."""
    checkpoints: Histogram
    """How long it took to move the write-ahead log into the file, pauses for commits included."""
    file_bytes: int = 0
    log_bytes: int = 0
    """Of the write-ahead log."""


class Store(Protocol):
    """Each async method is a checkpoint. Any number of tasks may call any of them at once."""

    @property
    def broken(self) -> str | None:
        """Why the store refuses all writes until it is opened again (a failed fsync), or None."""
        ...

    async def commit(self, unit: Unit) -> None:
        """Write a unit; see the law. Raises Conflict, Unavailable, InDoubt."""
        ...

    def submit(self, unit: Unit, then: Then) -> None:
        """Write a unit and call `then` with what became of it; see the law. Called on the loop; no checkpoint.

        What was submitted can't be taken back; whoever gives up waiting is in doubt.
        """
        ...

    async def entries(self, log: str, after: int = -1, limit: int = 100) -> list[Entry]:
        """Rows with n > after, rising, at most `limit`."""
        ...

    async def tail(self, log: str, before: int | None = None, limit: int = 100) -> list[Entry]:
        """The last rows (with n < before, if given), FALLING, at most `limit`."""
        ...

    async def get(self, kind: str, id: str) -> Document | None:
        """A document, or None."""
        ...

    async def find(
        self, kind: str, name: str, value: str, after: int = 0, limit: int = 100, *, newest: bool = False
    ) -> list[Document]:
        """Documents with the index row (name, value), in the order in which they got it; order > after.

        With `newest` the other way round: falling, from the last one, or those with order < after if given.
        """
        ...

    async def search(
        self,
        kind: str,
        text: str | None,
        marks: Sequence[tuple[str, str]] = (),
        after: int = 0,
        limit: int = 100,
    ) -> list[Document]:
        """Documents with a text that has the words of `text` (None: any text; one without a word: none), and with all
        of these index rows; the best first (law 8), order > after. What `text` says is never more than words."""
        ...

    async def due(self, kind: str, name: str, upto: int, limit: int = 100) -> list[Document]:
        """Documents with an integer index row `name` ≤ upto, rising by it. A damaged one has no text (b""), and hides
        none of the others: what is due of them is still done."""
        ...

    async def recall(self, scope: str, key: str) -> Remembered | None:
        """What was remembered under (scope, key), even if its `until` is past and it was not yet swept."""
        ...

    async def head(self, stream: str) -> Head:
        """Where a stream stands, also one that nobody wrote to. Writes nothing."""
        ...

    async def events(self, stream: str, after: int, limit: int = 100) -> list[Event]:
        """Events with position > after, rising, at most `limit` (start at the oldest kept)."""
        ...

    def watch(self, listener: Listener | None) -> None:
        """Have `listener` told of deliveries (law 4); None ends it. One at a time: RuntimeError for a second."""
        ...

    async def sweep(self, retention: Retention, limit: int = 1000) -> int:
        """Remove at most `limit` rows that retention lets go; returns how many. 0: nothing left to do."""
        ...

    def free_bytes(self) -> int:
        """Bytes free where the store lives."""
        ...

    def statistics(self) -> StoreStatistics:
        """A moment for metrics; costs two looks at the directory."""
        ...

    async def aclose(self) -> None:
        """Finish what was given to `commit`, then close. Later calls raise Unavailable."""
        ...


class Snapshot(Protocol):
    """A store at one moment, for a check. What can't be read raises an adapter's error, never a wrong answer."""

    def pages(self) -> Iterator[Fault]:
        """What the adapter's own engine finds wrong with its file."""
        ...

    def sums(self) -> Iterator[Fault]:
        """What was written with a sum, and is not what was written."""
        ...

    def logs(self) -> list[str]:
        """The names of the logs that were not dropped."""
        ...

    def rows(self, log: str) -> list[Entry]:
        """All rows of a log."""
        ...

    def count_rows(self) -> int:
        """How many rows all logs have, counted in another way."""
        ...

    def document(self, kind: str, id: str) -> Document | None:
        """A document, or None."""
        ...

    def documents(self, kind: str) -> Iterator[Document]:
        """All documents of a kind."""
        ...

    def marks(self, kind: str, id: str) -> set[tuple[str, str | int]]:
        """The index rows of a document."""
        ...

    def searched(self, kind: str, id: str) -> tuple[str, ...]:
        """The words of each field that a search finds a document by, with spaces between; () where it finds none."""
        ...

    def streams(self) -> Iterator[Step]:
        """Looks whether each stream's positions follow each other, and each event's text is its own."""
        ...
