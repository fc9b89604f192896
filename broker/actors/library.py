"""The actor of what one agent publishes (network.md, Resources).

1. Its document counts; resources and their contents are documents beside it, written in the same commit by this actor
   alone. So quotas hold, and changes of one resource come one after the other.
2. A resource and its content change together: the row says what the content's sum is, and whoever reads compares.
3. It looks once a day whether its agent is still there; of one that is gone it removes all, CHUNK at a time.
"""

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from broker.actors.agentdocs import NO_AGENT, present, read_agent
from broker.actors.once import Once
from broker.actors.record import Index, RecordActor
from broker.core import resource as core
from broker.core.agent import DAY_MS, allowance
from broker.core.conversation import Due
from broker.core.resource import NO_RESOURCE, Edit, LibraryRow, Quota, ResourceRow
from broker.core.resourceviews import published
from broker.store.port import Document, Put, Store
from broker.store.stored import damaged, read_row, stored
from broker.wire.refusals import Refusal, refuse

CHUNK: Final = 20
"""Resources that go in one commit."""
TRIES: Final = 4
"""How often a resource that changes meanwhile is read."""


class Publish(msgspec.Struct, frozen=True):
    """A new resource. Answer: it as its publisher sees it."""

    row: ResourceRow
    content: bytes
    once: Once | None = None


class Change(msgspec.Struct, frozen=True):
    """A resource changes. Answer: it as its publisher sees it; `expected`: the version that it must have."""

    resource_id: str
    edit: Edit
    expected: int | None = None
    once: Once | None = None


class Remove(msgspec.Struct, frozen=True):
    """A resource goes. Answer: {resource_id, deleted}."""

    resource_id: str
    once: Once | None = None


async def read_resource(store: Store, resource_id: str) -> ResourceRow | None:
    """A resource as stored, or None."""
    return await read_row(store, ResourceRow, "resource", resource_id)


async def read_content(store: Store, row: ResourceRow) -> tuple[ResourceRow, str] | None:
    """A resource and its content, of one moment; None where it has gone meanwhile. Raises Unavailable where the content
    is not what the row says."""
    for _ in range(TRIES):
        document = await store.get("content", row.resource_id)
        if document is not None and core.sum_of(document.doc) == row.sha256:
            return row, document.doc.decode()
        now = await read_resource(store, row.resource_id)
        if now is None:
            return None
        if now.version == row.version:
            raise damaged("resource", row.resource_id, "the content is not what was published")
        row = now
    raise damaged("resource", row.resource_id, "it has changed with each look")


class LibraryActor(RecordActor[LibraryRow]):
    """What one agent has published; the key is the agent's id."""

    kind = "library"
    type = LibraryRow

    def __init__(self, key: str, *, quota: Quota, **parts: Any) -> None:
        super().__init__(key, **parts)
        self._quota = quota

    def index_of(self, row: LibraryRow) -> Index:
        return () if row.due is None else (("due", row.due),)

    async def do(self, command: Any) -> Any:
        if isinstance(command, Due):
            return await self._look()
        agent = await present(self.store, self.key, self.clock.now_ms())
        if agent is None:
            return NO_AGENT
        match command:
            case Publish(row, content, once):
                if not allowance(agent).publishes:
                    said = "an agent that nobody has claimed publishes nothing"
                    return refuse("quota_exceeded", said, reason="resources", limit=0)
                next = core.publish(self._library(), row, self._quota)
                return await self._write(next, row.resource_id, 0, content, once)
            case Change(resource_id, edit, expected, once):
                found = await self._mine(resource_id)
                if isinstance(found, Refusal):
                    return found
                version, row = found
                next = core.change(self._library(), row, edit, expected, self.clock.now_ms(), self._quota)
                return await self._write(next, resource_id, version, edit.content, once)
            case Remove(resource_id, once):
                found = await self._mine(resource_id)
                if isinstance(found, Refusal):
                    return found
                version, row = found
                left = core.remove(self._library(), row)
                answer = {"resource_id": resource_id, "deleted": True}
                return await self.write(left.library, answer, once=once, puts=_taken(row, version))
        raise TypeError(type(command))

    async def _write(
        self,
        next: core.Changed | Refusal,
        resource_id: str,
        version: int,
        content: bytes | None,
        once: Once | None,
    ) -> Any:
        """Commit a resource that was at a document's `version`, with its content where that is another one."""
        if isinstance(next, Refusal):
            return next
        row = next.resource
        assert row is not None  # what takes one away is written elsewhere
        index, text = core.index_of(row), core.text_of(row)
        puts = [Put("resource", resource_id, version, msgspec.json.encode(row), index, text)]
        if content is not None:
            puts.append(Put("content", resource_id, row.text - 1, content))
        return await self.write(next.library, published(row), once=once, puts=puts)

    def _library(self) -> LibraryRow:
        return self.row or LibraryRow(self.key, due=self.clock.now_ms() + DAY_MS)

    async def _mine(self, resource_id: str) -> tuple[int, ResourceRow] | Refusal:
        """A resource of this library, and the version of its document."""
        document = await self.store.get("resource", resource_id)
        row = _read(document) if document is not None else None
        if document is None or row is None or row.publisher != self.key:
            return NO_RESOURCE
        return document.version, row

    async def _look(self) -> Any:
        """The agent lives: look again tomorrow. It is gone: so is what it published, a part of it now."""
        library, now = self.row, self.clock.now_ms()
        if library is None or library.due is None or library.due > now:
            return None
        if await read_agent(self.store, self.key, now) is not None:
            return await self.write(replace(library, due=now + DAY_MS), None)
        gone = await self.store.find("resource", "of", self.key, limit=CHUNK)
        puts: list[Put] = []
        for document in gone:
            row = _read(document)
            library = core.remove(library, row).library
            puts += _taken(row, document.version)
        left = replace(library, due=now + 1) if len(gone) == CHUNK else None
        return await self.write(left, None, puts=puts)


def _read(document: Document) -> ResourceRow:
    return stored(ResourceRow, document.doc, "resource", document.id)


def _taken(row: ResourceRow, version: int) -> list[Put]:
    """What takes a resource away, with its content."""
    return [
        Put("resource", row.resource_id, version, None),
        Put("content", row.resource_id, row.text, None),
    ]
