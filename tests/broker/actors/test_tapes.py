"""Tapes in memory: made by rule, or imported; found by index, name or ref, and bounded by ticks."""

import pytest

from broker.actors import tapes
from broker.actors.tapes import Tapes, made
from broker.core.tapes.synthetic import KINDS
from broker.core.trials.script import Entry
from broker.store.memory import MemoryStore
from broker.store.port import Unavailable
from broker.wire.refusals import Refusal
from tests.support.broker import Bench, code
from tests.support.imports import bring, foreign
from tests.support.operators import OPERATOR


@pytest.mark.requirement("catalog.entry")
async def test_an_entry_is_found_by_index_name_and_ref(bench: Bench) -> None:
    tape = foreign()
    await bring(bench, tape)
    found = bench.broker._services.tapes
    assert [await found.find(each, None) for each in (100, "100", tape.ref())] == [
        Entry(tape.ref(), tape.about, len(tape))
    ] * 3
    trend = await found.find(0, None)
    assert trend == await found.find("trend", 1) == await found.find("0", None)
    assert isinstance(trend, Entry)
    assert trend == await Tapes(bench.store).find(trend.ref, None)
    assert await found.find(trend.ref, 2) == await found.find("trend", 2)
    assert (trend.kind, trend.seed, await found.find("trend", 2) != trend) == ("trend", 1, True)
    for which in (4, 99, 101, "101", "0" * 64, "9" * 64, "no such", -1, "-1", "٣"):
        assert code(await found.find(which, None)) == "NOT_FOUND"
    refused = await found.find(100, 1)
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.detail["path"]) == ("bad_request", "seed")


@pytest.mark.requirement("catalog.verified")
async def test_what_is_given_has_the_ref_of_the_entry_or_nothing_is(bench: Bench) -> None:
    tape = foreign()
    await bring(bench, tape)
    found = bench.broker._services.tapes
    entry = await found.find(100, None)
    assert isinstance(entry, Entry)
    assert (await found.tape(entry)).ref() == tape.ref()
    await bench.call("remove_tape", OPERATOR, ref=tape.ref())
    with pytest.raises(Unavailable):
        await Tapes(bench.store).tape(entry)
    with pytest.raises(Unavailable):
        await found.tape(Entry("0" * 64, tape.about, len(tape), "thin", 77))
    assert made(Entry("0" * 64, tape.about, len(tape), "thin", 77)) is None


@pytest.mark.requirement("catalog.bound")
async def test_tapes_stay_in_memory_up_to_a_bound_the_last_used_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = Tapes(MemoryStore())
    monkeypatch.setattr(tapes, "KEPT_TICKS", 2 * KINDS["trend"].ticks)
    entries = [await kept.find(name, None) for name in ("trend", "jump")]
    assert all(isinstance(each, Entry) for each in entries)
    first = await kept.tape(entries[0])  # type: ignore[arg-type]  # looked at above
    await kept.find("mean-revert", None)
    assert await kept.tape(entries[0]) is first  # type: ignore[arg-type]
    assert len(kept._kept) == 2
