"""What a dealer says and hears in a call, while answers get lost, the line breaks and the wire lies."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal, refuse
from gateways.client.call import Call
from gateways.client.clockwork import WireClock
from gateways.client.dealer import Desk
from gateways.client.errors import CallEnded, Refused, WireFault
from tests.gateways.client.fake_wire import Action, FakeWire

Connect = Callable[..., AbstractAsyncContextManager[Desk]]
CONV = "c0" * 8


@asynccontextmanager
async def talking(wire: FakeWire, dealer: Connect, brav: SigningKey, **options: Any) -> AsyncIterator[Call]:
    """A call that BRAV has dialled, ALFA (under test) has picked up, and where ALFA is to speak."""
    with trio.fail_after(600):
        async with dealer(**options) as desk:
            await desk.open("ALFA")
            await wire.ring(brav, "ALFA", CONV)
            ring = await desk.next_ring()
            async with ring.answer() as call:
                await wire.say(brav, CONV, "RFQ")
                assert (await call.receive()).type == "RFQ"
                yield call


def types(wire: FakeWire) -> list[str]:
    return [msgspec.json.decode(row["envelope"])["type"] for row in wire.convs[CONV]]


@pytest.mark.requirement("client.same-bytes")
@pytest.mark.parametrize("action", ["lose answer", "swallow", "break before", "break after"])
async def test_what_is_not_answered_is_sent_again_byte_for_byte(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey, action: Action
) -> None:
    wire.silent_events = True
    async with dealer() as desk:
        await desk.open("ALFA")
        conv = await wire.ring(brav, "ALFA")
        call = await desk.join(conv)
        await wait_all_tasks_blocked()
        wire.script("send_env", action)
        with trio.fail_after(60):
            row = await call.send("PICKUP", {"hello": 1})
        sent = wire.sent("send_env")
        assert len(sent) == 2
        assert sent[0] == sent[1]
        assert wire.convs[conv][1]["sig"] == row.sig
        assert len(wire.convs[conv]) == 2


@pytest.mark.requirement("client.own-event")
async def test_a_lost_acknowledgement_is_made_good_by_ones_own_event(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    async with talking(wire, dealer, brav) as call:
        wire.script("send_env", "lose answer")
        began = trio.current_time()
        row = await call.send("QUOTE", {"px": "1"})
        assert trio.current_time() == began
        assert row.chain == wire.convs[CONV][3]["chain"]
        assert row.accepted_at == wire.convs[CONV][3]["accepted_at"]
        assert len(wire.sent("send_env")) == 2  # PICKUP and QUOTE, once each


@pytest.mark.requirement("client.in-doubt")
@pytest.mark.parametrize("code", ["in_doubt", "unavailable", "overloaded"])
async def test_in_doubt_is_asked_again_with_the_same_bytes_until_it_is_known(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey, code: str
) -> None:
    async with talking(wire, dealer, brav) as call:
        wire.script("send_env", *[refuse(code, "not now")] * 5)
        await call.send("QUOTE")
        assert len(set(wire.sent("send_env")[1:])) == 1
        assert len(wire.sent("send_env")) == 7
    assert types(wire) == ["CALL", "PICKUP", "RFQ", "QUOTE", "END"]


@pytest.mark.requirement("client.rate-limited")
async def test_a_limit_is_waited_out_as_long_as_the_wire_says(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    async with talking(wire, dealer, brav) as call:
        wire.script("send_env", refuse("rate_limited", "too many", retry_after_ms=7300))
        began = trio.current_time()
        await call.send("QUOTE")
        assert trio.current_time() - began == pytest.approx(7.3)


@pytest.mark.requirement("client.one-envelope-an-n")
async def test_after_a_cancelled_send_its_own_bytes_are_settled_before_anything_else_is_signed(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    async with talking(wire, dealer, brav) as call:
        wire.silent_events = True
        wire.script("send_env", "swallow")
        with trio.move_on_after(1):
            await call.send("QUOTE", {"px": "1"})
        with pytest.raises(Refused, match="out_of_turn"):
            await call.send("QUOTE", {"px": "2"})
        first, again = wire.sent("send_env")[1:]
        assert first == again
    assert types(wire) == ["CALL", "PICKUP", "RFQ", "QUOTE", "END"]


async def test_a_cancelled_send_is_settled_when_one_asks(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    async with talking(wire, dealer, brav) as call:
        assert await call.settle() is None
        wire.silent_events = True
        wire.script("send_env", "swallow")
        with trio.move_on_after(1):
            await call.send("QUOTE", {"px": "1"})
        row = await call.settle()
        assert row is not None
        assert row.envelope.body == {"px": "1"}
        assert not call.my_turn


async def test_a_cancelled_send_that_was_not_accepted_leaves_its_place_free(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    async with talking(wire, dealer, brav) as call:
        wire.script("send_env", "swallow", refuse("suspended", "no"))
        with trio.move_on_after(1):
            await call.send("QUOTE", {"px": "1"})
        row = await call.send("QUOTE", {"px": "2"})
        assert row.envelope.body == {"px": "2"}


@pytest.mark.requirement("client.conflict")
async def test_after_a_conflict_the_head_is_read_and_the_other_envelope_is_heard(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    async with talking(wire, dealer, brav) as call:
        wire.silent_events = True
        await wire.say(brav, CONV, "END", {"reason": "too slow"})
        wire.script("send_env", refuse("conflict", "n is taken", head={"n": 3}))
        with pytest.raises(CallEnded) as caught:
            await call.send("QUOTE")
        assert caught.value.reason == "too slow"
        assert len(wire.sent("read_conv")) == 1


async def test_hanging_up_goes_on_at_the_next_n_when_the_other_party_spoke_first(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    async with talking(wire, dealer, brav) as call:
        await call.send("QUOTE")
        wire.silent_events = True
        await wire.say(brav, CONV, "HIT")
        await call.end("stop")
        assert call.ended is not None
        assert call.ended.n == 5
        assert (await call.receive()).type == "HIT"
    assert types(wire) == ["CALL", "PICKUP", "RFQ", "QUOTE", "HIT", "END"]


@pytest.mark.requirement("client.clock")
async def test_a_wrong_clock_of_ones_own_is_corrected_by_the_hello(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    fast = WireClock(lambda: wire.now_ms() + 86_400_000)
    async with talking(wire, dealer, brav, clock=fast) as call:
        row = await call.send("QUOTE")
        assert row.envelope.ts == wire.now_ms() // 1000


@pytest.mark.requirement("client.clock-skew")
async def test_a_refused_clock_is_corrected_and_another_envelope_signed(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    jump = [0]
    clock = WireClock(lambda: wire.now_ms() + jump[0])
    async with talking(wire, dealer, brav, clock=clock) as call:
        jump[0] = 3_600_000
        row = await call.send("QUOTE")
        assert row.envelope.ts == wire.now_ms() // 1000
        refused, accepted = wire.sent("send_env")[1:]
        assert refused != accepted


def changed(**members: Any) -> Action:
    """The honest acknowledgement with these members in place of its own."""
    return lambda answer: {**answer, **members}


@pytest.mark.requirement("client.verifies-acks")
@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (changed(chain="ab" * 32), "the wire says chain"),
        (changed(n=7), "acknowledges n = 7"),
        (changed(conv="00" * 8), "not what was sent"),
        (lambda _: {"ok": True}, "can't be read"),
    ],
)
async def test_a_wire_that_lies_in_an_acknowledgement_is_found_out(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey, lie: Action, words: str
) -> None:
    async with dealer() as desk:
        await desk.open("ALFA")
        wire.silent_events = True
        call = await desk.join(await wire.ring(brav, "ALFA"))
        wire.script("send_env", lie)
        with trio.fail_after(5), pytest.raises(WireFault, match=words):
            await call.send("PICKUP")


async def test_out_of_turn_is_judged_here_and_nothing_is_sent(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    async with talking(wire, dealer, brav) as call:
        await call.send("QUOTE")
        count = len(wire.requests)
        with pytest.raises(Refused, match="out_of_turn"):
            await call.send("QUOTE")
        assert len(wire.requests) == count


async def test_a_body_that_the_wire_would_refuse_is_refused_here(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    async with talking(wire, dealer, brav) as call:
        with pytest.raises(Refused, match="bad_envelope"):
            await call.send("QUOTE", {"text": "x" * 9000})
        with pytest.raises(Refused, match="bad_envelope"):
            await call.send("quote")
        await call.send("QUOTE")


@pytest.mark.requirement("client.final-refusal")
@pytest.mark.parametrize("code", ["bad_signature", "suspended", "not_a_party"])
async def test_a_final_refusal_is_raised_at_once_and_the_place_is_free_again(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey, code: str
) -> None:
    async with talking(wire, dealer, brav) as call:
        wire.script("send_env", refuse(code, "no"))
        with pytest.raises(Refused) as caught:
            await call.send("QUOTE", {"px": "1"})
        assert caught.value.code == code
        await call.send("QUOTE", {"px": "2"})


async def test_the_wires_own_end_is_taken_and_a_strangers_is_not(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    async with talking(wire, dealer, brav) as call:
        await wire.say(wire.key, CONV, "END", {"reason": "idle"}, call.peer)
        with pytest.raises(CallEnded) as caught:
            await call.receive()
        assert caught.value.reason == "idle"

    async def stranger() -> None:
        async with dealer() as desk:
            await desk.open("ALFA")
            call = await desk.join(await wire.ring(brav, "ALFA", "0d" * 8))
            mallory = SigningKey.from_seed("99" * 32)
            await wire.say(mallory, call.conv, "END", {"reason": "idle"}, call.peer)
            await call.wait_ended()

    with trio.fail_after(5), pytest.raises(WireFault, match="neither party nor this wire"):
        await stranger()


async def test_a_call_that_the_wire_does_not_know_is_left_without_a_fault(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    gone: Refusal = refuse("unknown_conv", "no conversation has this id")
    async with talking(wire, dealer, brav):
        wire.script("send_env", gone)


async def test_a_late_confirm_is_marked(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    async with talking(wire, dealer, brav) as call:
        await call.send("QUOTE", {"valid_until_ms": wire.now_ms() + 5000})
        await trio.sleep(6)
        await wire.say(brav, CONV, "HIT")
        row = await call.receive_row()
        assert row.late
        assert not call.transcript.rows[3].late
