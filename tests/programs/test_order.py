"""The order of checks where several things are wrong at once: the first failure of the wire's list answers."""

from typing import Any

import pytest

from broker.app import Caller
from broker.store.memory import MemoryStore
from tests.support.broker import STRANGER, Bench, Party, code, open_bench, tuned

FULL = 1
"""Bytes free on a disk that is full."""


def fill_disk(bench: Bench) -> None:
    assert isinstance(bench.store, MemoryStore)
    bench.store.free = FULL


async def open_from(bench: Bench, caller: Caller, name: str, party: Party | None = None) -> str:
    party = party or Party(name)
    statement = party.statement("open_desk", bench.broker.pk, bench.ts, code=name)
    return code(await bench.call("open_desk", caller, **statement))


@pytest.mark.requirement("order.busy-before-disk")
async def test_a_busy_desk_is_told_before_a_full_disk_and_nobody_is_evicted(autojump_clock: Any) -> None:
    async with open_bench(tuned(limits={"conversations": 1})) as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        line = await bench.connect(alfa, brav)
        screen: dict[str, Any] = {"code": "BRAV", "allow": [], "deny": [alfa.pk], "mode": "all"}
        await bench.call("screen_desk", **brav.statement("screen_desk", bench.broker.pk, bench.ts, **screen))
        fill_disk(bench)
        assert code(await bench.call("send_call", **bench.calling(alfa, brav))) == "desk_busy"
        screen["deny"] = []
        await bench.call("screen_desk", **brav.statement("screen_desk", bench.broker.pk, bench.ts, **screen))
        assert code(await bench.call("send_call", **bench.calling(alfa, brav))) == "unavailable"
        assert (await bench.call("read_conv", conv=line.conv))["state"] == "open"


@pytest.mark.requirement("statements.order-of-opening")
async def test_an_opening_is_judged_by_its_code_then_its_key_then_the_limit_then_the_disk(
    autojump_clock: Any,
) -> None:
    async with open_bench(tuned(limits={"opens_per_hour": 2})) as bench:
        alfa = Party("ALFA")
        assert await open_from(bench, STRANGER, "ALFA", alfa) == "accepted"
        assert await open_from(bench, STRANGER, "BRAV") == "accepted"
        fill_disk(bench)
        assert await open_from(bench, STRANGER, "WIRE", alfa) == "code_reserved"
        assert await open_from(bench, STRANGER, "BRAV", alfa) == "code_taken"
        assert await open_from(bench, STRANGER, "CHAR", alfa) == "desk_exists"
        assert await open_from(bench, STRANGER, "ALFA", alfa) == "accepted", "its own row costs nothing"
        assert await open_from(bench, STRANGER, "CHAR") == "rate_limited"
        assert await open_from(bench, Caller(), "CHAR") == "unavailable"


@pytest.mark.requirement("statements.order-of-opening")
async def test_an_opening_that_the_disk_refuses_spends_nothing(autojump_clock: Any) -> None:
    async with open_bench(tuned(limits={"opens_per_hour": 1})) as bench:
        assert isinstance(bench.store, MemoryStore)
        free = bench.store.free
        fill_disk(bench)
        for _ in range(3):
            assert await open_from(bench, STRANGER, "ALFA") == "unavailable"
        bench.store.free = free
        assert await open_from(bench, STRANGER, "ALFA") == "accepted"
        assert await open_from(bench, STRANGER, "BRAV") == "rate_limited"
