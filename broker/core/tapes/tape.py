"""A tape: the best bid and ask of one instrument, tick by tick (docs/reference/trial.md, Tapes).

1. Prices are whole numbers of ticks, sizes whole numbers; time is a start and a step. There are no floats.
2. Its name is the sha256 of its bytes: a line of JSON that says what it is, then a line a tick.
3. What can't be read back as the same bytes is no tape.
"""

import hashlib
import io
from array import array
from collections.abc import Iterator
from typing import Final

import msgspec

from broker.wire.canonical import encode

MAX_TICKS: Final = 1_000_000
MAX_PRICE: Final = 10**12
MAX_SIZE: Final = 10**12
BLOCK: Final = 1_000
"""Lines that are written at once."""
MICRO: Final = 1_000_000
"""Money is kept in millionths of the quote currency."""


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
        digest = hashlib.sha256()
        for block in self.blocks():
            digest.update(block)
        return digest.hexdigest()

    def blocks(self) -> Iterator[bytes]:
        """Its bytes, a thousand lines or so at a time."""
        yield encode(msgspec.to_builtins(self.about)) + b"\n"
        for at in range(0, len(self), BLOCK):
            part = slice(at, at + BLOCK)
            yield b"".join(self._lines(part))

    def _lines(self, part: slice) -> Iterator[bytes]:
        if self.about.sized:
            rows = zip(self.bids[part], self.asks[part], self.sizes[part], strict=True)
            return (b"%d,%d,%d\n" % row for row in rows)
        return (b"%d,%d\n" % row for row in zip(self.bids[part], self.asks[part], strict=True))


def read_tape(content: bytes) -> Tape:
    """A tape of its bytes. Raises ValueError where they are none."""
    head, _, rest = content.partition(b"\n")
    about = msgspec.json.decode(head, type=About)
    columns = 3 if about.sized else 2
    numbers = array("q")
    for line in io.BytesIO(rest):  # a list of all fields would take 300 MB of the longest tape
        row = line.split(b",")
        if len(row) != columns:
            raise ValueError("a line of a tape has one number a column")
        numbers.extend(map(int, row))
    bids, asks = numbers[::columns], numbers[1::columns]
    sizes = numbers[2::columns] if about.sized else array("q")
    tape = Tape(about, bids, asks, sizes)
    if tape.ref() != hashlib.sha256(content).hexdigest():  # the text itself would be another 100 MB
        raise ValueError("a tape is written in one way only")
    return tape
