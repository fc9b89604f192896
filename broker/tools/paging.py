"""Pages of what is found by an index: the place of the last one shown is the cursor, so that what comes or goes
meanwhile moves nothing (network.md, Messages).

A cursor belongs to the list that gave it: one of another list, or a made-up one, is refused.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Final, NamedTuple, TypeVar

from msgspec import Meta

from broker.store.port import Document, Store
from broker.wire.refusals import Refusal, refuse

T = TypeVar("T")
MOST: Final = 100
PAGE_BYTES: Final = 262_144
"""What a page of texts holds at most, one text apart: a reply must not stall the others."""
LimitParam = Annotated[int, Meta(ge=1, le=MOST, description="how many at most, 1 to 100")]
AfterParam = Annotated[str, Meta(max_length=64, description="`next` of the page before")] | None


class Page(NamedTuple):
    """Documents in the list's order, and the cursor at which the next page begins; None: that was all."""

    documents: list[Document]
    next: str | None


async def read_page(
    store: Store,
    kind: str,
    name: str,
    value: str,
    after: str | None,
    limit: int,
    *,
    skip: int = 0,
    newest: bool = True,
) -> Page | Refusal:
    """The documents with the index row (name, value) after a cursor, the newest first, or the oldest; bad_request for
    a cursor that is none of this list."""
    place = read_cursor(name, after)
    if isinstance(place, Refusal):
        return place
    found = await store.find(kind, name, value, place, skip + limit + 1, newest=newest)
    shown = found[skip : skip + limit]
    return Page(shown, cursor(name, shown[-1].order) if len(found) > skip + limit else None)


def cursor(name: str, place: int) -> str:
    """The cursor that goes on after a place (a document's `order`; 0: the beginning) in the list `name`."""
    return f"{name}-{place}"


def read_cursor(name: str, after: str | None) -> int | Refusal:
    """The place that a cursor of the list `name` stands for; 0 for None."""
    if after is None:
        return 0
    its, _, place = after.rpartition("-")
    if its != name or not place.isascii() or not place.isdigit() or len(place) > 18:
        return refuse("bad_request", "after is no cursor of this list; begin without it", path="after")
    return int(place)


def fitting(found: Sequence[T], size: Callable[[T], int]) -> Sequence[T]:
    """The first of these that are PAGE_BYTES together at most; one at least."""
    total = 0
    for at, each in enumerate(found):
        total += size(each)
        if at and total > PAGE_BYTES:
            return found[:at]
    return found
