"""What `turret check` finds in a store, and a restore before it says done: every call, channel, session and stream.

1. A transcript holds when broker/wire/chain.py says so; nothing is taken from the store's own columns alone.
2. A call's document is what its log says: parties, phase, times, how it ended, and what it is found by.
3. One fault never hides the next call: it is named and the check goes on. Nothing is written.
"""

import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, Final

import msgspec

from broker.actors.calls import ConvRow, Row, log_name, pair_name
from broker.actors.channel import channel_name
from broker.actors.check_arena import check_arena
from broker.actors.check_audit import Beside, check_audit, kept_wires
from broker.actors.check_channels import check_channels
from broker.actors.check_pushes import check_pushes
from broker.actors.check_resources import check_resources
from broker.actors.check_safe import check_safe
from broker.actors.check_tapes import check_tapes
from broker.actors.check_tasks import check_tasks
from broker.actors.check_trials import check_trials
from broker.core.arena import rejected_log, session_log
from broker.core.tapes.catalog import KIND as TAPE
from broker.store.port import Document, Entry, Fault, Snapshot, Step
from broker.wire.call import Phase
from broker.wire.chain import verify_transcript

UNREADABLE: Final = (sqlite3.Error, msgspec.MsgspecError)
PREFIX: Final = log_name("")


class Counts(msgspec.Struct):
    """What was looked at."""

    conversations: int = 0
    envelopes: int = 0
    events: int = 0
    channels: int = 0
    messages: int = 0
    """Of these channels."""
    sessions: int = 0
    """Of the arena."""
    trials: int = 0
    audited: int = 0
    """Rows of the audit log."""
    secrets: int = 0
    unreadable: int = 0
    """Secrets whose key is not beside the store."""


class _Envelope(msgspec.Struct):
    type: str
    sender: str = msgspec.field(name="from")
    to: str
    body: dict[str, Any]


def check_store(snapshot: Snapshot, counts: Counts, beside: Beside | None = None) -> Iterator[Step]:
    """Look through all of a store; yields faults, and how many more rows and events were looked at. `beside`: what
    stands beside a store that is served; None for a backup."""
    parts: tuple[Callable[[], Iterator[Step]], ...] = (
        snapshot.pages,
        snapshot.sums,
        partial(_calls, snapshot, counts),
        partial(_events, snapshot, counts),
        partial(_audited, snapshot, counts, beside),
        partial(check_resources, snapshot),
        partial(check_tasks, snapshot),
        partial(check_pushes, snapshot),
        partial(_secrets, snapshot, counts, beside),
    )
    for part in parts:
        try:
            yield from part()
        except UNREADABLE as error:
            yield Fault("pages", "", f"can't be read: {error}")


def _events(snapshot: Snapshot, counts: Counts) -> Iterator[Step]:
    for step in snapshot.streams():
        counts.events += step if isinstance(step, int) else 0
        yield step


def _audited(snapshot: Snapshot, counts: Counts, beside: Beside | None) -> Iterator[Step]:
    for step in check_audit(snapshot, beside):
        counts.audited += step if isinstance(step, int) else 0
        yield step


def _secrets(snapshot: Snapshot, counts: Counts, beside: Beside | None) -> Iterator[Step]:
    for kept, unreadable, spoilt in check_safe(snapshot, None if beside is None else beside.safe_keys):
        counts.secrets += kept
        counts.unreadable += unreadable
        yield from spoilt
        yield 1


def _calls(snapshot: Snapshot, counts: Counts) -> Iterator[Step]:
    try:
        wires = kept_wires(snapshot)
    except UNREADABLE as error:
        wires = ()
        yield Fault("document", "keys", f"can't be read: {error}")
    logs = set(snapshot.logs())
    seen = 0
    for document in snapshot.documents("conv"):
        log = log_name(document.id)
        logs.discard(log)
        counts.conversations += 1
        try:
            rows = snapshot.rows(log)
            seen += len(rows)
            yield from _call(document, rows, snapshot.marks("conv", document.id), wires)
            yield len(rows)
        except UNREADABLE as error:
            yield Fault("conversation", document.id, f"can't be read: {error}")
    counts.envelopes += seen
    for log, count, faults in check_channels(snapshot):
        logs.discard(log)
        counts.channels += log != ""
        counts.messages += count
        seen += count
        yield from faults
        yield count
    for played, wrong in check_arena(snapshot):
        logs.difference_update(each.name for each in played)
        counts.sessions += played != ()
        count = sum(each.rows for each in played)
        seen += count
        yield from wrong
        yield count
    for tried, wrong in check_trials(snapshot):
        logs.difference_update(each.name for each in tried)
        counts.trials += tried != ()
        count = sum(each.rows for each in tried)
        seen += count
        yield from wrong
        yield count
    for tape, found in check_tapes(snapshot):
        logs.discard(tape.name if tape is not None else "")
        count = 0 if tape is None else tape.rows
        seen += count
        yield from found
        yield count
    for log in sorted(logs):
        rows = snapshot.rows(log)
        seen += len(rows)
        yield Fault("log", log, f"{len(rows)} rows, and no document of a {_kind_of(log)}")
    if (stored := snapshot.count_rows()) != seen:
        yield Fault("log", "", f"{stored} rows are stored, but the logs lead to {seen}")


def _kind_of(log: str) -> str:
    """What a log is a log of."""
    if log.startswith(channel_name("")):
        return "channel"
    if log.startswith(f"{TAPE}:"):
        return "tape"
    return "session" if log.startswith((session_log(""), rejected_log(""))) else "conversation"


def _call(
    document: Document, rows: list[Entry], marks: set[tuple[str, str | int]], wires: tuple[str, ...]
) -> Iterator[Fault]:
    """One call: its transcript, then its document beside it."""
    conv = document.id
    try:
        row = msgspec.json.decode(document.doc, type=ConvRow)
    except msgspec.MsgspecError as error:
        yield Fault("document", conv, f"is no conversation's: {error}")
        return
    if row.dropped:
        if rows:
            yield Fault("document", conv, f"the transcript was removed, but {len(rows)} rows are there")
        return
    verdict = verify_transcript((entry.data for entry in rows), {*wires, row.wire})
    if verdict.broken is not None:
        yield Fault(
            "conversation", conv, f"{verdict.broken.code}: {verdict.broken.message}", verdict.broken.n
        )
        return
    for number, entry in enumerate(rows):
        if entry.n != number:
            yield Fault("conversation", conv, f"stored as row {entry.n}", number)
    if any(later.at < entry.at for entry, later in pairwise(rows)):
        yield Fault("conversation", conv, "accepted_at goes back")
    for name, said, found in _differences(row, verdict.conv, rows, marks):
        yield Fault("document", conv, f"{name} is {said!r}, the log says {found!r}")


def _differences(
    row: ConvRow, conv: str | None, rows: list[Entry], marks: set[tuple[str, str | int]]
) -> Iterator[tuple[str, object, object]]:
    """Where a document says something else than its log: (member, said, found)."""
    call, last = _envelope(rows[0]), _envelope(rows[-1])
    answer = rows[1] if len(rows) > 1 and _envelope(rows[1]).type == "PICKUP" else None
    ended = last.type == "END"
    phase = Phase.ENDED if ended else Phase.OPEN if answer is not None else Phase.RINGING
    found: dict[str, object] = {
        "conv": conv,
        "caller": call.sender,
        "callee": call.to,
        "code_from": call.body.get("code_from"),
        "code_to": call.body.get("code_to"),
        "phase": phase,
        "opened_at": rows[0].at,
        "answered_at": answer.at if answer is not None else None,
        "ended_at": rows[-1].at if ended else None,
        "end": last.body if ended else None,
    }
    for name, value in found.items():
        if getattr(row, name) != value:
            yield name, getattr(row, name), value
    want: set[tuple[str, str | int]] = {("party", call.sender), ("party", call.to)}
    if answer is not None:
        want.add(("pair", pair_name(call.sender, call.to)))
    if ended:
        want.add(("ended", rows[-1].at))
    else:
        want |= {("live", "1"), ("open", call.sender), ("ringing" if answer is None else "open", call.to)}
    timed = {mark for mark in marks if mark[0] == "due"}
    if marks - timed != want or len(timed) != (not ended):
        yield "index", sorted(marks, key=str), sorted(want, key=str)


def _envelope(entry: Entry) -> _Envelope:
    return msgspec.json.decode(msgspec.json.decode(entry.data, type=Row).envelope, type=_Envelope)
