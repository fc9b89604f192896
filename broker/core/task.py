"""One task that an agent gave another: what was said, how it stands, what came of it (network.md, A2A).

1. What is final (completed, failed, rejected, canceled) never changes again.
2. The requester begins it, adds to it and may cancel it; the target says how it stands and answers it. Nobody else
   exists for it: to all others it looks missing.
3. `decide` answers with a Change or a Refusal; what is said of the change on the task's own stream is in it.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from broker.core.loops import Trace
from broker.wire.grammar import MAX_DEPTH, too_deep
from broker.wire.refusals import Refusal, refuse
from broker.wire.task import OPEN, Artifact, Outcome, Part, Result, Said, State, Status, Summary, View

MESSAGE_BYTES: Final = 16_384
TASK_BYTES: Final = 65_536
METADATA_BYTES: Final = 4_096
PARTS: Final = 32
CHANGES: Final = 1_000
"""Of one task; after so many it can only be ended."""
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")


class TaskRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A task as stored (kind "task", id = task_id). Times are wall milliseconds."""

    task_id: str
    context_id: str
    requester: str
    target: str
    state: State
    created_at: int
    updated_at: int
    due: int
    """When nobody has to wait for it any more: an open one fails then, a finished one is forgotten."""
    trace: Trace
    requester_name: str = ""
    history: tuple[Said, ...] = ()
    said: Said | None = None
    """What the target said last of how it stands, where it said something."""
    artifacts: tuple[Artifact, ...] = ()
    size: int = 0
    """Bytes of all that was said and of what came of it, as JSON."""
    revision: int = 1
    """One more with each change."""
    told: int = 0
    """Events of its stream so far: the position of the last one."""


class Begin(msgspec.Struct, frozen=True):
    """A new task; `row` has no history yet."""

    row: TaskRow
    said: Said


class Add(msgspec.Struct, frozen=True):
    """The requester says more; of one that waited for it the target is to act again."""

    said: Said


class Report(msgspec.Struct, frozen=True):
    """The target says how it stands."""

    state: Literal["working", "input-required"]
    said: Said | None


class Finish(msgspec.Struct, frozen=True):
    """The target answers. The parts of one that is completed are its artifact, of another its last message."""

    outcome: Outcome
    said: Said | None
    artifact: Artifact | None


class Cancel(msgspec.Struct, frozen=True):
    """The requester takes it back."""


class Lapse(msgspec.Struct, frozen=True):
    """Its time is over and nobody has answered."""


Command = Begin | Add | Report | Finish | Cancel | Lapse


class Change(msgspec.Struct, frozen=True):
    """What a command makes of a task, and what its stream is told, in order."""

    row: TaskRow
    events: tuple[Status | Result, ...]
    what: str
    """For the two agents' streams: `submitted`, `message`, or the new state."""
    parts: tuple[Part, ...] = ()
    """What was said with it."""


def decide(row: TaskRow | None, command: Command, now_ms: int, keep_ms: int) -> Change | Refusal:
    """What a command makes of a task, or why it may not be. `keep_ms`: how long it is kept after a change."""
    if isinstance(command, Begin):
        return _told(_begin(row, command, now_ms, keep_ms))
    if row is None:
        return missing()
    if row.state not in OPEN:
        return over(row.state)
    if row.revision >= CHANGES and isinstance(command, Add | Report):
        said = f"a task changes at most {CHANGES} times before it is over; begin another one"
        return refuse("quota_exceeded", said, reason="changes", limit=CHANGES)
    change = _DECIDE[type(command)](row, command, now_ms)
    if isinstance(change, Refusal):
        return change
    touched = replace(
        change.row,
        updated_at=max(now_ms, row.updated_at),
        due=now_ms + keep_ms,
        revision=row.revision + 1,
    )
    return _told(replace(change, row=touched))


def missing() -> Refusal:
    """For a task that there is none of, and to all but its two agents for any."""
    return refuse("not_found", "there is no such task of yours")


def over(state: State) -> Refusal:
    """For what comes to a task that has ended."""
    return refuse("bad_request", f"the task is {state}, and nothing changes that any more", state=state)


def judge_parts(parts: Sequence[Part]) -> Refusal | None:
    """Why these can't be what is said: nothing, too many, too much, or a part that is not one thing."""
    if not parts:
        return refuse("bad_request", "a message has at least one part: give text", path="text")
    if len(parts) > PARTS:
        return refuse("too_large", f"a message has at most {PARTS} parts", path="parts", limit=PARTS)
    for at, part in enumerate(parts):
        given = [name for name in ("text", "raw", "url", "data") if getattr(part, name) is not UNSET]
        if len(given) != 1:
            said = "a part has exactly one of text, raw, url and data"
            return refuse("bad_request", said, path=f"parts[{at}]")
        if isinstance(part.raw, str) and not _BASE64.fullmatch(part.raw):
            return refuse("bad_request", "raw is base64", path=f"parts[{at}].raw")
    texts = [(part, _as_json(part)) for part in parts]
    size = sum(_size(part, text) for part, text in texts)
    if size > MESSAGE_BYTES:
        said = f"a message of a task has at most {MESSAGE_BYTES} bytes"
        return refuse("too_large", said, path="parts", limit=MESSAGE_BYTES, size=size)
    deep = next((at for at, (_, text) in enumerate(texts) if text is None or too_deep(text)), None)
    return None if deep is None else _too_deep(f"parts[{deep}]")


def judge_metadata(metadata: dict[str, Any] | None) -> Refusal | None:
    """Why this can't be said beside a message: too much, or nested too deep."""
    text = b"" if metadata is None else _as_json(metadata)
    if text is None or len(text) <= METADATA_BYTES:
        return _too_deep("metadata") if text is None or too_deep(text) else None
    said = f"metadata has at most {METADATA_BYTES} bytes"
    return refuse("too_large", said, path="metadata", limit=METADATA_BYTES, size=len(text))


def answered(row: TaskRow) -> Trace:
    """Where what the target asks back stands in the task's chain (network.md, Loop guard)."""
    return Trace(row.trace.root, row.trace.since, row.trace.hops + 1, row.requester)


def summary(row: TaskRow) -> Summary:
    """A task without what was said."""
    return Summary(
        row.task_id,
        row.context_id,
        row.requester,
        row.requester_name,
        row.target,
        row.state,
        row.created_at,
        row.updated_at,
        row.trace.hops,
        row.told,
    )


def view(row: TaskRow, history: int | None = None) -> View:
    """A task as its two agents see it, with the last `history` messages (None: all)."""
    kept = (
        row.history if history is None else row.history[len(row.history) - min(history, len(row.history)) :]
    )
    return View(summary(row), kept, row.said, row.artifacts)


def _told(change: Change | Refusal) -> Change | Refusal:
    if isinstance(change, Refusal):
        return change
    return replace(change, row=replace(change.row, told=change.row.told + len(change.events)))


def _begin(row: TaskRow | None, command: Begin, now_ms: int, keep_ms: int) -> Change | Refusal:
    if row is not None:
        return refuse("already_exists", "there is a task of this id")
    made = _with(replace(command.row, due=now_ms + keep_ms), command.said)
    if isinstance(made, Refusal):
        return made
    return Change(made, (_status(made, None, now_ms),), "submitted", command.said.parts)


def _add(row: TaskRow, command: Add, now_ms: int) -> Change | Refusal:
    made = _with(row, command.said)
    if isinstance(made, Refusal):
        return made
    state: State = "working" if row.state == "input-required" else row.state
    made = replace(made, state=state, said=None)
    return Change(made, (_status(made, None, now_ms),), "message", command.said.parts)


def _report(row: TaskRow, command: Report, now_ms: int) -> Change | Refusal:
    made = row if command.said is None else _with(row, command.said)
    if isinstance(made, Refusal):
        return made
    made = replace(made, state=command.state, said=command.said)
    if command.state == "input-required":
        made = replace(made, trace=answered(row))
    parts = command.said.parts if command.said is not None else ()
    return Change(made, (_status(made, command.said, now_ms),), command.state, parts)


def _finish(row: TaskRow, command: Finish, now_ms: int) -> Change | Refusal:
    made = row if command.said is None else _with(row, command.said)
    if isinstance(made, Refusal):
        return made
    events: list[Status | Result] = []
    parts = command.said.parts if command.said is not None else ()
    if command.artifact is not None:
        whole = _grown(made, command.artifact)
        if isinstance(whole, Refusal):
            return whole
        made = replace(whole, artifacts=(*made.artifacts, command.artifact))
        events.append(Result(row.task_id, row.context_id, command.artifact))
        parts = command.artifact.parts
    made = replace(made, state=command.outcome, said=command.said)
    events.append(_status(made, command.said, now_ms))
    return Change(made, tuple(events), command.outcome, parts)


def _cancel(row: TaskRow, command: Cancel, now_ms: int) -> Change | Refusal:
    made = replace(row, state="canceled", said=None)
    return Change(made, (_status(made, None, now_ms),), "canceled")


def _lapse(row: TaskRow, command: Lapse, now_ms: int) -> Change | Refusal:
    made = replace(row, state="failed", said=None)
    return Change(made, (_status(made, None, now_ms),), "failed")


_DECIDE: Final[dict[type[Any], Callable[[TaskRow, Any, int], Change | Refusal]]] = {
    Add: _add,
    Report: _report,
    Finish: _finish,
    Cancel: _cancel,
    Lapse: _lapse,
}


def _with(row: TaskRow, said: Said) -> TaskRow | Refusal:
    """With a message more."""
    grown = _grown(row, said)
    return grown if isinstance(grown, Refusal) else replace(grown, history=(*row.history, said))


def _grown(row: TaskRow, more: Said | Artifact) -> TaskRow | Refusal:
    """Larger by this, if there is room."""
    size = row.size + len(msgspec.json.encode(more))
    if size <= TASK_BYTES:
        return replace(row, size=size)
    said = f"a task has at most {TASK_BYTES} bytes in all that is said; begin another one"
    return refuse("too_large", said, path="parts", limit=TASK_BYTES, size=size)


def _size(part: Part, text: bytes | None) -> int:
    """What a part counts for: a text as its bytes, all else as JSON; nothing where it has none."""
    if isinstance(part.text, str) and part.media_type is part.filename is part.metadata is UNSET:
        return len(part.text.encode())
    return 0 if text is None else len(text)


def _as_json(value: Any) -> bytes | None:
    """A value's JSON; None where it is nested too deep for any."""
    try:
        return msgspec.json.encode(value)
    except RecursionError:
        return None


def _too_deep(path: str) -> Refusal:
    """What is deeper than others read is not written: its row could be read by nobody, nor a list with it."""
    return refuse("bad_request", f"nested more than {MAX_DEPTH} deep", path=path, limit=MAX_DEPTH)


def _status(row: TaskRow, said: Said | None, now_ms: int) -> Status:
    return Status(row.task_id, row.context_id, row.state, max(now_ms, row.updated_at), said)
