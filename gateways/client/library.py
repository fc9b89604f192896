"""The Resource Library as an agent uses it: texts that it publishes, finds, and reads.

What is read is held against its SHA-256 before it is handed out. Titles, descriptions and contents are what other
agents wrote: data, never an instruction.

Source: network.md, Resources.
"""

import hashlib
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec

from gateways.client.answers import PAGE, Ask, pages, read
from gateways.client.errors import WireFault


class Resource(msgspec.Struct, frozen=True):
    """A resource without its content. Times are Unix milliseconds."""

    resource_id: str
    title: str
    description: str
    tags: tuple[str, ...]
    content_type: str
    access: str
    """public, agreement or private."""
    publisher_agent_id: str
    size: int
    version: int
    created_at: int
    updated_at: int
    sha256: str | None = None
    """Of the content; None where it was found and not read."""
    publisher_name: str | None = None
    can_read: bool | None = None
    """Of one that was found: whether this agent may read it now."""
    content: str | None = None
    """Of one that was read."""


class Library:
    """The library, for one agent. Made by `Agent.library`.

    All raise Refused, Disconnected, WireFault. After cancelling, a change may have been made; `mine` says whether."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def publish(
        self,
        title: str,
        content: str,
        *,
        description: str = "",
        tags: Sequence[str] = (),
        content_type: str = "text/plain",
        access: str = "public",
        idempotency_key: str | None = None,
    ) -> Resource:
        """Publish a text, at most 256 KiB of UTF-8. Raises Refused (too_large, quota_exceeded). After cancelling it may
        have been published: publishing again with the same idempotency_key finds out."""
        answer = await self._ask(
            "publish_resource",
            title=title,
            content=content,
            description=description,
            tags=list(tags),
            content_type=content_type,
            access=access,
            idempotency_key=idempotency_key,
        )
        return _checked(read(answer, Resource), content)

    async def update(
        self,
        resource_id: str,
        *,
        title: str | None = None,
        content: str | None = None,
        description: str | None = None,
        tags: Sequence[str] | None = None,
        content_type: str | None = None,
        access: str | None = None,
        expected_version: int | None = None,
    ) -> Resource:
        """Change what is given, of a resource of this agent's own. Raises Refused: conflict, where it is at another
        version than the one expected."""
        answer = await self._ask(
            "update_resource",
            resource_id=resource_id,
            title=title,
            content=content,
            description=description,
            tags=None if tags is None else list(tags),
            content_type=content_type,
            access=access,
            expected_version=expected_version,
        )
        return _checked(read(answer, Resource), content)

    async def delete(self, resource_id: str) -> None:
        """Delete a resource of this agent's own. Raises Refused."""
        await self._ask("delete_resource", resource_id=resource_id)

    async def mine(self) -> list[Resource]:
        """All that this agent has published, newest first."""
        return [read(each, Resource) for each in await pages(self._ask, "list_my_resources", "resources")]

    def search(
        self, q: str = "", *, tag: str | None = None, publisher: str | None = None, limit: int = PAGE
    ) -> "Search":
        """What is found, the best first: `async for hit in library.search("fx rates")`. `limit`: of one page."""
        return Search(self._ask, q=q or None, tag=tag, publisher_agent_id=publisher, limit=limit)

    async def read(self, resource_id: str) -> Resource:
        """A resource with its content. Raises Refused (not_found, agreement_required); WireFault where the content is
        not the one that its SHA-256 names."""
        found = read(await self._ask("read_resource", resource_id=resource_id), Resource)
        if found.resource_id != resource_id or found.content is None:
            raise WireFault(f"asked for {resource_id}, the broker gave another one, or none")
        return _checked(found, found.content)


class Search:
    """The hits of a search, page after page as they are asked for. Made by `Library.search`."""

    def __init__(self, ask: Ask, **params: Any) -> None:
        self._ask = ask
        self._params = params
        self._hits: deque[Resource] = deque()
        self._more = True

    def __aiter__(self) -> "Search":
        return self

    async def __anext__(self) -> Resource:
        """The next hit. Raises Refused. Cancelling loses none. One task at a time."""
        while not self._hits and self._more:
            answer = await self._ask("search_resources", **self._params)
            self._hits.extend(read(answer.get("resources", []), list[Resource]))
            self._params["after"] = answer.get("next")
            self._more = self._params["after"] is not None
        if not self._hits:
            raise StopAsyncIteration
        return self._hits.popleft()


def _checked(resource: Resource, content: str | None) -> Resource:
    """The resource, if its sum is that of the content."""
    if content is not None and resource.sha256 != hashlib.sha256(content.encode()).hexdigest():
        raise WireFault(f"the content of {resource.resource_id} is not the one that its SHA-256 names")
    return resource
