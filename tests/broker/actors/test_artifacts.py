"""Artifacts are stored once, and given out only as what their name says."""

import pytest

from broker.actors.artifacts import publish, read_artifact
from broker.core.artifact import KIND, ref_of
from broker.store.memory import MemoryStore
from broker.store.port import Put, Unavailable, Unit


async def test_what_is_published_is_read_by_its_ref() -> None:
    store = MemoryStore()
    ref, puts = await publish(store, b'{"a":1}')
    assert await read_artifact(store, ref) is None
    await store.commit(Unit(puts=puts))
    assert await read_artifact(store, ref) == b'{"a":1}'


async def test_the_same_is_stored_once() -> None:
    store = MemoryStore()
    ref, puts = await publish(store, b"{}")
    await store.commit(Unit(puts=puts))
    assert await publish(store, b"{}") == (ref, ())


@pytest.mark.requirement("arena.artifact-hash")
async def test_bytes_that_another_hash_names_are_not_given_out() -> None:
    store = MemoryStore()
    ref = ref_of(b"{}")
    await store.commit(Unit(puts=(Put(KIND, ref, 0, b"[]"),)))
    with pytest.raises(Unavailable):
        await read_artifact(store, ref)
