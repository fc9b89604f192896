"""The sending tools' limits: thirty in ten seconds, eight conversations, rings, guessing, the disk."""

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.app import Caller
from broker.store.memory import MemoryStore
from tests.support.broker import START_MS, STRANGER, Bench, Party, code, open_bench, tuned


@pytest.mark.requirement("limits.thirty-in-ten-seconds")
async def test_the_31st_envelope_waits_and_waiting_retry_after_is_enough(
    bench: Bench, autojump_clock: Any
) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    await trio.sleep(1)
    for _ in range(28):
        assert code(await line.send("CHAT")) == "accepted"
    params = line.next("CHAT")
    answer = await bench.call("send_env", **params)
    assert code(answer) == "rate_limited"
    assert 8_999 <= answer.detail["retry_after_ms"] <= 9_001
    again = await bench.call("send_env", **params)
    assert again.detail == answer.detail, "a refused one spends nothing"
    await trio.sleep(answer.detail["retry_after_ms"] / 1000)
    assert code(await bench.call("send_env", **params)) == "accepted"


@pytest.mark.requirement("limits.end-always")
async def test_end_is_taken_when_no_token_is_left(bench: Bench, autojump_clock: Any) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    for _ in range(28):
        await line.send("CHAT")
    assert code(await line.send("CHAT")) == "rate_limited"
    assert code(await line.send("END")) == "accepted"


@pytest.mark.requirement("limits.window-across-restart")
async def test_the_window_holds_across_a_restart(autojump_clock: Any) -> None:
    async with open_bench() as bench:
        line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
        for _ in range(28):
            await line.send("CHAT")
        await trio.sleep(4)
    async with open_bench(store=bench.store, clock=bench.clock) as again:
        line.bench = again
        answer = await line.send("CHAT")
        assert code(answer) == "rate_limited"
        assert 5_990 <= answer.detail["retry_after_ms"] <= 6_010
        await trio.sleep(answer.detail["retry_after_ms"] / 1000)
        assert code(await line.send("CHAT")) == "accepted"


@pytest.mark.requirement("limits.window-wall-behind")
async def test_a_wall_clock_set_back_waits_ten_seconds_after_the_start_and_no_more(
    autojump_clock: Any,
) -> None:
    async with open_bench() as bench:
        line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
        for _ in range(28):
            await line.send("CHAT")
    bench.clock.step(-200_000)
    async with open_bench(store=bench.store, clock=bench.clock) as again:
        line.bench = again
        await trio.sleep(3)
        answer = await line.send("CHAT")
        assert 6_990 <= answer.detail["retry_after_ms"] <= 7_010
        await trio.sleep(answer.detail["retry_after_ms"] / 1000)
        accepted = await line.send("CHAT")
        assert accepted["accepted_at"] >= START_MS, "accepted_at never decreases in a conversation"


@pytest.mark.requirement("limits.eight", "call.evicted")
async def test_the_ninth_call_evicts_the_oldest_by_an_end_of_the_wire(
    bench: Bench, autojump_clock: Any
) -> None:
    caller, called, other = await bench.open("ALFA"), await bench.open("BRAV"), await bench.open("CHAR")
    lines = [await bench.connect(caller, called if i % 2 else other) for i in range(8)]
    ninth = await bench.dial(caller, called)
    first = await bench.call("read_conv", conv=lines[0].conv)
    end = first["rows"][-1]["envelope"]
    assert (end["body"], end["from"]) == ({"reason": "evicted", "by": caller.pk}, bench.broker.pk)
    for line in [*lines[1:], ninth]:
        assert (await bench.call("read_conv", conv=line.conv))["state"] != "ended"


@pytest.mark.requirement("limits.eight")
async def test_picking_up_a_ninth_evicts_and_an_unanswered_ring_counts_nothing(
    bench: Bench, autojump_clock: Any
) -> None:
    called = await bench.open("BRAV")
    callers = [await bench.open(f"AAA{chr(65 + i)}") for i in range(10)]
    rings = [await bench.dial(caller, called) for caller in callers]
    for line in rings[:8]:
        assert code(await line.send("PICKUP")) == "accepted"
    states = [(await bench.call("read_conv", conv=line.conv))["state"] for line in rings]
    assert states == ["open"] * 8 + ["ringing"] * 2
    assert code(await rings[9].send("PICKUP")) == "accepted"
    states = [(await bench.call("read_conv", conv=line.conv))["state"] for line in rings]
    assert states == ["ended", *["open"] * 7, "ringing", "open"]


@pytest.mark.requirement("limits.refused-evicts-nobody")
async def test_a_refused_pickup_or_dial_evicts_nobody(bench: Bench, autojump_clock: Any) -> None:
    caller, called = await bench.open("ALFA"), await bench.open("BRAV")
    lines = [await bench.connect(caller, called) for _ in range(8)]
    quiet = await bench.open("QUIE")
    screen = quiet.statement(
        "screen_desk", bench.broker.pk, bench.ts, code="QUIE", allow=[], deny=[], mode="nobody"
    )
    await bench.call("screen_desk", **screen)
    assert code(await bench.call("send_call", **bench.calling(caller, quiet))) == "desk_busy"
    ring = await bench.dial(quiet, called)
    assert code(await bench.call("send_env", **ring.next("PICKUP", prev_sig="0" * 128))) == "bad_prev_sig"
    for line in lines:
        assert (await bench.call("read_conv", conv=line.conv))["state"] == "open"


@pytest.mark.requirement("limits.eight")
async def test_dialling_many_at_once_never_leaves_more_than_eight(bench: Bench, autojump_clock: Any) -> None:
    caller, called = await bench.open("ALFA"), await bench.open("BRAV")

    async def dial() -> None:
        await bench.call("send_call", **bench.calling(caller, called))

    async with trio.open_nursery() as nursery:
        for _ in range(30):
            nursery.start_soon(dial)
    follow = caller.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 60)
    live = await bench.call("list_convs", state="ringing", **follow)
    assert 0 < len(live["convs"]) <= 8


@pytest.mark.requirement("limits.eight", "limits.refused-evicts-nobody")
async def test_refused_dials_beside_a_good_one_evict_nobody_and_free_no_place(
    bench: Bench, autojump_clock: Any
) -> None:
    caller, called, quiet = await bench.open("ALFA"), await bench.open("BRAV"), await bench.open("QUIE")
    screen = {"code": "QUIE", "allow": [], "deny": [], "mode": "nobody"}
    await bench.call("screen_desk", **quiet.statement("screen_desk", bench.broker.pk, bench.ts, **screen))
    lines = [await bench.connect(caller, called) for _ in range(8)]
    answers: list[str] = []

    async def dial(to: Party, conv: str | None = None) -> None:
        answers.append(code(await bench.call("send_call", **bench.calling(caller, to, conv=conv))))

    async with trio.open_nursery() as nursery:
        for to in [quiet] * 6 + [called]:
            nursery.start_soon(dial, to)
    assert sorted(answers) == ["accepted", *["desk_busy"] * 6]
    states = [(await bench.call("read_conv", conv=line.conv))["state"] for line in lines]
    assert states == ["ended", *["open"] * 7]
    assert isinstance(bench.store, MemoryStore)
    bench.store.gate.hold()
    async with trio.open_nursery() as nursery:
        for i in range(12):
            for to in (called, quiet):  # the same conv: the refused one must not free the other's place
                nursery.start_soon(dial, to, f"{i:015x}f")
        await wait_all_tasks_blocked()
        bench.store.gate.release()
    follow = caller.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 60)
    live = [await bench.call("list_convs", state=state, **follow) for state in ("ringing", "open")]
    assert sum(len(page["convs"]) for page in live) <= 8


@pytest.mark.requirement("limits.rings")
async def test_a_desk_with_64_rings_is_busy_and_half_is_kept_for_those_it_knows(autojump_clock: Any) -> None:
    async with open_bench(tuned(limits={"rings": 6, "rings_known": 3})) as bench:
        called = await bench.open("BRAV")
        strangers = [await bench.open(f"AAA{chr(65 + i)}") for i in range(4)]
        friends = [await bench.open(f"BBB{chr(65 + i)}") for i in range(4)]
        for friend in friends:
            await (await bench.connect(friend, called)).send("END")
        answers = [code(await bench.call("send_call", **bench.calling(each, called))) for each in strangers]
        assert answers == ["accepted"] * 3 + ["desk_busy"]
        answers = [code(await bench.call("send_call", **bench.calling(each, called))) for each in friends]
        assert answers == ["accepted"] * 3 + ["desk_busy"]
        await trio.sleep(31)
        assert code(await bench.call("send_call", **bench.calling(friends[3], called))) == "accepted"


@pytest.mark.requirement("limits.rings-per-address")
async def test_one_address_can_not_fill_a_desk_and_loopback_is_exempt(autojump_clock: Any) -> None:
    async with open_bench(tuned(limits={"rings_per_address": 2})) as bench:
        called = await bench.open("BRAV")
        callers = [await bench.open(f"AAA{chr(65 + i)}") for i in range(4)]
        neighbours = [Caller(address=f"2001:db8::{i}", loopback=False) for i in range(4)]
        answers = [
            code(await bench.call("send_call", address, **bench.calling(each, called)))
            for each, address in zip(callers, neighbours, strict=True)
        ]
        assert answers == ["accepted", "accepted", "desk_busy", "desk_busy"], "one /64 is one address"
        assert code(await bench.call("send_call", **bench.calling(callers[3], called))) == "accepted"


@pytest.mark.requirement("limits.guessing")
async def test_twenty_bad_signatures_stop_checks_from_that_address_but_not_replays(
    bench: Bench, autojump_clock: Any
) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    accepted = line.next("RFQ")
    await bench.call("send_env", STRANGER, **accepted)
    line.n, line.sig = accepted["n"], accepted["sig"]
    good = line.next("QUOTE")
    bad = {**good, "sig": "0" * 128}
    for _ in range(20):
        assert code(await bench.call("send_env", STRANGER, **bad)) == "bad_signature"
    answer = await bench.call("send_env", STRANGER, **good)
    assert code(answer) == "rate_limited"
    assert code(await bench.call("read_conv", STRANGER, conv="f" * 16)) == "rate_limited"
    assert code(await bench.call("read_conv", STRANGER, conv=line.conv)) == "accepted"
    assert (await bench.call("send_env", STRANGER, **accepted))["replayed"]
    await trio.sleep(answer.detail["retry_after_ms"] / 1000)
    assert code(await bench.call("send_env", STRANGER, **good)) == "accepted"


@pytest.mark.requirement("limits.disk")
async def test_short_of_disk_no_call_begins_but_open_ones_go_on(autojump_clock: Any) -> None:
    async with open_bench() as bench:
        line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
        bench.store.free_bytes = lambda: 1  # type: ignore[method-assign]  # a full disk
        assert code(await bench.call("send_call", **bench.calling(line.caller, line.called))) == "unavailable"
        charlie = Party("CHAR")
        statement = charlie.statement("open_desk", bench.broker.pk, bench.ts, code="CHAR")
        assert code(await bench.call("open_desk", **statement)) == "unavailable"
        assert code(await line.send("RFQ")) == "accepted"
        assert bench.broker.readiness() != []


@pytest.mark.requirement("limits.window-wall-behind", "limits.window-across-restart")
async def test_a_wall_clock_stepped_after_the_start_frees_no_token_early(autojump_clock: Any) -> None:
    async with open_bench() as bench:
        line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
        for _ in range(28):
            await line.send("CHAT")
    async with open_bench(store=bench.store, clock=bench.clock) as again:
        line.bench = again
        await trio.sleep(2)
        again.clock.step(60_000)
        answer = await line.send("CHAT")
        assert code(answer) == "rate_limited"
        assert 7_990 <= answer.detail["retry_after_ms"] <= 8_010
