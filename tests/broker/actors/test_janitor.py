"""Retention: nonces are forgotten after their time, streams are trimmed and say so, transcripts leave a tombstone."""

from typing import Any

import pytest
import trio

from broker.actors.calls import log_name
from broker.store.memory import MemoryStore
from broker.store.port import Unavailable
from tests.support.broker import Bench, code, open_bench, tuned

DAY_MS = 86_400_000


@pytest.mark.requirement("statements.nonce-kept")
async def test_a_nonce_is_kept_ten_minutes_past_its_window(bench: Bench, autojump_clock: Any) -> None:
    alfa = await bench.open("ALFA")
    params = alfa.statement("close_desk", bench.broker.pk, bench.ts, code="ALFA")
    first = await bench.call("close_desk", **params)
    await trio.sleep(890)
    assert await bench.call("close_desk", **params) == {**first, "replayed": True}
    await trio.sleep(80)
    assert code(await bench.call("close_desk", **params)) == "bad_statement"


@pytest.mark.requirement("streams.kept")
async def test_a_trimmed_stream_goes_on_with_the_oldest_kept_and_says_so(autojump_clock: Any) -> None:
    async with open_bench(tuned(streams={"keep_events": 3})) as bench:
        alfa = await bench.open("ALFA")
        line = await bench.connect(alfa, await bench.open("BRAV"))
        for _ in range(4):
            await line.send("CHAT")
        follow = alfa.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 86_400)
        all_events = await bench.call("wait_for_events", after="0", **follow)
        first = all_events["events"][0]["cursor"]
        bench.clock.step(8 * DAY_MS)
        await trio.sleep(61)
        follow = alfa.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 86_400)
        answer = await bench.call("wait_for_events", after=first, **follow)
        assert (answer["resume"]["recovered"], answer["resume"]["reason"]) == (False, "trimmed")
        assert len(answer["events"]) >= 3


@pytest.mark.requirement("streams.transcripts-kept")
async def test_transcripts_stay_for_ever_unless_told_otherwise(bench: Bench, autojump_clock: Any) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    await line.send("END")
    bench.clock.step(1000 * DAY_MS)
    await trio.sleep(61)
    assert len((await bench.call("read_conv", conv=line.conv))["rows"]) == 3


async def test_retention_removes_the_rows_of_ended_conversations_alone(autojump_clock: Any) -> None:
    settings = tuned(store={"conversations_days": 1}, calls={"idle_s": 1e9})
    async with open_bench(settings) as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        ended, going = await bench.connect(alfa, brav), await bench.connect(alfa, brav)
        await ended.send("END")
        bench.clock.step(8 * DAY_MS)
        await trio.sleep(61)
        assert await bench.store.entries(log_name(ended.conv)) == []
        assert len(await bench.store.entries(log_name(going.conv))) == 2
        follow = alfa.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 60)
        assert [conv["conv"] for conv in (await bench.call("list_convs", **follow))["convs"]] == [going.conv]


async def test_a_store_that_refuses_delays_the_sweep_and_ends_nothing(
    bench: Bench, autojump_clock: Any
) -> None:
    await bench.open("ALFA")
    assert isinstance(bench.store, MemoryStore)
    sweep = bench.store.sweep

    async def refusing(*_: Any) -> int:
        bench.store.sweep = sweep  # type: ignore[method-assign]  # only the first one
        raise Unavailable

    bench.store.sweep = refusing  # type: ignore[assignment,method-assign]  # a store that refuses once
    await trio.sleep(200)
    assert code(await bench.call("resolve_code", code="ALFA")) == "accepted"
