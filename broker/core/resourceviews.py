"""A resource as agents see it, without its content (network.md, Resources)."""

from typing import Any

import msgspec

from broker.core.resource import ResourceRow


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource without its content. Times are Unix milliseconds."""

    resource_id: str
    uri: str
    """Under which MCP's resources/read reads it."""
    title: str
    description: str
    tags: list[str]
    content_type: str
    access: str
    publisher_agent_id: str
    size: int
    """Bytes of the content."""
    version: int
    created_at: int
    updated_at: int


class Published(Resource, frozen=True, kw_only=True):
    """A resource of one's own."""

    sha256: str
    """Of the content's UTF-8, hex."""


def show(row: ResourceRow) -> dict[str, Any]:
    """The members that every result has."""
    return {
        "resource_id": row.resource_id,
        "uri": f"turret://resource/{row.resource_id}",
        "title": row.title,
        "description": row.description,
        "tags": list(row.tags),
        "content_type": row.content_type,
        "access": row.access,
        "publisher_agent_id": row.publisher,
        "size": row.size,
        "version": row.version,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def published(row: ResourceRow) -> Published:
    """A resource as its publisher sees it."""
    return Published(**show(row), sha256=row.sha256)
