"""The catalog: the tapes that there are (docs/reference/trial.md, Catalog).

1. Whoever imports a tape sends its bytes in parts. Nobody sees it before all are there and have the hash that it is
   named by.
2. An index is a tape's for ever: that of one that was removed goes to no other, and is its own again if it comes back.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from broker.core import pieces
from broker.core.pieces import Pieces
from broker.core.tapes.tape import MAX_PRICE, MAX_SIZE, MAX_TICKS, About, Tape, TapeReader

KIND: Final = "tape"
PART: Final = 49_152
"""Bytes of a part, at most: with its line ends escaped it fits into a request of limits.frame_bytes."""
PARTS: Final = 1_024
"""Parts of a tape, at most: the longest takes 860."""
FIRST: Final = 100
"""The index of the first imported tape; those below are made by rule."""
IMPORTED: Final = 256
"""Imported tapes, at most."""
LEFT_MS: Final = 86_400_000
"""How long parts lie that nobody goes on with."""
INSTRUMENT: Final = r"[A-Za-z0-9][A-Za-z0-9._/-]{0,31}"
"""As a plan names it after `on`."""
PIECE_PARTS: Final = 32
PIECE_BYTES: Final = PART // 2
PIECE_TICKS: Final = 16_384
"""Parts that are hashed, bytes that are read, and ticks that are looked at, in one piece of some 2 ms."""
MAX_TIME: Final = 10**14
_INSTRUMENT: Final = re.compile(INSTRUMENT)

Text = Annotated[str, Meta(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f\x7f]+$(?!\n)")]


class TapeRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """An imported tape as stored (kind "tape", id = ref). Its bytes lie in `log`, a part a row."""

    ref: str
    state: Literal["importing", "here", "gone"]
    turn: int
    """Which log: one that was dropped takes no row again."""
    parts: int
    changed_at: int
    """Wall milliseconds."""
    due: int | None = None
    """When an import is given up."""
    index: int | None = None
    about: About | None = None
    ticks: int = 0
    title: str = ""
    licence: str = ""

    @property
    def log(self) -> str:
        """Where its parts are."""
        return log_of(self.ref, self.turn)


class Item(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tape of the catalog, as it is shown. `tick`, `fee`: millionths of the quote currency. `kind`, `seed`: of one
    that is made by rule; another seed is another tape."""

    index: int
    instrument: str
    title: str
    ticks: int
    start: int
    step: int
    tick: int
    fee: int
    sized: bool
    ref: str
    licence: str
    price: dict[str, Any]
    kind: str | None = None
    seed: int | None = None


def log_of(ref: str, turn: int) -> str:
    """The log of a tape's parts."""
    return f"{KIND}:{ref}:{turn}"


def index_of(row: TapeRow) -> tuple[tuple[str, str | int], ...]:
    """What a row is found by: nothing of a tape that is not here."""
    if row.state == "here":
        return ("all", "1"), ("index", str(row.index))
    return (("due", row.due),) if row.due is not None else ()


def item_of(row: TapeRow, price: dict[str, Any]) -> Item:
    """An imported tape, as it is shown."""
    assert row.about is not None  # it is here
    assert row.index is not None
    about = {
        name: getattr(row.about, name) for name in ("instrument", "start", "step", "tick", "fee", "sized")
    }
    return Item(
        index=row.index,
        title=row.title,
        ticks=row.ticks,
        ref=row.ref,
        licence=row.licence,
        price=price,
        **about,
    )


def parts_of(tape: Tape) -> Iterator[bytes]:
    """A tape's bytes, cut where lines end: the same every time. Each part is made when it is taken."""
    rest = b""
    for block in tape.blocks():
        rest += block
        while len(rest) > PART:
            end = rest.rindex(b"\n", 0, PART) + 1
            yield rest[:end]
            rest = rest[end:]
    yield rest


def whole(parts: list[bytes], ref: str) -> Tape | str:
    """The tape that these parts are, or why they are not the one of this ref, or none at all."""
    return pieces.whole(joining(parts, ref))


def joining(parts: list[bytes], ref: str) -> Pieces[Tape | str]:
    """The same in pieces of some 2 ms."""
    digest = hashlib.sha256()
    for n, part in enumerate(parts):
        digest.update(part)
        if n % PIECE_PARTS == 0:
            yield
    if digest.hexdigest() != ref:
        return "its bytes have another hash"
    reader = TapeReader()
    try:
        for part in parts:
            for at in range(0, len(part), PIECE_BYTES):
                reader.feed(part[at : at + PIECE_BYTES])
                yield
        tape = reader.end()
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        return f"it is no tape: {error}"
    wrong = unfit(tape.about, len(tape))
    for at in range(0, len(tape), PIECE_TICKS):
        wrong = wrong or _no_book(tape, at)
        yield
    return wrong or tape


def fault(tape: Tape) -> str | None:
    """What is wrong with a tape that reads well: the first thing that no import lets pass."""
    wrong = unfit(tape.about, len(tape))
    for at in range(0, len(tape), PIECE_TICKS):
        wrong = wrong or _no_book(tape, at)
    return wrong


def _no_book(tape: Tape, at: int) -> str | None:
    """What is wrong with PIECE_TICKS ticks."""
    part = slice(at, at + PIECE_TICKS)
    for n, (bid, ask) in enumerate(zip(tape.bids[part], tape.asks[part], strict=True), at):
        if not 0 < bid <= ask <= MAX_PRICE:
            return f"tick {n}: the bid {bid} and the ask {ask} are no book"
    sizes = tape.sizes[part]
    if tape.about.sized and not (min(sizes) >= 0 and max(sizes) <= MAX_SIZE):
        return "a size is out of bounds"
    return None


def unfit(about: About, ticks: int) -> str | None:
    """What is wrong with a tape by what it is of, and how many ticks it has."""
    if not _INSTRUMENT.fullmatch(about.instrument):
        return "an instrument has 1 to 32 letters, digits, points, hyphens, slashes and low lines"
    if not (0 < about.step <= MAX_TIME and 0 <= about.start <= MAX_TIME):
        return "its start or its step is out of bounds"
    if not (0 < about.tick <= MAX_PRICE and 0 <= about.fee <= MAX_PRICE):
        return "its tick or its fee is out of bounds"
    if not 2 <= ticks <= MAX_TICKS:
        return f"a tape has 2 to {MAX_TICKS} ticks"
    return None
