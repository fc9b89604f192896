"""Tasks in the form of A2A 1.0: ProtoJSON out, ProtoJSON in (network.md, A2A).

1. Out: camelCase names, enums by their names, times as RFC 3339 with milliseconds in UTC.
2. In: names in camelCase or as the protocol's definition has them, null as if it were not there, unknown names passed
   over. What stands in `metadata` and `data` is the sender's and is left as it is.

Source: A2A specification 1.0, sections 4 and 5.5 to 5.7 (specification/a2a.proto); the ProtoJSON format.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from broker.wire.task import Artifact, Part, Result, Said, State, Status, View

T = TypeVar("T")
VERSION: Final = "1.0"
STATES: Final[dict[State, str]] = {
    "submitted": "TASK_STATE_SUBMITTED",
    "working": "TASK_STATE_WORKING",
    "input-required": "TASK_STATE_INPUT_REQUIRED",
    "completed": "TASK_STATE_COMPLETED",
    "failed": "TASK_STATE_FAILED",
    "rejected": "TASK_STATE_REJECTED",
    "canceled": "TASK_STATE_CANCELED",
}
_OPAQUE: Final = frozenset({"metadata", "data"})
_SNAKE: Final = re.compile(r"_([a-z0-9])")


class PartIn(msgspec.Struct, rename="camel", frozen=True):
    """A part as a client sends it. `data` may be null."""

    text: str | UnsetType = UNSET
    raw: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Any = UNSET
    filename: str | UnsetType = UNSET
    media_type: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class MessageIn(msgspec.Struct, rename="camel", frozen=True):
    """A message as a client sends it."""

    message_id: str
    role: Literal["ROLE_USER"]
    parts: list[PartIn]
    context_id: str = ""
    task_id: str = ""
    metadata: dict[str, Any] | None = None


class Authentication(msgspec.Struct, rename="camel", frozen=True):
    """How who is pushed to wants us to show who we are: `Authorization: <scheme> <credentials>`."""

    scheme: str
    credentials: str = ""


class PushConfig(msgspec.Struct, rename="camel", frozen=True):
    """Where what becomes of a task is pushed to."""

    url: str
    id: str = ""
    task_id: str = ""
    token: str = ""
    authentication: Authentication | None = None


class Configuration(msgspec.Struct, rename="camel", frozen=True):
    """What a client wishes of how its message is answered."""

    task_push_notification_config: PushConfig | None = None
    history_length: int | None = None
    return_immediately: bool = False
    accepted_output_modes: list[str] = []


class SendMessage(msgspec.Struct, rename="camel", frozen=True):
    """Params of SendMessage and SendStreamingMessage."""

    message: MessageIn
    configuration: Configuration = Configuration()
    metadata: dict[str, Any] | None = None


class TaskId(msgspec.Struct, rename="camel", frozen=True):
    """Params of GetTask, CancelTask, SubscribeToTask."""

    id: str
    history_length: int | None = None


class ListTasks(msgspec.Struct, rename="camel", frozen=True):
    """Params of ListTasks."""

    context_id: str = ""
    status: str = ""
    page_size: int | None = None
    page_token: str = ""
    history_length: int | None = None
    status_timestamp_after: str = ""
    include_artifacts: bool = False


class PushConfigId(msgspec.Struct, rename="camel", frozen=True):
    """Params that name a push configuration, or (without `id`) all of a task."""

    task_id: str
    id: str = ""


def read(params: bytes, type: type[T]) -> T:
    """The params of a method. Raises msgspec.ValidationError, which says where, and ValueError."""
    return msgspec.convert(_plain(msgspec.json.decode(params)), type)


def parts_of(message: MessageIn) -> list[Part]:
    """A message's parts, as they are kept."""
    return [
        Part(each.text, each.raw, each.url, each.data, each.filename, each.media_type, each.metadata)
        for each in message.parts
    ]


def task(view: View, *, artifacts: bool = True) -> dict[str, Any]:
    """A Task. Without `artifacts` the member is left out."""
    its = view.task
    made: dict[str, Any] = {
        "id": its.task_id,
        "contextId": its.context_id,
        "status": _status(its.task_id, its.context_id, its.state, its.updated_at, view.said),
    }
    if artifacts:
        made["artifacts"] = [_artifact(each) for each in view.artifacts]
    if view.history:
        made["history"] = [_message(its.task_id, its.context_id, each) for each in view.history]
    return made


def event(kind: str, text: bytes) -> dict[str, Any] | None:
    """A StreamResponse of an event of a task's stream, given as JSON; None for one of another kind."""
    if kind == "task_status":
        status = msgspec.json.decode(text, type=Status)
        its = _status(status.task_id, status.context_id, status.state, status.at, status.said)
        return {"statusUpdate": {"taskId": status.task_id, "contextId": status.context_id, "status": its}}
    if kind == "task_artifact":
        made = msgspec.json.decode(text, type=Result)
        return {
            "artifactUpdate": {
                "taskId": made.task_id,
                "contextId": made.context_id,
                "artifact": _artifact(made.artifact),
                "lastChunk": True,
            }
        }
    return None


def state_of(name: str) -> State | None:
    """A state by its name in A2A."""
    return next((state for state, its in STATES.items() if its == name), None)


def time_of(text: str) -> int:
    """Unix milliseconds of a time. Raises ValueError."""
    if not text.endswith("Z"):
        raise ValueError("a time is in UTC, with a Z")
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def time_text(at: int) -> str:
    """A time of Unix milliseconds."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _status(task_id: str, context_id: str, state: State, at: int, said: Said | None) -> dict[str, Any]:
    made: dict[str, Any] = {"state": STATES[state], "timestamp": time_text(at)}
    if said is not None:
        made["message"] = _message(task_id, context_id, said)
    return made


def _message(task_id: str, context_id: str, said: Said) -> dict[str, Any]:
    made: dict[str, Any] = {
        "messageId": said.message_id,
        "contextId": context_id,
        "taskId": task_id,
        "role": "ROLE_USER" if said.by == "requester" else "ROLE_AGENT",
        "parts": _parts(said.parts),
    }
    if said.metadata is not UNSET:
        made["metadata"] = said.metadata
    return made


def _artifact(artifact: Artifact) -> dict[str, Any]:
    return {"artifactId": artifact.artifact_id, "parts": _parts(artifact.parts)}


def _parts(parts: Sequence[Part]) -> list[dict[str, Any]]:
    return [
        {
            "mediaType" if name == "media_type" else name: value
            for name in part.__struct_fields__
            if (value := getattr(part, name)) is not UNSET
        }
        for part in parts
    ]


def _plain(value: Any, *, opaque: bool = False) -> Any:
    """The names in camelCase, and without what is null."""
    if opaque:
        return value
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {
        _SNAKE.sub(lambda found: found[1].upper(), name): _plain(each, opaque=name in _OPAQUE)
        for name, each in value.items()
        if each is not None or name == "data"
    }
