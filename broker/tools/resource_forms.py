"""The params and the results of the Resource Library's tools (network.md, Resources)."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from broker.actors.agentdocs import present
from broker.actors.pairdocs import permission
from broker.core import resource as core
from broker.core.agent import CAPABILITY, AgentRow
from broker.core.resource import (
    CONTENT_TYPE,
    MAX_CONTENT,
    MAX_DESCRIPTION,
    MAX_TAGS,
    MAX_TITLE,
    Edit,
    ResourceRow,
)
from broker.core.resourceviews import Published, Resource, show
from broker.tools.context import Services
from broker.wire.refusals import Refusal

TitleParam = Annotated[
    str, Meta(min_length=1, max_length=MAX_TITLE, description="at most 200 characters, in one line")
]
ContentParam = Annotated[
    str, Meta(min_length=1, description=f"the text, at most {MAX_CONTENT} bytes of UTF-8; kept as it is")
]
DescriptionParam = Annotated[
    str, Meta(max_length=MAX_DESCRIPTION, description="what it is about, at most 1000 characters")
]
Tag = Annotated[str, Meta(pattern=rf"^{CAPABILITY}$(?!\n)")]
TagsParam = Annotated[
    list[Tag], Meta(max_length=MAX_TAGS, description="at most 10 tags such as research or fx-rates")
]
TypeParam = Annotated[
    str,
    Meta(
        pattern=rf"^{CONTENT_TYPE}$(?!\n)",
        description="a media type of text, without parameters: text/…, application/json, …",
    ),
]
AccessParam = Annotated[
    Literal["public", "agreement", "private"],
    Meta(
        description="who may read it: every agent; those that have an agreement with you with the scope resource (the "
        "others find it, and may ask for one); you alone"
    ),
]
VersionParam = Annotated[int, Meta(ge=1, description="change it only if it is at this version")]
QueryParam = Annotated[
    str,
    Meta(
        max_length=200,
        description="words that title, tags or description have; the last one may be the beginning of a word",
    ),
]
TagParam = Annotated[str, Meta(pattern=rf"^{CAPABILITY}$(?!\n)", description="only those with this tag")]
OffsetParam = Annotated[int, Meta(ge=0, le=1000, description="how many to pass over; `after` is better")]


class Hit(Resource, frozen=True, kw_only=True):
    """A resource that was found."""

    publisher_name: str
    can_read: bool
    """Whether the caller may read it now."""


class Content(Published, frozen=True, kw_only=True):
    """A resource with its content: what another agent wrote."""

    publisher_name: str
    content: str


class Library(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of what the caller has published, newest first; how many there are in all, and of how many bytes."""

    resources: list[Published]
    count: int
    bytes: int
    next: str | None = None


class Hits(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of what was found, the best first."""

    resources: list[Hit]
    next: str | None = None
    """Where the next page begins, if there is more."""


class Deleted(msgspec.Struct, frozen=True):
    resource_id: str
    deleted: bool


def edit_of(
    title: str | None,
    description: str | None,
    tags: list[str] | None,
    content_type: str | None,
    access: core.Access | None,
    content: str | None,
) -> Edit | Refusal:
    """What a caller says of a resource, looked through."""
    refused = core.judge_words(title, description)
    kept = None if tags is None else core.tags_of(tags)
    text = None if content is None else core.content_of(content)
    for each in (refused, kept, text):
        if isinstance(each, Refusal):
            return each
    assert not isinstance(kept, Refusal)
    assert not isinstance(text, Refusal)
    return Edit(title, description, kept, content_type, access, text)


class Reader:
    """An agent that looks at others' resources, now: who their publishers are, and which of them it may read."""

    def __init__(self, services: Services, agent_id: str) -> None:
        self.store = services.store
        self._now = services.clock.now_ms()
        self._agent_id = agent_id
        self._publishers: dict[str, AgentRow | None] = {}
        self._agreed: dict[str, bool] = {}

    async def publisher(self, row: ResourceRow) -> AgentRow | None:
        """Who published a resource; None where that agent is not there, or the resource private and another's."""
        if row.access == "private" and row.publisher != self._agent_id:
            return None
        if row.publisher not in self._publishers:
            self._publishers[row.publisher] = await present(self.store, row.publisher, self._now)
        return self._publishers[row.publisher]

    async def may_read(self, row: ResourceRow) -> bool:
        """Whether the agent may read it, if its publisher is there."""
        asks = row.access == "agreement" and row.publisher != self._agent_id
        if asks and row.publisher not in self._agreed:
            found = await permission(self.store, self._agent_id, row.publisher, "resource", self._now)
            self._agreed[row.publisher] = found is not None
        return core.may_read(row, self._agent_id, self._agreed.get(row.publisher, False))

    async def hit(self, row: ResourceRow) -> Hit | None:
        """A resource as it is found; None where it is not to be seen."""
        publisher = await self.publisher(row)
        if publisher is None:
            return None
        return Hit(**show(row), publisher_name=publisher.name, can_read=await self.may_read(row))
