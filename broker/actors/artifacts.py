"""Artifacts in the store: written with what they end, read by ref, refused where they are not what the ref says."""

from broker.core.artifact import KIND, ref_of
from broker.store.port import Put, Store
from broker.store.stored import damaged
from broker.wire.refusals import refuse

NO_ARTIFACT = refuse("NOT_FOUND", "there is no such artifact", path="ref")


async def publish(store: Store, content: bytes) -> tuple[str, tuple[Put, ...]]:
    """The ref of an artifact, and what stores it: nothing, where the same is stored. Raises Unavailable."""
    ref = ref_of(content)
    there = await store.get(KIND, ref)
    return ref, () if there is not None else (Put(KIND, ref, 0, content),)


async def read_artifact(store: Store, ref: str) -> bytes | None:
    """An artifact's bytes, or None. Raises Unavailable where they are not those that the ref names."""
    document = await store.get(KIND, ref)
    if document is None:
        return None
    if ref_of(document.doc) != ref:
        raise damaged(KIND, ref, "its bytes have another hash")
    return document.doc
