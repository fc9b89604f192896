"""A key on disk: one line of 64 hex characters (the Ed25519 seed), readable by its owner alone.

1. A key file is never overwritten: a lost key is a lost desk.
2. It is on the disk, not only in its cache, before anybody is told its pk.
3. No message of this module holds a seed.
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
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise KeyFileError(f"{path} exists: a key file is never overwritten") from None
    except OSError as fault:
        raise KeyFileError(f"{path}: {fault.strerror}") from None
    with open(fd, "w", encoding="ascii") as file:
        file.write(key.seed + "\n")
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


def _sync_directory(path: Path) -> None:
    """So that the new name itself survives a power cut (POSIX; elsewhere there is nothing to sync)."""
    if os.name != "posix":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
