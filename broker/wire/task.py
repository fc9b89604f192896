"""A task as it leaves the broker: what store, doors and client agree on (network.md, A2A).

The states are those of A2A. `submitted` and `working`: the target is to act; `input-required`: the requester is; the
other four are final.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

State = Literal["submitted", "working", "input-required", "completed", "failed", "rejected", "canceled"]
Outcome = Literal["completed", "failed", "rejected"]
OPEN: Final[frozenset[State]] = frozenset({"submitted", "working", "input-required"})
RESTING: Final[frozenset[State]] = frozenset(
    {"input-required", "completed", "failed", "rejected", "canceled"}
)
"""Where a requester that waits has waited enough: it is over, or the requester's turn."""


_PLAIN: Final = [{"type": kind} for kind in ("object", "string", "number", "boolean", "null")]
_ANY: Final = {"anyOf": [*_PLAIN, {"type": "array", "items": {"anyOf": _PLAIN}}]}
"""Any JSON, as every reader of schemas takes it: an array's items are named, and nothing is left open. Arrays of
arrays are taken all the same."""


class Part(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A piece of what is said: exactly one of text, raw (bytes in base64), url and data (any JSON)."""

    text: str | UnsetType = UNSET
    raw: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Annotated[Any, Meta(extra_json_schema=_ANY)] = UNSET
    filename: Annotated[str, Meta(max_length=255)] | UnsetType = UNSET
    media_type: Annotated[str, Meta(max_length=255)] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message of a task. `at`: wall milliseconds."""

    message_id: str
    by: Literal["requester", "target"]
    parts: tuple[Part, ...]
    at: int
    metadata: dict[str, Any] | UnsetType = UNSET


class Artifact(msgspec.Struct, frozen=True):
    """A result of a task."""

    artifact_id: str
    parts: tuple[Part, ...]


class Status(msgspec.Struct, frozen=True, omit_defaults=True):
    """The event `task_status` of a task's stream: how it stands now, and what was said with it."""

    task_id: str
    context_id: str
    state: State
    at: int
    said: Said | None = None


class Result(msgspec.Struct, frozen=True):
    """The event `task_artifact` of a task's stream: something has come of it."""

    task_id: str
    context_id: str
    artifact: Artifact


class Summary(msgspec.Struct, frozen=True):
    """A task without what was said. Times are Unix milliseconds."""

    task_id: str
    context_id: str
    requester_agent_id: str
    requester_name: str
    """What the requester was called when it began it."""
    target_agent_id: str
    state: State
    created_at: int
    updated_at: int
    hops: int
    """0: it begins a topic. More: it was sent in answer to others, at so many hops."""
    events: int
    """What its own stream has told of it so far."""


class View(msgspec.Struct, frozen=True, omit_defaults=True):
    """A task as its two agents see it. `said`: what the target last said of how it stands."""

    task: Summary
    history: tuple[Said, ...] = ()
    said: Said | None = None
    artifacts: tuple[Artifact, ...] = ()
