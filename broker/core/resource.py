"""The Resource Library: what an agent publishes for others to find and read (network.md, Resources).

1. A resource is a row that says all of it but the content, which lies beside it: a search reads rows alone.
2. Who publishes has a library, which counts what it holds; each change gives the next library and the next row.
3. What is found in a search may be announced to those who can't read it yet. A private one is nobody else's business.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from broker.core.agent import CAPABILITY
from broker.wire.refusals import Refusal, refuse

Access = Literal["public", "agreement", "private"]
MAX_TITLE: Final = 200
MAX_DESCRIPTION: Final = 1000
MAX_TAGS: Final = 10
MAX_CONTENT: Final = 262_144
"""Bytes of UTF-8."""
CONTENT_TYPE: Final = (
    r"(text/[a-z0-9][a-z0-9.+-]{0,62}|application/([a-z0-9][a-z0-9.-]{0,62}\+)?(json|xml|yaml))"
)
"""Media types of texts, without parameters: a text is UTF-8."""
NO_RESOURCE: Final = refuse("not_found", "there is no such resource")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_BUT_LINES: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters but tab and line feed."""


class ResourceRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A resource as stored (kind "resource", id = resource_id). Times are wall milliseconds."""

    resource_id: str
    publisher: str
    title: str
    content_type: str
    access: Access
    sha256: str
    """Of the content's UTF-8, hex."""
    size: int
    """Bytes of it."""
    created_at: int
    updated_at: int
    version: int = 1
    """One more with each change."""
    text: int = 1
    """How often the content was put: the version of its document."""
    description: str = ""
    tags: tuple[str, ...] = ()


class LibraryRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an agent has published (kind "library", id = agent_id)."""

    agent_id: str
    count: int = 0
    bytes: int = 0
    due: int | None = None
    """When it is next looked whether the agent is still there, wall milliseconds."""


class Quota(msgspec.Struct, frozen=True):
    """What one agent may have."""

    resources: int
    bytes: int


class Edit(msgspec.Struct, frozen=True):
    """What is to change; None: nothing."""

    title: str | None = None
    description: str | None = None
    tags: tuple[str, ...] | None = None
    content_type: str | None = None
    access: Access | None = None
    content: bytes | None = None


class Changed(msgspec.Struct, frozen=True):
    """The library and the resource as they are next; the resource None: it is gone."""

    library: LibraryRow
    resource: ResourceRow | None


def judge_words(title: str | None, description: str | None) -> Refusal | None:
    """Why a title or a description is not taken. Lengths are the door's to look at."""
    if title is not None and (not title.strip() or _CONTROL.search(title)):
        return refuse(
            "bad_request", "a title has letters, and no control characters or line ends", path="title"
        )
    if description is not None and _BUT_LINES.search(description):
        said = "a description has no control characters but tab and line feed"
        return refuse("bad_request", said, path="description")
    return None


def tags_of(tags: Sequence[str]) -> tuple[str, ...] | Refusal:
    """Tags as kept: each once, in the order given."""
    kept = tuple(dict.fromkeys(tags))
    if len(kept) > MAX_TAGS or not all(re.fullmatch(CAPABILITY, each) for each in kept):
        said = f"at most {MAX_TAGS} tags of small letters, digits and lines, at most 32 characters each"
        return refuse("bad_request", said, path="tags")
    return kept


def content_of(text: str) -> bytes | Refusal:
    """The bytes of a content."""
    content = text.encode()
    if len(content) > MAX_CONTENT:
        said = f"a resource has at most {MAX_CONTENT} bytes of UTF-8"
        return refuse("too_large", said, path="content", limit=MAX_CONTENT, size=len(content))
    return content


def sum_of(content: bytes) -> str:
    """The SHA-256 of a content, hex."""
    return hashlib.sha256(content).hexdigest()


def publish(library: LibraryRow, row: ResourceRow, quota: Quota) -> Changed | Refusal:
    """With one resource more."""
    return _kept(replace(library, count=library.count + 1, bytes=library.bytes + row.size), row, quota)


def change(
    library: LibraryRow, row: ResourceRow, edit: Edit, expected: int | None, now: int, quota: Quota
) -> Changed | Refusal:
    """A resource with what an edit says; `expected`: the version that it must have, where one is named."""
    if expected not in (None, row.version):
        said = f"the resource is at version {row.version}; read it again"
        return refuse("conflict", said, version=row.version)
    given = {
        name: value
        for name in ("title", "description", "tags", "content_type", "access")
        if (value := getattr(edit, name)) is not None
    }
    if edit.content is not None:
        size = len(edit.content)
        library = replace(library, bytes=library.bytes - row.size + size)
        given |= {"size": size, "sha256": sum_of(edit.content), "text": row.text + 1}
    later = max(now, row.updated_at)
    return _kept(library, replace(row, version=row.version + 1, updated_at=later, **given), quota, row.size)


def remove(library: LibraryRow, row: ResourceRow) -> Changed:
    """With one resource less."""
    left = replace(library, count=max(library.count - 1, 0), bytes=max(library.bytes - row.size, 0))
    return Changed(left, None)


def _kept(library: LibraryRow, row: ResourceRow, quota: Quota, before: int = 0) -> Changed | Refusal:
    """What is more than the quota is refused; who has too much already may still change what takes no more room."""
    if not before and library.count > quota.resources:
        said = f"an agent has at most {quota.resources} resources; delete one first"
        return refuse("quota_exceeded", said, reason="resources", limit=quota.resources)
    if row.size > before and library.bytes > quota.bytes:
        said = f"an agent's resources have at most {quota.bytes} bytes together; delete one first"
        return refuse("quota_exceeded", said, reason="resource_bytes", limit=quota.bytes)
    return Changed(library, row)


def index_of(row: ResourceRow) -> tuple[tuple[str, str | int], ...]:
    """What a resource is found by: its publisher, its tags, and, if others may know of it, among the open ones."""
    shown: tuple[tuple[str, str | int], ...] = () if row.access == "private" else (("open", "1"),)
    return (("of", row.publisher), *shown, *(("tag", tag) for tag in row.tags))


def text_of(row: ResourceRow) -> tuple[str, ...]:
    """What a search looks through, the weightiest first."""
    return row.title, " ".join(row.tags), row.description


def may_read(row: ResourceRow, reader: str, agreed: bool) -> bool:
    """Whether an agent may read the content now. `agreed`: by an agreement with the publisher."""
    return row.publisher == reader or row.access == "public" or (row.access == "agreement" and agreed)
