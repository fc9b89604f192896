"""What a push is to send next: the events of its stream after its place, as its receiver is told of them (network.md,
Webhooks).

Where the stream does not reach back to the place any more, the next event says why.
"""

from typing import Final, NamedTuple

from broker.core.push import Occurrence, PushRow
from broker.store.port import Event, Head, Store
from broker.store.stored import stored
from broker.wire.events import ROW_KINDS, Cursor, splice, stream_tag

PAGE: Final = 8
"""Events that are read at once: each of many pushes may hold so many while it waits to send them."""


class Backlog(NamedTuple):
    """Events with their positions, the stream's head, and where to go on if there is none."""

    head: Head
    events: list[tuple[int, Occurrence]]
    upto: int


async def read_backlog(store: Store, row: PushRow) -> Backlog:
    """The next PAGE events. Raises what the store raises."""
    head = await store.head(row.stream)
    place, gap = min(row.position, head.newest), None
    if row.epoch and row.epoch != head.epoch:
        gap = "epoch_changed"
    if place < head.oldest - 1:
        place, gap = head.oldest - 1, gap or "trimmed"
    events = await store.events(row.stream, place, PAGE)
    tag, found = stream_tag(row.stream), []
    for event in events:
        stored(dict, event.data, "stream", f"{row.stream} at {event.position}")
        found.append((event.position, _occurrence(event, tag, head.epoch, gap)))
        gap = None
    return Backlog(head, found, head.newest if not events else place)


def _occurrence(event: Event, tag: str, epoch: str, gap: str | None) -> Occurrence:
    cursor = Cursor(tag, epoch, event.position).text()
    text = splice(event.data, cursor, event.own, event.at if event.kind in ROW_KINDS else None)
    return Occurrence(f"evt_{tag}{epoch}_{event.position}", event.kind, event.at, text, gap)
