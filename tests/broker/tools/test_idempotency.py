"""idempotency_key: one effect, one answer."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
import trio

from broker.actors.record import Index, RecordActor
from broker.store.memory import MemoryStore
from broker.store.port import Retention, Unit
from broker.tools import registry
from broker.tools.context import Caller, Context
from broker.tools.idempotency import bind, run_once
from broker.tools.registry import tool
from broker.wire.refusals import Refusal, refuse
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench, tuned

DAY_MS = 86_400_000


class Row(msgspec.Struct, frozen=True):
    count: int


class Add(msgspec.Struct, frozen=True):
    by: int
    once: Any = None


class Counter(RecordActor[Row]):
    kind = "counter"
    type = Row

    def index_of(self, row: Row) -> Index:
        return ()

    async def do(self, command: Add) -> Any:
        row = Row((self.row or Row(0)).count + command.by)
        if row.count > 100:
            return refuse("quota_exceeded", "full")
        if command.by < 0:
            return refuse("not_found", "only up")
        return await self.write(row, {"count": row.count}, once=command.once)


GATE: list[trio.Event] = []


async def add(context: Context, by: int) -> Any:
    """Add to a counter."""
    if GATE:
        await GATE[0].wait()
    return await context.services.house.ask("counter", "c", Add(by, context.once))


@pytest.fixture(autouse=True)
def keyed() -> Iterator[None]:
    for name in ("add", "plus"):
        tool(face="network", title="Add", scope="message", keyed=True, name=name)(add)
    yield
    GATE.clear()
    for name in ("add", "plus"):
        del registry._TOOLS["public", name]


def counting(bench: Bench) -> Bench:
    services = bench.broker._services
    services.house.add(
        "counter",
        lambda key: Counter(key, store=services.store, clock=services.clock, mailbox=64, commit_timeout_s=5),
    )
    return bench


Ask = Callable[..., Any]


def asker(bench: Bench, caller: Caller) -> Ask:
    async def ask(by: int, key: str | None = "k", name: str = "add", who: Caller = caller) -> Any:
        params = {"by": by} if key is None else {"idempotency_key": key, "by": by}
        answer = await bench.broker.call(who, name, json.dumps(params).encode())
        return answer if isinstance(answer, Refusal) else msgspec.json.encode(answer)

    return ask


@pytest.mark.requirement("idempotency.same")
async def test_the_identical_request_gets_the_same_bytes_also_after_a_restart() -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        caller = await make_agent(counting(bench), "alice")
        ask = asker(bench, caller)
        first = await ask(2)
        assert await ask(2, None) == b'{"count":4}'
        assert await ask(2) == first == b'{"count":2}'
    async with open_bench(store=store) as bench:
        assert await asker(counting(bench), caller)(2) == first


@pytest.mark.requirement("idempotency.mismatch")
async def test_another_request_under_the_key_is_refused_and_does_nothing(bench: Bench) -> None:
    ask = asker(bench, await make_agent(counting(bench), "alice"))
    await ask(2)
    assert code(await ask(3)) == "IDEMPOTENCY_MISMATCH"
    assert await ask(1, None) == b'{"count":3}'


@pytest.mark.requirement("idempotency.scope")
async def test_a_key_is_a_subjects_and_a_tools_own(bench: Bench) -> None:
    counting(bench)
    ask = asker(bench, await make_agent(bench, "alice"))
    other = await make_agent(bench, "bob")
    counts = [await ask(1), await ask(1, name="plus"), await ask(1, who=other)]
    assert counts == [b'{"count":1}', b'{"count":2}', b'{"count":3}']


@pytest.mark.requirement("idempotency.at-once")
@pytest.mark.requirement("idempotency.mismatch")
async def test_fifty_at_once_have_one_effect_and_one_answer(bench: Bench) -> None:
    ask = asker(bench, await make_agent(counting(bench), "alice"))
    GATE.append(trio.Event())
    answers: list[Any] = []

    async def one() -> None:
        answers.append(await ask(5))

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(one)
        await trio.testing.wait_all_tasks_blocked()
        assert code(await ask(6)) == "IDEMPOTENCY_MISMATCH"  # while the first is under way
        GATE[0].set()
    assert answers == [b'{"count":5}'] * 50


@pytest.mark.requirement("idempotency.at-once")
async def test_who_has_waited_ten_seconds_is_in_doubt(bench: Bench, autojump_clock: Any) -> None:
    ask = asker(bench, await make_agent(counting(bench), "alice"))
    GATE.append(trio.Event())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, 5)
        await trio.testing.wait_all_tasks_blocked()
        begun = trio.current_time()
        assert code(await ask(5)) == "in_doubt"
        assert trio.current_time() - begun == pytest.approx(10)
        GATE[0].set()
    assert await ask(5) == b'{"count":5}'


@pytest.mark.requirement("idempotency.same")
async def test_a_caller_that_left_finds_what_its_command_did(bench: Bench) -> None:
    ask = asker(bench, await make_agent(counting(bench), "alice"))
    store = bench.store
    assert isinstance(store, MemoryStore)
    store.gate.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, 7)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, 7)  # behind the first, which is being committed
        await trio.testing.wait_all_tasks_blocked()
        store.gate.release()
    assert await ask(7) == b'{"count":7}'
    assert await ask(1, None) == b'{"count":8}'


@pytest.mark.requirement("idempotency.mismatch")
async def test_another_request_while_that_of_a_caller_that_left_goes_on_is_told_so() -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        ask = asker(bench, await make_agent(counting(bench), "alice"))
        answers: list[Any] = []

        async def another() -> None:
            answers.append(code(await ask(3)))

        store.gate.hold()
        async with trio.open_nursery() as leaving:
            leaving.start_soon(ask, 2)
            await trio.testing.wait_all_tasks_blocked()
            leaving.cancel_scope.cancel()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(another)
            await trio.testing.wait_all_tasks_blocked()
            store.gate.release()
        assert answers == ["IDEMPOTENCY_MISMATCH"]
        assert await ask(2) == b'{"count":2}'


@pytest.mark.requirement("idempotency.kept")
async def test_a_final_refusal_is_kept_and_a_passing_one_is_not(bench: Bench) -> None:
    who = await make_agent(counting(bench), "alice")
    ask = asker(bench, who)
    assert code(await ask(-1, "final")) == "not_found"
    assert await ask(100, None) == b'{"count":100}'
    assert code(await ask(-1, "final")) == "not_found"
    assert code(await ask(5, "passing")) == "quota_exceeded"
    assert [
        await bench.store.recall(f"key:{who.principal}:add", key) is None for key in ("final", "passing")
    ] == [
        False,
        True,
    ]


@pytest.mark.requirement("idempotency.kept")
async def test_a_key_is_forgotten_after_thirty_days(bench: Bench) -> None:
    ask = asker(bench, await make_agent(counting(bench), "alice"))
    await ask(1)

    async def sweep() -> None:
        await bench.store.sweep(Retention(now=bench.clock.now_ms(), events_before=0, events_keep=0))

    bench.clock.step(30 * DAY_MS - 60_000)  # beside which the loop's own clock goes on
    await sweep()
    assert code(await ask(2)) == "IDEMPOTENCY_MISMATCH"
    bench.clock.step(60_001)
    assert (
        code(await ask(2)) == "IDEMPOTENCY_MISMATCH"
    )  # and not one that is never settled: it is not swept yet
    await sweep()
    assert await ask(2) == b'{"count":3}'


@pytest.mark.requirement("idempotency.rate")
async def test_keys_of_one_subject_are_so_many_an_hour_and_a_replay_is_none() -> None:
    async with open_bench(tuned(limits={"keyed_per_hour": 2})) as bench:
        ask = asker(bench, await make_agent(counting(bench), "alice"))
        answers = [await ask(1, key) for key in ("k1", "k2", "k1", "k2", "k3")]
        assert [code(answer) for answer in answers] == ["accepted"] * 4 + ["rate_limited"]
        assert await ask(1, None) == b'{"count":3}'  # without a key it leaves nothing


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 129, 5])
async def test_a_key_has_a_form(bench: Bench, key: Any) -> None:
    ask = asker(bench, await make_agent(counting(bench), "alice"))
    refused = await ask(1, key)
    assert (refused.code, refused.detail["path"]) == ("bad_request", "idempotency_key")


@pytest.mark.requirement("idempotency.at-once")
async def test_a_refusal_of_the_moment_gives_way_to_what_an_earlier_try_has_just_done(bench: Bench) -> None:
    context = Context(await make_agent(bench, "alice"), bench.broker._services)
    once = bind(context, "add", "k", b"digest")

    async def overtaken(_: Context) -> Any:  # the try of a caller that left is written while this one looks
        await bench.store.commit(Unit(remember=once.remember({"count": 5})))
        return refuse("quota_exceeded", "that was the last one")

    assert await run_once(context, once, overtaken) == {"count": 5}
