"""A history that was made without sockets is what the broker itself would have written."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio.testing

from bench.history import EACH, Call, Party, make, units, write
from broker.actors.calls import log_name, stream_name
from broker.store.memory import MemoryStore
from broker.store.port import Conflict, Then, Unit
from broker.store.sqlite import SqliteStore
from broker.wire.chain import verify_transcript
from broker.wire.refusals import Refusal
from tests.support.broker import open_bench


class Recorder(MemoryStore):
    """A store that remembers what was given to it."""

    def __init__(self) -> None:
        super().__init__()
        self.units: list[Unit] = []

    async def commit(self, unit: Unit) -> None:
        self.units.append(unit)
        await super().commit(unit)

    def submit(self, unit: Unit, then: Then) -> None:
        self.units.append(unit)
        super().submit(unit, then)


def params_of(unit: Unit, party: Party) -> dict[str, Any]:
    assert unit.append is not None
    row = json.loads(unit.append.data)
    envelope = row["envelope"]
    params = {"from_pk": envelope["from"], "sig": row["sig"], "envelope": envelope}
    if envelope["n"] == 0:
        return {**params, "to_code": party.code}
    return {**params, "conv": envelope["conv"], "n": envelope["n"]}


async def test_each_unit_is_the_one_that_the_broker_commits_for_the_same_envelope(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store = Recorder()
    async with open_bench(store=store) as bench:
        one, other = await bench.open("AAAB"), await bench.open("AAAC")
        caller, called = Party("AAAB", 3, one.key), Party("AAAC", 3, other.key)
        call = Call(caller, called, bench.broker.pk)
        for number in range(5):
            at = bench.clock.now_ms()
            unit = call.next_unit(
                at, end=number == 4, **({"body": b'{"reason":"done"}'} if number == 4 else {})
            )
            tool = "send_env" if number else "send_call"
            answer = await bench.call(tool, **params_of(unit, called))
            assert not isinstance(answer, Refusal), answer
            written = [each for each in store.units if each.append is not None]
            assert msgspec.to_builtins(written[-1]) == msgspec.to_builtins(unit)
            assert called.chains[-1].decode() == answer["chain"]
        assert (caller.newest, called.newest, len(called.chains)) == (5, 5, 3)


async def test_a_store_that_was_made_holds_what_its_parties_know(tmp_path: Path) -> None:
    told: list[int] = []
    parties = await make(tmp_path / "data", 3 * EACH, 3, 7, told.append)
    store = await SqliteStore.open(tmp_path / "data", hop="inline")
    try:
        for party in parties:
            head = await store.head(stream_name(party.key.pk))
            assert head.newest == party.newest == 2 * EACH
            events = await store.events(stream_name(party.key.pk), head.newest - 7)
            assert [json.loads(event.data)["chain"].encode() for event in events] == list(party.chains)
        conv = json.loads(events[-1].data)["conv"]
        rows = [json.loads(entry.data) for entry in await store.entries(log_name(conv), limit=EACH)]
        assert len(rows) == EACH
        assert verify_transcript(rows).ok
    finally:
        await store.aclose()


def test_of_many_conversations_all_but_the_last_have_ended() -> None:
    parties = [Party(code, 1) for code in ("AAAB", "AAAC")]
    ends = starts = 0
    for unit in units(parties, "0" * 64, 20 * EACH):
        starts += unit.deliver[1].kind == "ring"
        ends += unit.deliver[1].kind == "end"
    assert (starts, ends) == (20, 4)


async def test_a_unit_that_the_store_refuses_ends_the_writing() -> None:
    parties: Sequence[Party] = [Party(code, 1) for code in ("AAAB", "AAAC")]
    made = list(units(parties, "0" * 64, 4))
    with pytest.raises(Conflict):
        await write(MemoryStore(), [*made, made[0]])
