"""What `turret check` finds in resources: contents that are what was published, libraries that count what they hold.

1. A resource's row says its content's sum, size and version; the content lies beside it, and no content lies alone.
2. It is found by what its row says: publisher, tags, whether it is open, the words of title, tags and description.
"""

from collections.abc import Iterator

import msgspec

from broker.core.resource import LibraryRow, ResourceRow, index_of, sum_of, text_of
from broker.store.port import Fault, Snapshot, Step
from broker.store.words import words


def check_resources(snapshot: Snapshot) -> Iterator[Step]:
    """What is wrong with resources, and one for each that was looked at. Raises what reading raises."""
    held: dict[str, tuple[int, int]] = {}
    contents = {document.id for document in snapshot.documents("content")}
    for document in snapshot.documents("resource"):
        contents.discard(document.id)
        try:
            row = msgspec.json.decode(document.doc, type=ResourceRow)
        except msgspec.MsgspecError as error:
            yield Fault("document", document.id, f"is no resource's: {error}")
            continue
        count, size = held.get(row.publisher, (0, 0))
        held[row.publisher] = count + 1, size + row.size
        yield from _resource(snapshot, document.id, row)
        yield 1
    for document in snapshot.documents("library"):
        try:
            library = msgspec.json.decode(document.doc, type=LibraryRow)
        except msgspec.MsgspecError as error:
            yield Fault("document", document.id, f"is no library's: {error}")
            continue
        said, found = (library.count, library.bytes), held.pop(document.id, (0, 0))
        if said != found:
            yield Fault("document", document.id, f"counts {said} resources and bytes, there are {found}")
    for publisher in sorted(held):
        yield Fault("document", publisher, "has published resources, and has no library")
    for resource_id in sorted(contents):
        yield Fault("document", resource_id, "is the content of no resource")


def _resource(snapshot: Snapshot, id: str, row: ResourceRow) -> Iterator[Fault]:
    content = snapshot.document("content", id)
    if row.resource_id != id:
        yield Fault("document", id, f"says that it is {row.resource_id}")
    if content is None:
        yield Fault("document", id, "has no content")
    elif (len(content.doc), sum_of(content.doc), content.version) != (row.size, row.sha256, row.text):
        yield Fault("document", id, "its content is not what was published")
    if snapshot.marks("resource", id) != set(index_of(row)):
        yield Fault("document", id, "is not found by what it says")
    if snapshot.searched("resource", id) != tuple(" ".join(words(each)) for each in text_of(row)):
        yield Fault("document", id, "is found by other words than its own")
