"""A tape of a CSV file: every line is right, or the first wrong one is named (docs/reference/trial.md, Tapes).

The header names the columns: time, bid, ask, and size if there is one. Nothing is repaired or guessed at: what a file
leaves open (a zone, a comma in a number, a gap) is for whoever made it to say.
"""

import csv
import io
import re
from array import array
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final

import msgspec

from broker.core.tapes.tape import MAX_PRICE, MAX_SIZE, MAX_TICKS, MICRO, About, Tape

REQUIRED: Final = ("time", "bid", "ask")
COLUMNS: Final = (*REQUIRED, "size")
MAX_LINE: Final = 1_000
_MS: Final = re.compile(r"[0-9]{12,14}")
_DECIMAL: Final = re.compile(r"(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,12})?")
_WHOLE: Final = re.compile(r"0|[1-9][0-9]{0,14}")
_GROUPED: Final = re.compile(r"[0-9]{1,3}(?:[,'’\u00a0\u202f _][0-9]{3})+(?:[.,][0-9]+)?")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Complaint(msgspec.Struct, frozen=True):
    """What is wrong with a file: the first line (from 1) that is, and what to do."""

    line: int
    message: str


class _Wrong(Exception):
    """What is wrong with a line."""


def read_csv(text: str, *, instrument: str, tick: str, fee: str = "0") -> Tape | Complaint:
    """The tape of a CSV file. `tick`, the smallest step of a price, and `fee` (of one unit) are decimals of the quote
    currency. A Complaint names the first line that is wrong; then nothing of it is a tape."""
    smallest, cost = _millionths(tick), _millionths(fee)
    if smallest is None or smallest < 1 or cost is None:
        return Complaint(
            0, "tick and fee are decimals with at most six digits after the point; a tick is above 0"
        )
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        return _Reader(rows, instrument, Fraction(smallest, MICRO), smallest, cost).read()
    except _Wrong as wrong:
        return Complaint(rows.line_num, str(wrong))
    except csv.Error as error:
        return Complaint(rows.line_num, f"not CSV: {error}")


class _Reader:
    """Reads one file, line by line."""

    def __init__(
        self, rows: Iterator[list[str]], instrument: str, tick: Fraction, smallest: int, fee: int
    ) -> None:
        self._rows = rows
        self._instrument = instrument
        self._tick = tick
        self._smallest = smallest
        self._fee = fee
        self._bids, self._asks, self._sizes = array("q"), array("q"), array("q")

    def read(self) -> Tape:
        at = _columns(next(self._rows, []))
        start = step = last = 0
        for row in self._rows:
            if len(row) != len(at):
                raise _Wrong(f"{len(row)} fields, and the header has {len(at)}")
            if len(self._bids) == MAX_TICKS:
                raise _Wrong(f"a tape has at most {MAX_TICKS} ticks")
            time = _time(row[at["time"]])
            if not self._bids:
                start = time
            elif len(self._bids) == 1:
                step = _first_step(time - last)
            elif time - last != step:
                raise _Wrong(_uneven(time - last, step))
            last = time
            self._quote(row, at)
        if len(self._bids) < 2:
            raise _Wrong("a tape has two ticks at least")
        sized = "size" in at
        about = About(self._instrument, start, step, self._smallest, self._fee, sized)
        return Tape(about, self._bids, self._asks, self._sizes)

    def _quote(self, row: list[str], at: dict[str, int]) -> None:
        bid, ask = self._price(row[at["bid"]], "bid"), self._price(row[at["ask"]], "ask")
        if bid > ask:
            raise _Wrong(f"a crossed book: the bid {row[at['bid']]} is above the ask {row[at['ask']]}")
        self._bids.append(bid)
        self._asks.append(ask)
        if "size" in at:
            text = row[at["size"]]
            if not _WHOLE.fullmatch(text):
                raise _Wrong(_number(text, "size", "a whole number, such as 1000000"))
            if int(text) > MAX_SIZE:
                raise _Wrong(f"the size {text} is above {MAX_SIZE}")
            self._sizes.append(int(text))

    def _price(self, text: str, name: str) -> int:
        if not _DECIMAL.fullmatch(text):
            raise _Wrong(_number(text, name, "a decimal, such as 1.0842"))
        ticks = Fraction(text) / self._tick
        if ticks.denominator != 1:
            raise _Wrong(f"the {name} {text} is no whole number of ticks; name the tick that the file has")
        if not 0 < ticks <= MAX_PRICE:
            raise _Wrong(f"the {name} {text} is not from 1 to {MAX_PRICE} ticks")
        return ticks.numerator


def _columns(header: list[str]) -> dict[str, int]:
    names = [name.strip().lower() for name in header]
    wanted = "the first line names the columns: time,bid,ask or time,bid,ask,size"
    if missing := [name for name in REQUIRED if name not in names]:
        raise _Wrong(f"a bad header: no column {missing[0]}; {wanted}")
    if strange := [name for name in names if name not in COLUMNS]:
        raise _Wrong(f"a bad header: {strange[0][:32]!r} is no column of a tape; {wanted}")
    if len(set(names)) != len(names):
        raise _Wrong(f"a bad header: a column stands there twice; {wanted}")
    return {name: place for place, name in enumerate(names)}


def _time(text: str) -> int:
    """Unix milliseconds of a number of them, or of an ISO 8601 time with its zone."""
    if _MS.fullmatch(text):
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise _Wrong(f"{text[:40]!r} is no time: write 2026-03-02T09:30:00Z, or Unix milliseconds") from None
    if time.tzinfo is None:
        raise _Wrong(
            f"the time {text} has no zone, and an hour may stand there twice when the clocks change: write Z or +01:00"
        )
    micros = (time - _EPOCH) // _MICROSECOND
    if micros % 1000:
        raise _Wrong(f"the time {text} is finer than a millisecond")
    return micros // 1000


def _first_step(step: int) -> int:
    if step <= 0:
        raise _Wrong(_uneven(step, 0))
    return step


def _uneven(came: int, step: int) -> str:
    if came == 0:
        return "a time that stands there twice; keep one of them"
    if came < 0:
        return "unsorted: the time is before that of the line above"
    if came % step == 0:
        missing = came // step - 1
        return f"a gap: {missing} ticks of {step} ms are missing before this line; fill it, or cut the file there"
    return f"{came} ms after the line above, and the step of this tape is {step} ms"


def _number(text: str, name: str, form: str) -> str:
    if _GROUPED.fullmatch(text):
        return f"the {name} {text!r} has separators between its digits: write it plainly, as {form}"
    return f"the {name} {text[:40]!r} is not {form}"


def _millionths(text: str) -> int | None:
    if not _DECIMAL.fullmatch(text):
        return None
    value = Fraction(text) * MICRO
    return value.numerator if value.denominator == 1 else None
