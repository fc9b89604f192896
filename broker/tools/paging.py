"""Pages of what is found by an index: the place of the last one shown is the cursor, so that what comes or goes
meanwhile moves nothing (network.md, Messages).

A cursor names its list by the index that it goes through: one of a list of another name, or a made-up one, is refused.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Final, Generic, NamedTuple, TypeVar

from msgspec import Meta

from broker.store.port import Document, Store
from broker.wire.refusals import Refusal, refuse

T = TypeVar("T")
MOST: Final = 100
PAGE_BYTES: Final = 262_144
"""What a page of texts holds at most, one text apart: a reply must not stall the others."""
STEP: Final = 100
"""Documents that a scan reads at once."""
LOOKED_AT: Final = 500
"""Documents that one scan looks at; where few of them fit, a page is short, and `next` leads on."""
LimitParam = Annotated[int, Meta(ge=1, le=MOST, description="how many at most, 1 to 100")]
AfterParam = Annotated[str, Meta(max_length=64, description="`next` of the page before")] | None


class Page(NamedTuple):
    """Documents in the list's order, and the cursor at which the next page begins; None: that was all."""

    documents: list[Document]
    next: str | None


class Scanned(NamedTuple, Generic[T]):
    """What fits, in the list's order, and the cursor at which the next page begins; None: that was all."""

    rows: list[T]
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
    texts: bool = False,
) -> Page | Refusal:
    """The documents with the index row (name, value) after a cursor, the newest first, or the oldest; with `texts` no
    more than PAGE_BYTES of them. bad_request for a cursor that is none of this list. Raises what the store raises."""
    place = read_cursor(name, after)
    if isinstance(place, Refusal):
        return place
    found = await store.find(kind, name, value, place, skip + limit + 1, newest=newest)
    shown = found[skip : skip + limit]
    if texts:
        shown = list(fitting(shown, lambda document: len(document.doc)))
    return Page(shown, cursor(name, shown[-1].order) if len(found) > skip + len(shown) else None)


async def scan(
    store: Store,
    kind: str,
    index: tuple[str, str],
    read: Callable[[Document], T | None],
    after: str | None,
    limit: int,
    *,
    newest: bool = False,
    called: str | None = None,
) -> Scanned[T] | Refusal:
    """Of the documents with an index row those that `read` makes something of (None: one does not fit), LOOKED_AT
    looked at; bad_request for a cursor that is none of this list. `called`: the list's name, if not the index row's.
    Raises what the store and `read` raise."""
    name = called or index[0]
    place = read_cursor(name, after)
    if isinstance(place, Refusal):
        return place
    rows: list[T] = []
    for start in range(0, LOOKED_AT, STEP):
        step = min(STEP, LOOKED_AT - start)
        documents = await store.find(kind, *index, place, step, newest=newest)
        for document in documents:
            row = read(document)
            if row is not None:
                if len(rows) == limit:
                    return Scanned(rows, cursor(name, place))
                rows.append(row)
            place = document.order
        if len(documents) < step:
            return Scanned(rows, None)
    return Scanned(rows, cursor(name, place))


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
