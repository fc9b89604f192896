"""Where the audit log's signed head is kept apart from its rows (network.md, Audit).

Whoever can change the rows can change what lies among them. A head in another place, that only grows, tells of a tail
that was cut off and of an older store that was put back.
"""

from typing import Protocol


class HeadKeeper(Protocol):
    """One text. What it raises is OSError; cancelling `write` leaves the old text or the new one."""

    async def read(self) -> bytes | None:
        """The text that was written last; None where there is none."""
        ...

    async def write(self, text: bytes) -> None:
        """Have this text in place of the one before, durably: when it returns it outlives a power cut."""
        ...


class MemoryHead:
    """Keeps it as long as the process lives: for tests, and for stores that do no more."""

    def __init__(self) -> None:
        self.text: bytes | None = None

    async def read(self) -> bytes | None:
        return self.text

    async def write(self, text: bytes) -> None:
        self.text = text
