"""Does a history fit one append-only order per conversation, the same for all readers? Pure: data in, faults out.

The wire promises a log: an operation names its own place (conv, n), so that no search is needed as it is for a
register (Wing and Gong). Each row of the log gets a window of time in which it was written, from what was seen:

    it was not there before    the request that wrote it had begun · a reading that lacks it had begun
    it was there when          it was acknowledged · an event showed it · a reading with it had ended

and orders between rows: n before n + 1, and what comes earlier in any stream. The history fits exactly when these
orders have no cycle and each row, put as early as they allow, is still within its window.
"""

import math
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Final

import msgspec

from tests.history.model import History, Ok, Refused, Seen, Send

Row = tuple[str, int]
"""(conv, n): a place in a log."""

REASONS: Final = {
    "fork": "two signatures at one place of a log, or two events at one position of a stream",
    "lost": "a row that was acknowledged or shown is missing from a later reading",
    "gap": "a log or a stream with a place that nobody ever filled",
    "phantom": "a row that no party sent",
    "refused-but-written": "a row whose every request was refused",
    "doubled": "two requests that both wrote the same row",
    "answer": "two acknowledgements of one row that differ",
    "repeat": "a reader that was given an event again, or out of order",
    "epoch": "a stream that changed its epoch",
    "undelivered": "a row that a party's stream does not hold",
    "order": "readers that saw rows in different orders",
    "time": "a row that was there before it was sent, or missing after it was there",
}
"""Why a history may not fit."""


class Fault(msgspec.Struct, frozen=True):
    """One way in which a history does not fit."""

    reason: str
    what: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.what}"


def check(history: History) -> list[Fault]:
    """All faults that are to be seen; an empty list: the history fits."""
    faults = [*_streams(history.seen)]
    rows, forks = _log(history)
    faults += forks
    faults += _sent(history, rows)
    faults += _missing(history, rows)
    if history.complete:
        faults += _delivered(history, rows)
    if not faults:  # windows mean something only when each place has one row
        faults += _in_time(history, rows)
    return faults


def _streams(seen: list[Seen]) -> Iterator[Fault]:
    """Each reader is given 1, 2, 3 …; all readers of a stream the same."""
    last: dict[tuple[str, str], int] = {}
    events: dict[tuple[str, int], tuple[str, int, str]] = {}
    epochs: dict[str, str] = {}
    for each in seen:
        where = f"{each.stream} at {each.position}, read by {each.reader}"
        before = last.get((each.stream, each.reader), 0)
        if each.position != before + 1:
            yield Fault("gap" if each.position > before else "repeat", f"{where}, after {before}")
        last[each.stream, each.reader] = max(before, each.position)
        event = (each.conv, each.n, each.sig)
        if events.setdefault((each.stream, each.position), event) != event:
            yield Fault("fork", where)
        if epochs.setdefault(each.stream, each.epoch) != each.epoch:
            yield Fault("epoch", where)
    places: set[tuple[str, str, int]] = set()
    for (stream, position), (conv, n, _) in events.items():
        if (stream, conv, n) in places:
            yield Fault("repeat", f"{stream} at {position}: {conv}/{n} again")
        places.add((stream, conv, n))


def _log(history: History) -> tuple[dict[Row, str], list[Fault]]:
    """The rows that certainly exist, and the places where there is more than one."""
    rows: dict[Row, str] = {}
    forks: dict[Row, Fault] = {}
    for (conv, n), sig, where in _evidence(history):
        if rows.setdefault((conv, n), sig) != sig:
            forks[conv, n] = Fault("fork", f"{conv}/{n}, {where}")
    return rows, list(forks.values())


def _evidence(history: History) -> Iterator[tuple[Row, str, str]]:
    for send in history.sends:
        if isinstance(send.answer, Ok):
            yield (send.conv, send.n), send.sig, "acknowledged"
    for seen in history.seen:
        yield (seen.conv, seen.n), seen.sig, f"an event to {seen.stream}"
    for reading in history.readings:
        for n, sig in enumerate(reading.sigs):
            yield (reading.conv, n), sig, "in a reading"


def _sent(history: History, rows: dict[Row, str]) -> Iterator[Fault]:
    """Each row was sent by somebody, written once, and acknowledged alike."""
    of: dict[Row, list[Send]] = {}
    for send in history.sends:
        if rows.get((send.conv, send.n)) == send.sig:
            of.setdefault((send.conv, send.n), []).append(send)
    for conv, n in rows:
        sends = of.get((conv, n), [])
        acks = [send.answer for send in sends if isinstance(send.answer, Ok)]
        if not sends:
            yield Fault("phantom", f"{conv}/{n}")
        elif not any(_may_have_written(send) for send in sends):
            yield Fault("refused-but-written", f"{conv}/{n}")
        if sum(not ack.replayed for ack in acks) > 1:
            yield Fault("doubled", f"{conv}/{n}")
        if len({(ack.chain, ack.accepted_at) for ack in acks}) > 1:
            yield Fault("answer", f"{conv}/{n}")


def _may_have_written(send: Send) -> bool:
    if isinstance(send.answer, Ok):
        return not send.answer.replayed
    return not (isinstance(send.answer, Refused) and send.answer.certain)


def _missing(history: History, rows: dict[Row, str]) -> Iterator[Fault]:
    """No place of a log is empty below one that is filled, and the last reading of a complete history holds all."""
    filled: dict[str, set[int]] = {}
    for conv, n in rows:
        filled.setdefault(conv, set()).add(n)
    for conv, places in filled.items():
        for empty in sorted(set(range(max(places))) - places):
            yield Fault("gap", f"{conv}/{empty}")
        readings = [reading for reading in history.readings if reading.conv == conv]
        if history.complete and readings:
            last = max(readings, key=lambda reading: reading.began)
            if len(last.sigs) <= max(places):
                yield Fault("lost", f"{conv}/{len(last.sigs)} to {max(places)}")


def _delivered(history: History, rows: dict[Row, str]) -> Iterator[Fault]:
    """At the end each party's stream holds each row of its conversations."""
    parties: dict[str, set[str]] = {}
    for send in history.sends:
        if (send.conv, send.n) in rows:
            parties.setdefault(send.conv, set()).update((send.sender, send.to))
    held = {(seen.stream, seen.conv, seen.n) for seen in history.seen}
    for conv, n in rows:
        for party in sorted(parties.get(conv, ())):
            if (party, conv, n) not in held:
                yield Fault("undelivered", f"{conv}/{n} to {party}")


# ── time ──


class _Window(msgspec.Struct):
    """When a row was written: after all of `after`, before all of `before`."""

    after: float = -math.inf
    before: float = math.inf


def _in_time(history: History, rows: dict[Row, str]) -> Iterator[Fault]:
    """The rows, put as early as their orders allow, are within their windows."""
    windows = _windows(history, rows)
    earlier = _earlier(history, rows)
    try:
        order = list(TopologicalSorter(earlier).static_order())
    except CycleError as error:
        yield Fault("order", " before ".join(f"{conv}/{n}" for conv, n in error.args[1]))
        return
    for reading in history.readings:
        absent = windows.get((reading.conv, len(reading.sigs)))
        if absent is not None and absent.before < reading.began:
            yield Fault("lost", f"{reading.conv}/{len(reading.sigs)} from a reading after it was there")
            return
    at: dict[Row, float] = {}
    for row in order:
        window = windows[row]
        at[row] = max([window.after, *(at[before] for before in earlier[row])])
        if at[row] > window.before:
            yield Fault("time", f"{row[0]}/{row[1]}: not before {at[row]:.6f}, not after {window.before:.6f}")
            return


def _earlier(history: History, rows: dict[Row, str]) -> dict[Row, set[Row]]:
    """What certainly comes before each row: the one before it in its log, and in each stream."""
    earlier: dict[Row, set[Row]] = {}
    for conv, n in rows:
        earlier[conv, n] = {(conv, n - 1)} if n else set()
    streams: dict[str, dict[int, Row]] = {}
    for seen in history.seen:
        streams.setdefault(seen.stream, {})[seen.position] = (seen.conv, seen.n)
    for positions in streams.values():
        for position, row in positions.items():
            if position > 1:
                earlier[row].add(positions[position - 1])
    return earlier


def _windows(history: History, rows: dict[Row, str]) -> dict[Row, _Window]:
    began: dict[Row, float] = {}
    for send in history.sends:
        row = (send.conv, send.n)
        if rows.get(row) == send.sig and _may_have_written(send):
            began[row] = min(began.get(row, math.inf), send.began)
    windows = {row: _Window(began[row]) for row in rows}
    for send in history.sends:
        if isinstance(send.answer, Ok) and send.ended is not None:
            window = windows[send.conv, send.n]
            window.before = min(window.before, send.ended)
            if not send.answer.replayed:  # this very request wrote it
                window.after = max(window.after, send.began)
    for seen in history.seen:
        window = windows[seen.conv, seen.n]
        window.before = min(window.before, seen.at)
    for reading in history.readings:
        for n in range(len(reading.sigs)):
            window = windows[reading.conv, n]
            window.before = min(window.before, reading.ended)
        absent = windows.get((reading.conv, len(reading.sigs)))
        if absent is not None:
            absent.after = max(absent.after, reading.began)
    return windows
