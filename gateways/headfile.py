"""The audit log's head on disk: DATA/audit.head, beside the store and not in it (network.md, Audit).

One line of JSON, signed by the wire's key: no secret, and a copy elsewhere does good. It is written aside, synced and
renamed, so that at any moment there is the old one or the new one.
"""

import os
import stat
from functools import partial
from pathlib import Path
from typing import Final

import trio

from gateways.keyfile import write_private

FILE: Final = "audit.head"
LARGEST: Final = 4096
"""Bytes that are read of it: it has some 400."""


class HeadFile:
    """What open_broker is given to keep the head. Both methods raise OSError; what is under way is finished whoever
    leaves, and then the file is the old one or the new one."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE

    async def read(self) -> bytes | None:
        """The file's text, or None where there is no file."""
        return await trio.to_thread.run_sync(read_head_file, self._path.parent)

    async def write(self, text: bytes) -> None:
        """Put this text in its place, durably: some milliseconds."""
        await trio.to_thread.run_sync(partial(write_private, self._path, text))


def read_head_file(directory: Path) -> bytes | None:
    """The text of a directory's head file; None where there is none, and nothing of what is no file (a pipe would be
    waited for without end). Raises OSError."""
    try:
        number = os.open(directory / FILE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        return b""
    with os.fdopen(number, "rb") as file:
        return file.read(LARGEST)
