"""What is stored is read back by its type, or is damaged: named in the log, and "unavailable" to who asks.

A sum tells of bits that a disk turned over; it can't tell of what another program wrote, and rows of an older schema
have none. Whoever decodes something that is stored does it here, so that no such thing shows as a fault of the code.
"""

import logging
from collections.abc import AsyncGenerator
from typing import Final, TypeVar

import msgspec

from broker.store.complaints import Complaints
from broker.store.port import Document, Store, Unavailable

T = TypeVar("T")
UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)
"""What decoding raises, and what is made of the members raises, where the text is not what it should be."""
_SHOWN: Final = 8
"""Letters of a conversation's id that a log may show: who has all of it may read the transcript."""

_complaints: Final = Complaints(logging.getLogger("turret.store"))


async def read_row(store: Store, type: type[T], kind: str, id: str) -> T | None:
    """Document `id` of `kind`, decoded; None where there is none. Raises Unavailable. Cancelling is safe."""
    document = await store.get(kind, id)
    return None if document is None else stored(type, document.doc, kind, id)


async def every(
    store: Store, kind: str, name: str, value: str, page: int = 500
) -> AsyncGenerator[Document, None]:
    """All documents with an index row (name, value), in its order, read `page` at a time. Raises Unavailable."""
    after = 0
    while documents := await store.find(kind, name, value, after, page):
        for document in documents:
            yield document
        after = documents[-1].order


def stored(type: type[T], text: bytes, kind: str, id: str) -> T:
    """Decode the text of a document or row. Raises Unavailable, which names it by kind and id; it is logged too."""
    try:
        return msgspec.json.decode(text, type=type)
    except UNREADABLE as error:
        raise damaged(kind, id, error) from error


def damaged(kind: str, id: str, why: object) -> Unavailable:
    """For whoever finds that something stored can't be what was written: logs it, and gives what to raise."""
    name = f"{id[:_SHOWN]}…" if kind == "conv" else id
    words = f"what is stored of {kind} {name} is damaged: {why}; turret check tells more"
    _complaints.say(words)
    return Unavailable(words)
