"""Looking things up: a missing id starts no actor; a closed code resolves to nobody."""

from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from broker.app import Caller, Refusal
from broker.store.memory import MemoryStore
from broker.tools.context import Context
from broker.tools.lookup import conv_row, desk_of, live, missing_conv, resolve, unknown_desk
from tests.support.broker import STRANGER, Bench, Line, open_bench


async def test_an_unknown_conversation_starts_no_actor(bench: Bench) -> None:
    services = bench.broker._services
    assert await live(services, "f" * 16) is None
    assert await conv_row(services, "f" * 16) is None
    assert services.house.counts()["conversation"] == 0


async def test_a_known_conversation_is_read_from_the_store_on_demand(
    bench: Bench, autojump_clock: Any
) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    actor = await live(bench.broker._services, line.conv)
    assert actor is not None
    assert actor.state is not None
    assert actor.state.n == 1


async def test_a_code_resolves_to_the_desk_that_holds_it_now(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    services = bench.broker._services
    row = await resolve(services, "ALFA")
    assert row is not None
    assert row == await desk_of(services, alfa.pk)
    await bench.call("close_desk", **alfa.statement("close_desk", bench.broker.pk, bench.ts, code="ALFA"))
    assert await resolve(services, "ALFA") is None
    assert await desk_of(services, alfa.pk) is None
    assert unknown_desk("ALFA").code == "unknown_desk"


async def test_a_missing_conversation_costs_a_stranger_a_guess_and_loopback_nothing(bench: Bench) -> None:
    services = bench.broker._services

    def codes(caller: Caller) -> list[str]:
        return [missing_conv(Context(caller, services)).code for _ in range(21)]

    assert codes(Caller()) == ["unknown_conv"] * 21
    assert codes(STRANGER) == ["unknown_conv"] * 20 + ["rate_limited"]


@pytest.mark.requirement("call.rung-is-known")
async def test_who_hears_the_ring_before_its_commit_returns_can_pick_up(autojump_clock: Any) -> None:
    async with open_bench() as bench:
        assert isinstance(bench.store, MemoryStore)
        caller, called = await bench.open("ALFA"), await bench.open("BRAV")
        params = bench.calling(caller, called)
        line = Line(bench, params["envelope"]["conv"], caller, called, params["sig"])
        reader = await bench.broker.follow(Caller(pk=called.key.pk))
        assert not isinstance(reader, Refusal)
        bench.store.gate.hold(written=True)
        async with reader, trio.open_nursery() as nursery:
            nursery.start_soon(partial(bench.call, "send_call", **params))
            (ring,) = await reader.receive()
            assert ring.kind == "ring"
            nursery.start_soon(line.send, "PICKUP")
            await trio.testing.wait_all_tasks_blocked()
            bench.store.gate.release()
        assert line.n == 1
