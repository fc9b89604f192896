"""What `turret check` finds in trials: each is what its calls come to on its tape.

1. The document is what the events add up to, and its place is where the calls lead, run again on the tape. Of a trial
   whose tape is not there the place is taken as it is.
2. What is over has its artifact, and that is these calls and fills.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from broker.actors.check_arena import Log, check_document, check_rejected, kind_of
from broker.actors.latest import Latest
from broker.actors.tapes import made
from broker.core.arena import rejected_log, session_log
from broker.core.artifact import KIND, ref_of
from broker.core.tapes import catalog
from broker.core.tapes.tape import Tape
from broker.core.trials import session as core
from broker.core.trials.script import KIND as TRIAL
from broker.core.trials.script import Entry as Tried
from broker.core.trials.script import replay
from broker.core.trials.session import Kept, TrialRow
from broker.store.port import Document, Entry, Fault, Snapshot

LOGS: Final = (session_log, rejected_log)
TAPES: Final = 4
"""Tapes that are kept meanwhile."""
_EVENT: Final[Any] = core.Event


def check_trials(snapshot: Snapshot) -> Iterator[tuple[tuple[Log, ...], list[Fault]]]:
    """The logs of each trial, and what is wrong with it; at the end what is wrong with artifacts of trials. Raises what
    reading raises."""
    refs, tapes = set[str](), _Tapes(snapshot)
    for document in snapshot.documents("trial"):
        logs = [Log(name(document.id), len(snapshot.rows(name(document.id)))) for name in LOGS]
        rejected = check_rejected(document.id, snapshot.rows(rejected_log(document.id)))
        yield tuple(logs), [*_trial(snapshot, document, refs, tapes), *rejected]
    yield (), [*_artifacts(snapshot, refs)]


class _Tapes:
    """Tapes as trials need them: many have the same."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._known: Latest[str, Tape | None] = Latest(TAPES)

    def of(self, entry: Tried) -> Tape | None:
        """The tape of an entry; None: it is not there."""
        if entry.ref not in self._known:
            self._known[entry.ref] = self._imported(entry.ref) if entry.kind is None else made(entry)
        return self._known[entry.ref]

    def _imported(self, ref: str) -> Tape | None:
        """What is wrong with an imported tape is said of the tape."""
        document = self._snapshot.document(catalog.KIND, ref)
        row = None if document is None else msgspec.json.decode(document.doc, type=catalog.TapeRow)
        if row is None or row.state != "here":
            return None
        tape = catalog.whole([each.data for each in self._snapshot.rows(row.log)], ref)
        return None if isinstance(tape, str) else tape


def _trial(snapshot: Snapshot, document: Document, refs: set[str], tapes: _Tapes) -> Iterator[Fault]:
    id, rows = document.id, snapshot.rows(session_log(document.id))
    try:
        row = msgspec.json.decode(document.doc, type=TrialRow)
    except msgspec.MsgspecError as error:
        yield Fault("document", id, f"is no trial's: {error}")
        return
    if row.ref is not None:
        refs.add(row.ref)
    try:
        kept = core.fold(msgspec.json.decode(each.data, type=_EVENT) for each in rows)
    except ValueError as error:
        yield Fault("session", id, f"no trial's events: {error}")
        return
    if [each.n for each in rows] != list(range(len(rows))):
        yield Fault("session", id, "its events are not numbered from 0 on")
    found = _by_events(row, kept, rows)
    tape = tapes.of(kept.opened.entry)
    if tape is not None:
        try:
            ran = replay(tape, kept.calls)
        except ValueError as error:
            yield Fault("session", id, f"its calls can't be done on its tape: {error}")
            return
        if ran.fills != kept.fills:
            yield Fault("session", id, "its fills are not those that its calls come to")
        marks = [(tick, ran.curve[tick]) for tick, _ in kept.marks if tick < len(ran.curve)]
        if marks != kept.marks:
            yield Fault("session", id, "its marks are not those that its calls come to")
        found = replace(found, place=ran.trial.place, pnl=ran.curve[-1] if ran.curve else 0)
    yield from check_document(snapshot, "trial", id, row, found, core.index_of(row))
    if kept.over is not None and row.ref is not None:
        content = core.artifact(kept, core.result(found))
        published = snapshot.document(KIND, row.ref)
        if ref_of(content) != row.ref or published is None or published.doc != content:
            yield Fault("session", id, f"its artifact {row.ref} is not there as it was published")


def _by_events(row: TrialRow, kept: Kept, rows: list[Entry]) -> TrialRow:
    """A trial's document as its events have it; the rest as it says."""
    return replace(
        row,
        agent_id=kept.opened.agent_id,
        entry=kept.opened.entry,
        opened_at=rows[0].at,
        version=kept.version,
        events=len(rows),
        fills=len(kept.fills),
        plan=kept.plan,
        operation=kept.operation,
        over=kept.over,
    )


def _artifacts(snapshot: Snapshot, refs: set[str]) -> Iterator[Fault]:
    for document in snapshot.documents(KIND):
        if document.id not in refs and kind_of(document.doc) == TRIAL:
            yield Fault("document", document.id, "is the artifact of a trial that is not there")
