"""The broker's verbs: call, admit, follow, watch; what it tells of itself."""

from typing import Any

import msgspec
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.app import Again, Caller, ConvWatch, Ended, Watch
from broker.store.memory import MemoryStore
from broker.store.port import Unavailable
from broker.wire.envelope import build
from broker.wire.refusals import Refusal, refuse
from tests.support.agents import make_agent, suspend
from tests.support.broker import ANYONE, Bench, code, open_bench, tuned


async def test_an_unknown_tool_is_a_lookup_error(bench: Bench) -> None:
    with pytest.raises(LookupError):
        await bench.broker.call(ANYONE, "no_such_tool", b"{}")
    assert "suspend_desk" not in bench.broker.tools


@pytest.mark.requirement("presence.moved-code")
async def test_a_watch_hears_of_a_code_that_is_opened_after_it_began(
    bench: Bench, autojump_clock: Any
) -> None:
    watch = await bench.broker.watch(ANYONE, ["ALFA"])
    assert isinstance(watch, Watch)
    async with watch:
        assert watch.snapshot == {"ALFA": False}
        alfa = await bench.open("ALFA")
        reader = await bench.broker.follow(Caller(pk=alfa.key.pk))
        assert not isinstance(reader, Refusal)
        async with reader:
            with trio.fail_after(5):
                assert await watch.receive() == {"ALFA": True}


@pytest.mark.requirement("retries.unavailable")
async def test_a_store_that_can_not_be_read_is_unavailable_at_every_verb(bench: Bench) -> None:
    alfa = await bench.open("ALFA")

    async def refusing(*_: Any, **__: Any) -> Any:
        raise Unavailable

    bench.store.get = bench.store.head = refusing  # type: ignore[method-assign]  # a store that gives nothing
    me = Caller(pk=alfa.key.pk)
    assert code(await bench.call("resolve_code", code="ALFA")) == "unavailable"
    assert code(await bench.broker.follow(me)) == "unavailable"
    assert code(await bench.broker.watch(ANYONE, ["ALFA"])) == "unavailable"


async def test_a_watch_of_malformed_codes_is_refused(bench: Bench) -> None:
    assert code(await bench.broker.watch(ANYONE, ["alfa"])) == "bad_request"
    assert code(await bench.broker.watch(ANYONE, ["ALFA"] * 65)) == "bad_request"


async def test_stopping_is_told_to_readers_and_to_readiness(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    assert bench.broker.readiness() == []
    reader = await bench.broker.follow(Caller(pk=alfa.key.pk))
    assert not isinstance(reader, Refusal)
    async with reader:
        bench.broker.end_streams(refuse("unavailable", "restarting"))
        with pytest.raises(Ended):
            await reader.receive()
    assert bench.broker.readiness() == ["stopping"]


async def test_a_broker_may_be_opened_again_on_its_store() -> None:
    async with open_bench() as bench:
        alfa = await bench.open("ALFA")
    async with open_bench(store=bench.store, clock=bench.clock) as again:
        assert (await again.call("resolve_code", code="ALFA"))["pk"] == alfa.pk


async def test_whoever_may_read_a_conversation_is_told_that_it_grew(bench: Bench) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    watch = await bench.broker.watch_conv(ANYONE, line.conv)
    assert isinstance(watch, ConvWatch)
    with trio.fail_after(5):
        async with watch:
            await line.send("SAY", {})
            assert await watch.changed()
    assert code(await bench.broker.watch_conv(ANYONE, "00000000000000aa")) == "unknown_conv"


async def test_a_conversation_of_its_parties_alone_can_be_watched_by_them_alone() -> None:
    async with open_bench(tuned(transcripts="parties")) as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        line = await bench.connect(alfa, brav)
        assert code(await bench.broker.watch_conv(ANYONE, line.conv)) == "unknown_conv"
        watch = await bench.broker.watch_conv(Caller(pk=brav.key.pk), line.conv)
        assert isinstance(watch, ConvWatch)
        watch.close()


@pytest.mark.requirement("retries.acknowledged-is-durable")
async def test_no_desk_and_no_call_is_acknowledged_before_its_commit(
    bench: Bench, autojump_clock: Any
) -> None:
    caller, called = await bench.open("ALFA"), await bench.open("BRAV")
    store = bench.store
    assert isinstance(store, MemoryStore)
    answers: list[Any] = []

    async def ask(verb: Any, *args: Any) -> None:
        answers.append(await verb(*args))

    for verb, args in ((bench.open, ("CHAR",)), (bench.dial, (caller, called))):
        answers.clear()
        async with trio.open_nursery() as nursery:
            store.gate.hold()
            nursery.start_soon(ask, verb, *args)
            await wait_all_tasks_blocked()
            assert answers == []
            store.gate.release()
        assert len(answers) == 1


async def test_begin_takes_the_next_envelope_and_leaves_every_other_to_call(bench: Bench) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    tool = bench.broker.tools["send_env"]
    assert tool.quick is not None
    kind = tool.quick.type
    answers: list[Any] = []

    def begin(params: dict[str, Any], **changes: Any) -> bool:
        given = {**params, **changes}
        envelope = build(**{_NAMES.get(name, name): value for name, value in given["envelope"].items()})
        arguments = kind(given["conv"], given["n"], given["from_pk"], given["sig"], msgspec.Raw(envelope))
        return bench.broker.begin(ANYONE, tool, arguments, answers.append)

    next_one = line.next("RFQ")
    assert not begin(next_one, conv="0" * 16), "an unknown conversation"
    assert not begin(next_one, n=next_one["n"] + 1), "params that disagree"
    assert not begin(next_one, from_pk=line.called.pk)
    assert begin(next_one, sig="0" * 128)
    assert code(answers.pop()) == "bad_signature"
    assert begin(next_one, sig="A" * 128)
    assert isinstance(answers.pop(), Again), "the form of a signature is the tool's to refuse"
    assert begin(next_one)
    await wait_all_tasks_blocked()
    assert code(answers.pop()) == "accepted"
    assert not begin(next_one), "a replay"
    assert bench.broker.statistics().accepted == 3


_NAMES = {"from": "sender"}


@pytest.mark.requirement("doors.right-lost")
async def test_what_is_done_while_allowed_is_cancelled_when_the_right_ends(
    bench: Bench, autojump_clock: Any
) -> None:
    agent = await make_agent(bench, "alice")
    while_allowed = bench.broker.while_allowed

    async def done() -> str:
        await trio.lowlevel.checkpoint()
        return "done"

    assert await while_allowed(agent, done) == "done"
    assert await while_allowed(ANYONE, done) == "done"
    start = trio.current_time()
    short = msgspec.structs.replace(agent, until=bench.ts + 5)
    assert code(await while_allowed(short, trio.sleep_forever)) == "unauthenticated"
    assert trio.current_time() - start == pytest.approx(5, abs=1)
    answers: list[Any] = []

    async def wait() -> None:
        answers.append(await while_allowed(agent, trio.sleep_forever))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.sleep(1)
        suspend(bench, agent)
    assert code(answers[0]) == "suspended"
    assert trio.current_time() - start == pytest.approx(6, abs=1)
    assert code(await while_allowed(agent, done)) == "suspended"
