"""A tape of a CSV file: every line is right, or the first wrong one is named (docs/reference/trial.md, Tapes).

1. The header names the columns: time, bid, ask, and size if there is one. Nothing is repaired or guessed at: what a
   file leaves open (a zone, a comma in a number, a gap) is for whoever made it to say.
2. A file comes in pieces, cut anywhere, and nothing of it is kept but its quotes.
3. What is wrong is told twice: with the words of the file, and without any of them, for where those may be a secret.
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
"""Bytes."""
_MS: Final = re.compile(r"[0-9]{12,14}")
_DECIMAL: Final = re.compile(r"(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,12})?")
_WHOLE: Final = re.compile(r"0|[1-9][0-9]{0,14}")
_GROUPED: Final = re.compile(r"[0-9]{1,3}(?:[,'’\u00a0\u202f _][0-9]{3})+(?:[.,][0-9]+)?")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DIGITS: Final = 12
"""After the point of a price, at most."""
_WANTED: Final = "the first line names the columns: time,bid,ask or time,bid,ask,size"
_OPEN: Final = "not CSV: a quote that is open at the end of its line"
_BOM: Final = b"\xef\xbb\xbf"


class Complaint(msgspec.Struct, frozen=True):
    """What is wrong with a file: the first line (from 1; 0: none) that is, and what to do. `plain`: the same without
    any words of the file."""

    line: int
    message: str
    plain: str


class _Wrong(Exception):
    """What is wrong with a line; a `%s` in the words stands for what it says."""

    def __init__(self, words: str, *said: str) -> None:
        self.message = words % said if said else words
        self.plain = words.replace(" %s", "")
        super().__init__(self.message)


def read_csv(content: bytes, *, instrument: str, tick: str, fee: str = "0") -> Tape | Complaint:
    """The tape of a whole CSV file, as CsvReader reads it."""
    reader = CsvReader(instrument=instrument, tick=tick, fee=fee)
    return reader.feed(content) or reader.end()


def to_csv(tape: Tape) -> Iterator[str]:
    """The lines of a CSV file that is read as this tape, where its instrument, tick and fee are given with it."""
    about = tape.about
    yield ",".join(COLUMNS if about.sized else REQUIRED) + "\n"
    for number, (bid, ask) in enumerate(zip(tape.bids, tape.asks, strict=True)):
        at = _EPOCH + timedelta(milliseconds=about.start + number * about.step)
        time = at.replace(tzinfo=None).isoformat(timespec="milliseconds")
        size = f",{tape.sizes[number]}" if about.sized else ""
        yield f"{time}Z,{decimal(bid * about.tick)},{decimal(ask * about.tick)}{size}\n"


def decimal(millionths: int) -> str:
    """Millionths as a decimal, as a price, a tick and a fee are written."""
    return f"{millionths // MICRO}.{millionths % MICRO:06d}"


class CsvReader:
    """Reads one file that comes in pieces, cut anywhere. The first Complaint is the last: nothing of it is a tape.

    `tick`, the smallest step of a price, and `fee` (of one unit) are decimals of the quote currency."""

    def __init__(self, *, instrument: str, tick: str, fee: str = "0") -> None:
        smallest, cost = _millionths(tick), _millionths(fee)
        self._wrong: Complaint | None = None
        if smallest is None or smallest < 1 or cost is None:
            said = "tick and fee are decimals with at most six digits after the point; a tick is above 0"
            self._wrong = Complaint(0, said, said)
        self._instrument = instrument
        self._smallest, self._fee = smallest or 1, cost or 0
        self._tick = self._smallest * 10**_DIGITS // MICRO
        self._rest = b""
        self._lines = 0
        self._at: dict[str, int] | None = None
        self._start = self._step = self._last = 0
        self._bids, self._asks, self._sizes = array("q"), array("q"), array("q")

    def feed(self, data: bytes) -> Complaint | None:
        """The next bytes. A line that does not end in them is looked at with those that follow."""
        data = self._rest + data if self._rest else data
        end = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1
        self._rest = data[end:]
        self._take(data[:end])
        if self._wrong is None and len(self._rest) > MAX_LINE:
            self._complain(self._lines + 1, _Wrong(f"a line of more than {MAX_LINE} bytes"))
        return self._wrong

    def end(self) -> Tape | Complaint:
        """After all of it: its tape, of which the reader keeps nothing."""
        self._take(self._rest)
        if self._wrong is None and self._at is None:
            self._complain(0, _no_column(REQUIRED[0]))
        elif self._wrong is None and len(self._bids) < 2:
            self._complain(self._lines, _Wrong("a tape has two ticks at least"))
        if self._wrong is not None:
            return self._wrong
        sized = "size" in (self._at or ())
        about = About(self._instrument, self._start, self._step, self._smallest, self._fee, sized)
        tape = Tape(about, self._bids, self._asks, self._sizes)
        self._bids, self._asks, self._sizes = array("q"), array("q"), array("q")
        return tape

    def _take(self, block: bytes) -> None:
        """Whole lines."""
        if self._wrong is not None:
            return
        if self._lines == 0:
            block = block.removeprefix(_BOM)
        try:
            text = block.decode()
        except UnicodeDecodeError as error:
            self._take(block[: block.rfind(b"\n", 0, error.start) + 1])  # a line before may be wrong
            self._complain(self._lines + 1, _Wrong("not UTF-8 text"))
            return
        rows = csv.reader(io.StringIO(text, newline=""), strict=True)
        number = self._lines + 1
        try:
            for row in rows:
                if self._lines + rows.line_num != number:
                    raise _Wrong(_OPEN)
                self._row(row)
                number += 1
        except _Wrong as wrong:
            self._complain(number, wrong)
        except csv.Error as error:
            is_open = self._lines + rows.line_num != number or "end of data" in str(error)
            self._complain(number, _Wrong(_OPEN if is_open else f"not CSV: {error}"))
        self._lines = number - 1

    def _complain(self, line: int, wrong: _Wrong) -> None:
        if self._wrong is None:
            self._wrong = Complaint(line, wrong.message, wrong.plain)

    def _row(self, row: list[str]) -> None:
        at = self._at
        if at is None:
            self._at = _columns(row)
            return
        if len(row) != len(at):
            raise _Wrong(f"{len(row)} fields, and the header has {len(at)}")
        ticks = len(self._bids)
        if ticks == MAX_TICKS:
            raise _Wrong(f"a tape has at most {MAX_TICKS} ticks")
        time = _time(row[at["time"]])
        if ticks == 0:
            self._start = time
        elif ticks == 1:
            self._step = _first_step(time - self._last)
        elif time - self._last != self._step:
            raise _Wrong(_uneven(time - self._last, self._step))
        self._last = time
        self._quote(row, at)

    def _quote(self, row: list[str], at: dict[str, int]) -> None:
        bid, ask = self._price(row[at["bid"]], "bid"), self._price(row[at["ask"]], "ask")
        if bid > ask:
            raise _Wrong("a crossed book: the bid %s is above the ask %s", row[at["bid"]], row[at["ask"]])
        self._bids.append(bid)
        self._asks.append(ask)
        if "size" in at:
            text = row[at["size"]]
            if not _WHOLE.fullmatch(text):
                raise _number(text, "size", "a whole number, such as 1000000")
            if int(text) > MAX_SIZE:
                raise _Wrong(f"the size %s is above {MAX_SIZE}", text)
            self._sizes.append(int(text))

    def _price(self, text: str, name: str) -> int:
        if not _DECIMAL.fullmatch(text):
            raise _number(text, name, "a decimal, such as 1.0842")
        whole, _, part = text.partition(".")
        ticks, left = divmod(int(whole + part.ljust(_DIGITS, "0")), self._tick)
        if left:
            raise _Wrong(f"the {name} %s is no whole number of ticks; name the tick that the file has", text)
        if not 0 < ticks <= MAX_PRICE:
            raise _Wrong(f"the {name} %s is not from 1 to {MAX_PRICE} ticks", text)
        return ticks


def _columns(header: list[str]) -> dict[str, int]:
    names = [name.strip().lower() for name in header]
    if len(names) == 1 and any(sign in names[0] for sign in ";\t|"):
        raise _Wrong(f"a bad header: columns are separated by commas; {_WANTED}")
    if missing := [name for name in REQUIRED if name not in names]:
        raise _no_column(missing[0])
    if strange := [name for name in names if name not in COLUMNS]:
        raise _Wrong(f"a bad header: %s is no column of a tape; {_WANTED}", repr(strange[0][:32]))
    if len(set(names)) != len(names):
        raise _Wrong(f"a bad header: a column stands there twice; {_WANTED}")
    return {name: place for place, name in enumerate(names)}


def _no_column(name: str) -> _Wrong:
    return _Wrong(f"a bad header: no column {name}; {_WANTED}")


def _time(text: str) -> int:
    """Unix milliseconds of a number of them, or of an ISO 8601 time with its zone."""
    if _MS.fullmatch(text):
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise _Wrong(
            "the time %s is none: write 2026-03-02T09:30:00Z, or Unix milliseconds", repr(text[:40])
        ) from None
    if time.tzinfo is None:
        said = "has no zone, and an hour may stand there twice when the clocks change: write Z or +01:00"
        raise _Wrong(f"the time %s {said}", text)
    micros = (time - _EPOCH) // _MICROSECOND
    if micros % 1000:
        raise _Wrong("the time %s is finer than a millisecond", text)
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


def _number(text: str, name: str, form: str) -> _Wrong:
    if _GROUPED.fullmatch(text):
        return _Wrong(
            f"the {name} %s has separators between its digits: write it plainly, as {form}", repr(text)
        )
    return _Wrong(f"the {name} %s is not {form}", repr(text[:40]))


def _millionths(text: str) -> int | None:
    if not _DECIMAL.fullmatch(text):
        return None
    value = Fraction(text) * MICRO
    return value.numerator if value.denominator == 1 else None
