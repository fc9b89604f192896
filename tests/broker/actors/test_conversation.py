"""The conversation's actor: one unit a record, in doubt settled by the same bytes, state folded from the log."""

from typing import Any

import msgspec
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.actors.calls import ConvRow, log_name, stream_name
from broker.actors.conversation import ConversationActor
from broker.store.memory import MemoryStore
from broker.store.port import InDoubt, Unavailable
from tests.support.broker import Bench, code, open_bench


def memory(bench: Bench) -> MemoryStore:
    assert isinstance(bench.store, MemoryStore)
    return bench.store


@pytest.mark.requirement("retries.in-doubt")
@pytest.mark.parametrize("applied", [True, False])
async def test_an_envelope_in_doubt_is_settled_by_sending_the_same_bytes(bench: Bench, applied: bool) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    params = line.next("RFQ")
    memory(bench).gate.fail_next(InDoubt(), applied=applied)
    assert code(await bench.call("send_env", **params)) == "in_doubt"
    again = await bench.call("send_env", **params)
    assert again.get("replayed", False) is applied
    rows = (await bench.call("read_conv", conv=line.conv))["rows"]
    assert [row["n"] for row in rows] == [0, 1, 2]


@pytest.mark.requirement("retries.in-doubt")
@pytest.mark.parametrize("applied", [True, False])
async def test_a_call_in_doubt_is_settled_by_sending_the_same_bytes(bench: Bench, applied: bool) -> None:
    caller, called = await bench.open("ALFA"), await bench.open("BRAV")
    params = bench.calling(caller, called)
    memory(bench).gate.fail_next(InDoubt(), applied=applied)
    assert code(await bench.call("send_call", **params)) == "in_doubt"
    again = await bench.call("send_call", **params)
    assert again.get("replayed", False) is applied


@pytest.mark.requirement("retries.unavailable")
async def test_what_is_unavailable_was_not_written_and_may_be_sent_again(bench: Bench) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    params = line.next("RFQ")
    memory(bench).gate.fail_next(Unavailable())
    assert code(await bench.call("send_env", **params)) == "unavailable"
    assert len((await bench.call("read_conv", conv=line.conv))["rows"]) == 2
    answer = await bench.call("send_env", **params)
    assert "replayed" not in answer


@pytest.mark.requirement("retries.acknowledged-is-durable")
async def test_nothing_is_acknowledged_or_shown_before_the_commit(bench: Bench, autojump_clock: Any) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    answers: list[Any] = []

    async def send() -> None:
        answers.append(await line.send("RFQ"))

    async with trio.open_nursery() as nursery:
        memory(bench).gate.hold()
        nursery.start_soon(send)
        await wait_all_tasks_blocked()
        assert answers == []
        assert len((await bench.call("read_conv", conv=line.conv))["rows"]) == 2
        memory(bench).gate.release()
        await wait_all_tasks_blocked()
    assert code(answers[0]) == "accepted"


@pytest.mark.requirement("streams.events")
async def test_ring_env_and_end_reach_both_streams_with_own_marked(bench: Bench) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    await line.send("RFQ")
    await line.send("END")
    caller = await bench.store.events(stream_name(line.caller.pk), 0)
    called = await bench.store.events(stream_name(line.called.pk), 0)
    assert [(event.kind, event.own) for event in caller] == [
        ("env", True), ("env", False), ("env", True), ("end", False),
    ]  # fmt: skip
    assert [(event.kind, event.own) for event in called] == [
        ("ring", False), ("env", True), ("env", False), ("end", True),
    ]  # fmt: skip
    assert [event.position for event in called] == [1, 2, 3, 4]


@pytest.mark.requirement("call.no-task-at-rest")
async def test_conversations_at_rest_cost_no_task_and_wake_on_demand(autojump_clock: Any) -> None:
    async with open_bench() as bench:
        line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
        await trio.sleep(120)
        assert not any(bench.broker.statistics().actors.values())
        assert code(await line.send("RFQ")) == "accepted"


async def test_the_state_read_from_the_log_is_the_state_that_was_folded(autojump_clock: Any) -> None:
    async with open_bench() as bench:
        line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
        for _ in range(45):
            await line.send("CHAT")
            await trio.sleep(1)
        house = bench.broker._services.house
        live = house.alive("conversation", line.conv)
        assert isinstance(live, ConversationActor)
        assert live.state is not None
        read = await live.load()
        assert read is not None
        assert read.spent == pytest.approx(live.state.spent)
        for field in msgspec.structs.fields(read):
            if field.name not in ("spent", "last_mono"):
                assert getattr(read, field.name) == getattr(live.state, field.name), field.name


async def test_the_document_follows_the_call(bench: Bench) -> None:
    line = await bench.dial(await bench.open("ALFA"), await bench.open("BRAV"))

    async def row() -> ConvRow:
        document = await bench.store.get("conv", line.conv)
        assert document is not None
        return msgspec.json.decode(document.doc, type=ConvRow)

    assert (await row()).phase == "ringing"
    await line.send("PICKUP")
    assert (await row()).answered_at is not None
    await line.send("END", {"reason": "done"})
    last = await row()
    assert (last.phase, last.end) == ("ended", {"reason": "done"})
    assert await bench.store.due("conv", "due", 2**62) == []
    assert len(await bench.store.entries(log_name(line.conv))) == 3


@pytest.mark.requirement("call.wire-key")
async def test_the_wire_ends_a_conversation_with_the_key_of_its_call(autojump_clock: Any) -> None:
    from broker.app import open_broker
    from broker.config import Settings
    from broker.wire.keyring import Keyring, WireKey
    from broker.wire.keys import SigningKey

    old, new = SigningKey.generate(), SigningKey.generate()
    async with open_bench(key=old) as bench:
        line = await bench.dial(await bench.open("ALFA"), await bench.open("BRAV"))
    keyring = Keyring((WireKey(old, 0, 1), WireKey(new, 1)))
    async with open_broker(Settings(), bench.store, bench.clock, keyring) as broker:
        await trio.sleep(31)
        bench.broker = broker
        end = (await bench.call("read_conv", conv=line.conv))["rows"][-1]
        assert end["envelope"]["from"] == old.pk
        receipt = await bench.call("receipt", conv=line.conv, n=0)
        assert receipt["receipt"]["wire"] == old.pk
        answer = await bench.call("send_call", **bench.calling(line.caller, line.called, wire=old.pk))
        assert code(answer) == "bad_envelope"
