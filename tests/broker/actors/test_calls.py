"""A call as stored: its names, its rows, and who gets the stored acknowledgement."""

from broker.actors.calls import Ack, find_replay, log_name, pair_name, stream_name
from broker.store.memory import MemoryStore
from broker.store.port import Append, Unit
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


def test_names_in_the_store_keep_kinds_and_keys_apart() -> None:
    assert len({log_name("a"), stream_name("a"), pair_name("a", "a")}) == 3
    assert pair_name("a", "b") == pair_name("b", "a")
