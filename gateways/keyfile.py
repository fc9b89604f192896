"""A key on disk: one line of 64 hex characters (the Ed25519 seed), readable by its owner alone.

1. A key file is never overwritten: a lost key is a lost desk.
2. It is on the disk, not only in its cache, before anybody is told its pk.
3. No message of this module holds a seed.
4. Whatever holds a secret or a transcript is made here: for its owner alone, whatever the umask, and never through
   a file or a link that somebody put there before.
"""

import os
import re
import stat
from pathlib import Path
from typing import Final

from broker.wire.keys import SigningKey

_SEED: Final = re.compile(r"[0-9a-f]{64}")


class KeyFileError(Exception):
    """A key file that can't be read or written; the message is one line for a person."""


def save_key(path: Path, key: SigningKey) -> None:
    """Write a new key file with mode 0600 and sync it and its directory. Raises KeyFileError."""
    save_secret(path, key.seed, "a key file")


def save_secret(path: Path, line: str, what: str) -> None:
    """Write one line of ASCII into a new file as `save_key` does, never over an old one. Raises KeyFileError."""
    try:
        fd = _create(path)
    except FileExistsError:
        raise KeyFileError(f"{path} exists: {what} is never overwritten") from None
    except OSError as fault:
        raise KeyFileError(f"{path}: {fault.strerror}") from None
    with open(fd, "w", encoding="ascii") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())
    _sync_directory(path.parent)


def load_key(path: Path) -> SigningKey:
    """Read a key file. Raises KeyFileError when it is missing, open to others, or not a seed."""
    try:
        with open(path, "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            text = file.read(256).decode("ascii", "replace").strip()
    except OSError as fault:
        raise KeyFileError(f"{path}: {fault.strerror}") from None
    if os.name == "posix" and mode & 0o077:
        raise KeyFileError(f"{path} can be read by others (mode {mode:04o}): chmod 600 {path}")
    if not _SEED.fullmatch(text):
        raise KeyFileError(f"{path} is not a key file: expected 64 lowercase hex characters")
    return SigningKey.from_seed(text)


def write_private(path: Path, data: bytes) -> None:
    """Write a file that its owner alone can read, whole or not at all: aside, synced, then renamed. Raises OSError."""
    aside = path.with_name(f"{path.name}.new")
    aside.unlink(missing_ok=True)  # with its mode, its owner, or what it led to
    with open(_create(aside), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
    _sync_directory(path.parent)


def is_open_to_all(path: Path) -> bool:
    """Whether everybody on this machine can read a file. False where it can't be told."""
    try:
        return bool(path.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def _create(path: Path) -> int:
    """A new file of mode 0600, open for writing. Raises FileExistsError also for a link that leads nowhere."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _sync_directory(path: Path) -> None:
    """So that the new name itself survives a power cut (POSIX; elsewhere there is nothing to sync)."""
    if os.name != "posix":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
