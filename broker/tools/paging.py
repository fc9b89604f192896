"""Pages of what is found by an index: the place of the last one shown is the cursor, so that what comes or goes
meanwhile moves nothing (network.md, Messages).

A cursor belongs to the list that gave it: one of another list, or a made-up one, is refused.
"""

from typing import Annotated, Final

from msgspec import Meta

from broker.store.port import Document, Store
from broker.wire.refusals import Refusal, refuse

MOST: Final = 100
LimitParam = Annotated[int, Meta(ge=1, le=MOST, description="how many at most, 1 to 100")]
AfterParam = Annotated[str, Meta(max_length=64, description="`next` of the page before")] | None


async def read_page(
    store: Store, kind: str, name: str, value: str, after: str | None, limit: int, skip: int = 0
) -> tuple[list[Document], bool] | Refusal:
    """The newest documents with the index row (name, value), after a cursor; and whether there are more."""
    place = _read(name, after)
    if isinstance(place, Refusal):
        return place
    found = await store.find(kind, name, value, place, skip + limit + 1, newest=True)
    return found[skip : skip + limit], len(found) > skip + limit


def cursor(name: str, document: Document) -> str:
    """The cursor that goes on after a document of the list `name`."""
    return f"{name}-{document.order}"


def _read(name: str, after: str | None) -> int | Refusal:
    if after is None:
        return 0
    its, _, place = after.rpartition("-")
    if its != name or not place.isascii() or not place.isdigit() or not 0 < len(place) < 19 or not int(place):
        return refuse("bad_request", "after is no cursor of this list; begin without it", path="after")
    return int(place)
