"""A tape: the best bid and ask of one instrument, tick by tick (docs/reference/trial.md, Tapes).

1. Prices are whole numbers of ticks, sizes whole numbers; time is a start and a step. There are no floats.
2. Its name is the sha256 of its bytes: a line of JSON that says what it is, then a line a tick.
3. What can't be read back as the same bytes is no tape.
"""

import hashlib
import io
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from broker.wire.canonical import encode

MAX_TICKS: Final = 1_000_000
MAX_PRICE: Final = 10**12
MAX_SIZE: Final = 10**12
LINE: Final = 4_096
"""Bytes of a line, at most."""
BLOCK: Final = 1_000
"""Lines that are written at once."""
MICRO: Final = 1_000_000
"""Money is kept in millionths of the quote currency."""

_ONE_WAY: Final = "a tape is written in one way only"


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a tape is of."""

    instrument: str
    start: int
    """Unix milliseconds of tick 0."""
    step: int
    """Milliseconds from a tick to the next."""
    tick: int
    """What one unit is worth more when its price is one tick higher, in millionths of the quote currency."""
    fee: int
    """What a fill costs a unit, in millionths of the quote currency."""
    sized: bool
    """Whether each side has a size; without one a fill is whole."""


class Tape:
    """The ticks of a tape, by number from 0. `sizes` is empty where it has none."""

    __slots__ = ("about", "asks", "bids", "sizes")

    def __init__(self, about: About, bids: "array[int]", asks: "array[int]", sizes: "array[int]") -> None:
        self.about = about
        self.bids = bids
        self.asks = asks
        self.sizes = sizes

    def __len__(self) -> int:
        return len(self.bids)

    def content(self) -> bytes:
        """Its bytes."""
        return b"".join(self.blocks())

    def ref(self) -> str:
        """Its name: sha256 of its bytes, hex."""
        return ref_of(self.blocks())

    def blocks(self) -> Iterator[bytes]:
        """Its bytes, a thousand lines or so at a time."""
        columns = [self.bids, self.asks, self.sizes][: 3 if self.about.sized else 2]
        yield encode(msgspec.to_builtins(self.about)) + b"\n"
        for at in range(0, len(self), BLOCK):
            part = slice(at, at + BLOCK)
            yield b"".join(_lines([column[part] for column in columns]))


def ref_of(blocks: Iterable[bytes]) -> str:
    """The name of a tape that has these bytes: sha256, hex."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def read_tape(content: bytes) -> Tape:
    """A tape of its bytes. Raises ValueError where they are none."""
    reader = TapeReader()
    reader.feed(content)
    return reader.end()


class TapeReader:
    """Reads a tape of its bytes, cut anywhere, in little more memory than it takes itself."""

    def __init__(self) -> None:
        self._about: About | None = None
        self._columns = array("q"), array("q"), array("q")
        self._rest = b""

    def feed(self, block: bytes) -> None:
        """The next bytes. Raises ValueError where they are no tape's."""
        joined = self._rest + block if self._rest else block
        end = joined.rfind(b"\n") + 1
        lines, self._rest = joined[:end], joined[end:]
        if len(self._rest) > LINE:
            raise ValueError("a line of a tape is short")
        if self._about is None and lines:
            head, _, lines = lines.partition(b"\n")
            self._about = msgspec.json.decode(head, type=About)
            if encode(msgspec.to_builtins(self._about)) != head:
                raise ValueError(_ONE_WAY)
        if self._about is not None:
            self._rows(lines, 3 if self._about.sized else 2)

    def end(self) -> Tape:
        """After all of them: the tape. Raises ValueError where it has no end."""
        if self._about is None or self._rest:
            raise ValueError("a tape ends with a line")
        return Tape(self._about, *self._columns)

    def _rows(self, lines: bytes, width: int) -> None:
        numbers = array("q")
        for line in io.BytesIO(lines):  # a list of all fields would take 300 MB of the longest tape
            row = line.split(b",")
            if len(row) != width:
                raise ValueError("a line of a tape has one number a column")
            numbers.extend(map(int, row))
        columns = [numbers[n::width] for n in range(width)]
        if b"".join(_lines(columns)) != lines:
            raise ValueError(_ONE_WAY)
        for column, more in zip(self._columns, columns, strict=False):
            column.extend(more)


def _lines(columns: "Sequence[array[int]]") -> Iterator[bytes]:
    form = b"%d,%d,%d\n" if len(columns) == 3 else b"%d,%d\n"
    return (form % row for row in zip(*columns, strict=True))
