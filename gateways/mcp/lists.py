"""Lists that may change while the process runs, and who is told: notifications/*/list_changed.

1. Whoever changes a list says so here, after the change; who hears of it reads the list again.
2. Changes that come together may be told of once.

Source: MCP 2025-11-25 and 2026-07-28, Tools, Prompts and Resources (list changed notification).
"""

from collections.abc import Collection
from types import TracebackType
from typing import Final

import trio

KINDS: Final = ("tools", "prompts", "resources")
METHOD: Final = {kind: f"notifications/{kind}/list_changed" for kind in KINDS}
FLAG: Final = {kind: f"{kind}ListChanged" for kind in KINDS}
"""The member of a listen that asks for a kind."""


class Lists:
    """The lists of one surface. No method blocks."""

    def __init__(self, kinds: Collection[str] = KINDS) -> None:
        """`kinds`: those that may change; the others are never told of."""
        self.kinds: Final = tuple(kind for kind in KINDS if kind in kinds)
        self.version = 0
        """Grows with each change: what was printed from the lists before is stale."""
        self._watching: set[ListUpdates] = set()

    def changed(self, kind: str) -> None:
        """A list is another now."""
        if kind not in self.kinds:
            raise LookupError(f"{kind} were said not to change")
        self.version += 1
        for each in self._watching:
            if each.kind == kind:
                each.wake()

    def watch(self, kind: str) -> "ListUpdates":
        """The changes of a list from when it is entered; see surface.Updates."""
        return ListUpdates(self._watching, kind)


class ListUpdates:
    """Changes of one list; made by Lists.watch."""

    def __init__(self, watching: "set[ListUpdates]", kind: str) -> None:
        self.kind: Final = kind
        self._watching = watching
        self._changed = trio.Event()

    def wake(self) -> None:
        """The list has changed."""
        self._changed.set()

    async def changed(self) -> bool:
        """Wait for a change since the last one told of. Always True. Cancelling loses nothing."""
        await self._changed.wait()
        self._changed = trio.Event()
        return True

    async def __aenter__(self) -> "ListUpdates":
        self._watching.add(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watching.discard(self)
