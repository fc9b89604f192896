"""The keys of secrets on disk: DATA/secrets.key, or where the operator says; one line a key, the present one
last (docs/reference/trial.md, Secrets).

1. Mode 0600. The one in the data directory is made at the first start; one that was named must be there: a disk that is
   not mounted is no reason for another key.
2. It is on the disk before anything is sealed with it, so that a kill in between loses nothing.
3. What is sealed is sealed with a key that its file still has: whoever changed the file of a running broker would else
   have it seal what the next start can't open.
4. Where it is lost the broker starts, with another key: what the old one sealed is listed, and used no more until the
   old line is put back.
5. No message holds a key.
"""

import logging
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from broker.store.port import Store
from broker.wire.safekeys import KEY_SIZE, SafeKeys
from gateways.keyfile import write_private

log = logging.getLogger("turret")
FILE: Final = "secrets.key"


class SafeKeyError(Exception):
    """The keys can't be used; the message is one line for a person."""


class Line(msgspec.Struct, frozen=True):
    """A key, in hex, and since when it is there (wall milliseconds)."""

    key: str
    since: int


async def open_safe_keys(directory: Path, named: str | None, store: Store, now_ms: int) -> SafeKeys:
    """The keys of a broker, made where there are none and none were named. Raises SafeKeyError: a named file is
    missing, or one can be read by others or holds no keys; and what the store raises."""
    path = key_path(directory, named)
    if named is None and not (path.exists() or path.is_symlink()):  # a link says where it is, like a name
        if await store.find("safe", "all", "1", limit=1):
            log.warning("%s is missing: what agents keep is unreadable until its copy is put back", path)
        write_lines(path, [new_line(now_ms)])
    lines = read_lines(path)
    return keys_of(lines, lambda: is_kept(path, lines[-1]))


def is_kept(path: Path, line: Line) -> bool:
    """Whether a file still has this key."""
    try:
        return line.key in {each.key for each in read_lines(path)}
    except SafeKeyError:
        return False


def key_path(directory: Path, named: str | None) -> Path:
    """Where the keys are; of a link, where it leads: what is written there must not take its place."""
    path = directory / FILE if named is None else Path(named)
    return path.resolve() if path.is_symlink() and path.exists() else path


def new_line(now_ms: int) -> Line:
    """A fresh key."""
    return Line(secrets.token_bytes(KEY_SIZE).hex(), now_ms)


def keys_of(lines: list[Line], is_kept: Callable[[], bool] | None = None) -> SafeKeys:
    """The keys that lines hold, one at least. `is_kept`: as SafeKeys has it."""
    return SafeKeys([bytes.fromhex(line.key) for line in lines], is_kept)


def read_lines(path: Path) -> list[Line]:
    """The lines of a file, one at least. Raises SafeKeyError."""
    try:
        if path.stat().st_mode & 0o077:
            raise SafeKeyError(f"{path} is open to others: chmod 600 {path}")
        lines = [
            msgspec.json.decode(line, type=Line) for line in path.read_bytes().splitlines() if line.strip()
        ]
        sizes = {len(bytes.fromhex(line.key)) for line in lines}
    except OSError as error:
        raise SafeKeyError(f"{path}: {error.strerror}") from None
    except ValueError:  # msgspec's are ValueErrors
        sizes = set()
    if sizes != {KEY_SIZE}:
        raise SafeKeyError(f"{path} holds no keys of secrets: a line is none, or there is none")
    return lines


def write_lines(path: Path, lines: list[Line]) -> None:
    """Put these lines in the file's place, durably. Raises SafeKeyError."""
    try:
        write_private(path, b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    except OSError as error:
        raise SafeKeyError(f"{path}: {error.strerror}") from None
