"""A call as stored: its names, its rows, and who gets the stored acknowledgement."""

import msgspec
import pytest

from broker.actors.calls import Ack, ConvRow, find_replay, log_name, pair_name, read_state, stream_name
from broker.core.machine import Now
from broker.store.memory import MemoryStore
from broker.store.port import Append, Put, Unavailable, Unit
from broker.wire.chain import row_text
from broker.wire.envelope import Envelope, build, read_envelope
from broker.wire.ids import ConvId
from broker.wire.keys import SigningKey

ONE, OTHER = SigningKey.from_seed("1" * 64), SigningKey.from_seed("2" * 64)
CONV = ConvId("a1b2c3d4e5f6a7b8")


def envelope(n: int, px: str) -> tuple[Envelope, str]:
    text = build(
        conv=CONV, n=n, type="QUOTE", sender=ONE.pk, to=OTHER.pk, ts=1, prev_sig="0" * 128, body={"px": px}
    )
    read = read_envelope(text)
    assert isinstance(read, Envelope)
    return read, ONE.sign(text)


async def test_the_very_envelope_gets_its_stored_acknowledgement_and_no_other_does() -> None:
    store = MemoryStore()
    read, sig = envelope(1, "1.25")
    chain = "c" * 64
    rows = [b"{}", row_text(CONV, 1, sig, chain, read.canonical)]
    for n, row in enumerate(rows):
        await store.commit(Unit(append=Append(log_name(CONV), n, row, 7)))
    assert await find_replay(store, read, sig) == Ack(CONV, 1, chain, 7, replayed=True)
    other, other_sig = envelope(1, "1.26")
    assert await find_replay(store, other, other_sig) is None
    assert await find_replay(store, read, other_sig) is None
    beyond, beyond_sig = envelope(2, "1.25")
    assert await find_replay(store, beyond, beyond_sig) is None


ROW = ConvRow(CONV, ONE.pk, OTHER.pk, "ALFA", "BRAV", "0f" * 32, "open", 5)
DAMAGED = {
    "a document cut": (msgspec.json.encode(ROW)[:-1], None),
    "a document of another kind": (b"[]", None),
    "bytes that are no text": (msgspec.json.encode(ROW).replace(b"ALFA", b"\xff\xfe"), None),
    "a row cut": (None, -1),
    "a row's chain that is no hex": (None, b"cccc"),
    "a row nested without end": (None, b"[" * 5_000),
}


@pytest.mark.requirement("store.hostile")
@pytest.mark.parametrize(("document", "damage"), DAMAGED.values(), ids=DAMAGED.keys())
async def test_damaged_rows_are_a_store_that_gives_nothing_and_named(
    document: bytes | None, damage: bytes | int | None
) -> None:
    store, now = MemoryStore(), Now(10, 1.0)
    read, sig = envelope(1, "1.25")
    row = row_text(CONV, 0, sig, "c" * 64, read.canonical)
    if isinstance(damage, int):
        row = row[:damage]
    elif damage is not None:
        row = (
            row.replace(b"cccc", b"zzzz", 1)
            if damage == b"cccc"
            else row.replace(b"{", b'{"x":' + damage + b",", 1)
        )
    await store.commit(Unit(puts=(Put("conv", CONV, 0, document or msgspec.json.encode(ROW)),)))
    await store.commit(Unit(append=Append(log_name(CONV), 0, row, 7)))
    stored = await store.get("conv", CONV)
    assert stored is not None
    with pytest.raises(Unavailable, match=f"conv {CONV[:8]}…"):
        await read_state(store, stored, now, now, 30)


def test_names_in_the_store_keep_kinds_and_keys_apart() -> None:
    assert len({log_name("a"), stream_name("a"), pair_name("a", "a")}) == 3
    assert pair_name("a", "b") == pair_name("b", "a")
