"""What the player of a session can say of its artifact: the commit that stood before, and what came of each action.

Everybody can deal again and replay (`turret arena verify`). Which commit was shown before the client seed was chosen,
and which answers came while it was played, only the player knows: that is held against the artifact here. It uses
nothing of the broker's code: the commit is made again by the page that specifies it.

Source: docs/reference/arena.md, Chance and Artifacts.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from gateways.client.answers import read
from gateways.client.errors import WireFault

KIND: Final = "turret.arena.session"
_TAG: Final = b"turret/arena/commit/1\0"


class Chosen(NamedTuple):
    """What stood fast before a session was opened: the commit that was shown, and then our client seed."""

    commit: str
    client_seed: str


class Answered(NamedTuple):
    """An action of ours, and what the answer said of it."""

    action: Mapping[str, Any]
    facts: Any
    change: int


class Ending(msgspec.Struct, frozen=True):
    """Why a session is over, and its secret where that is shown."""

    over: str
    seed: str | None = None
    salt: str | None = None


class Played(msgspec.Struct, frozen=True):
    """What an artifact is to say of a session, as the player saw it."""

    agent_id: str
    game: str
    game_version: int
    mode: str
    games: int
    commit: str
    client_seed: str
    config: dict[str, Any]


class Proof(msgspec.Struct, frozen=True):
    """An artifact that says what the player saw. `content`: its bytes, whose SHA-256 is `ref`."""

    ref: str
    content: bytes
    foreseen: bool
    """Whether the commit was seen before the session was opened: not where another process opened it."""
    revealed: bool
    """Whether seed and salt are shown, and make the commit: then `turret arena verify` can deal again."""

    def save(self, path: Path | str) -> None:
        """Write the bytes to a file, for `turret arena verify`. Raises OSError."""
        Path(path).write_bytes(self.content)


def commit_of(seed: str, salt: str, agent_id: str, games: int) -> str:
    """The commit that seed and salt (hex) make for an agent's session of this number."""
    secret = bytes.fromhex(seed) + bytes.fromhex(salt)
    return hashlib.sha256(_TAG + secret + agent_id.encode() + games.to_bytes(8, "big")).hexdigest()


def check(
    ref: str,
    content: bytes,
    played: Played,
    ending: Ending,
    chosen: Chosen | None,
    answered: Mapping[int, Answered],
) -> Proof:
    """Hold an artifact against what the player saw. `answered`: by the version that an action made.

    Raises WireFault where they differ, or the artifact is none.
    """
    if hashlib.sha256(content).hexdigest() != ref:
        raise WireFault(f"artifact {ref}: its bytes have another hash")
    artifact = read(_json(content), _Artifact)
    opened, *rest = artifact.events
    if artifact.kind != KIND or artifact.format != 1 or opened.get("type") != "opened":
        raise WireFault(f"artifact {ref}: this is no session that is over")
    if read(opened, Played) != played:
        raise WireFault(f"artifact {ref}: it is not the session that was opened")
    if chosen is not None and chosen != (played.commit, played.client_seed):
        raise WireFault(f"artifact {ref}: its commit or client seed is not the one from before")
    if read(rest[-1].get("ended"), Ending) != ending:
        raise WireFault(f"artifact {ref}: it ended in another way")
    for version, said in answered.items():
        if version > len(rest) or not _is(rest[version - 1], said):
            raise WireFault(f"artifact {ref}: action {version} is not the one that was answered")
    if artifact.result.get("net") != sum(map(_change, rest)):
        raise WireFault(f"artifact {ref}: its result is not the sum of its actions")
    revealed = ending.seed is not None and ending.salt is not None
    if revealed and _committed(ending, played) != played.commit:
        raise WireFault(f"artifact {ref}: seed and salt are not those that the commit stood for")
    return Proof(ref, content, chosen is not None, revealed)


class _Artifact(msgspec.Struct):
    kind: str
    format: int
    events: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=2)]
    result: dict[str, Any]


def _committed(ending: Ending, played: Played) -> str | None:
    try:
        return commit_of(ending.seed or "", ending.salt or "", played.agent_id, played.games)
    except (ValueError, OverflowError):
        return None


def _is(event: dict[str, Any], said: Answered) -> bool:
    """Whether an event is what was answered; defaults that an action left out stand in the event."""
    action = event.get("action")
    if not isinstance(action, dict) or action != {**action, **said.action}:
        return False
    return (event.get("facts"), _change(event)) == (said.facts, said.change)


def _change(event: dict[str, Any]) -> int:
    return sum(points for account, points in read(event.get("entries", []), _Entries) if account == "player")


_Entries = list[tuple[str, int]]


def _json(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None
