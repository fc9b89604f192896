"""A desk: opening, dialling, answering, and what it does when the stream breaks or lies."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.wire.keys import SigningKey
from broker.wire.refusals import refuse
from gateways.client.call import Call
from gateways.client.dealer import Desk
from gateways.client.errors import CallEnded, Refused, WireFault
from tests.gateways.client.fake_wire import FakeWire

Connect = Callable[..., AbstractAsyncContextManager[Desk]]


async def pick_up(wire: FakeWire, brav: SigningKey) -> str:
    """BRAV answers the newest conversation as soon as it rings."""
    await wire.called.wait()
    conv = next(reversed(wire.convs))
    await wire.say(brav, conv, "PICKUP")
    return conv


async def test_a_desk_opens_dials_deals_and_hangs_up(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    wire.desks["BRAV"] = brav.pk
    with trio.fail_after(5):
        async with dealer() as desk, trio.open_nursery() as nursery:
            await desk.open("ALFA")
            nursery.start_soon(pick_up, wire, brav)
            async with desk.dial("BRAV", {"note": "hello"}) as call:
                await call.send("RFQ", {"qty": "5"})
                await wire.say(brav, call.conv, "QUOTE", {"px": "1.1"})
                quote = await call.receive()
                assert quote.type == "QUOTE"
                assert quote.body == {"px": "1.1"}
            assert call.ended is not None
            assert call.ended.sender == desk.pk
    types = [msgspec.json.decode(row["envelope"])["type"] for row in wire.convs[call.conv]]
    assert types == ["CALL", "PICKUP", "RFQ", "QUOTE", "END"]


@pytest.mark.requirement("client.body-wire")
async def test_a_call_names_its_wire_and_both_codes(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    wire.desks["BRAV"] = brav.pk
    with trio.fail_after(5):
        async with dealer() as desk, trio.open_nursery() as nursery:
            await desk.open("ALFA")
            nursery.start_soon(pick_up, wire, brav)
            async with desk.dial("BRAV", {"code_from": "ZZZZ"}) as call:
                body = call.transcript.rows[0].envelope.body
    assert body == {"code_from": "ALFA", "code_to": "BRAV", "wire": wire.key.pk}


async def test_a_ring_is_answered_and_heard_until_the_end(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    heard: list[str] = []
    with trio.fail_after(5):
        async with dealer() as desk:
            await desk.open("ALFA")
            conv = await wire.ring(brav, "ALFA")
            async for ring in desk.rings():
                assert (ring.conv, ring.caller, ring.code_from) == (conv, brav.pk, "BRAV")
                async with ring.answer() as call:
                    await wire.say(brav, conv, "RFQ")
                    async for envelope in call:
                        heard.append(envelope.type)
                        await call.send("QUOTE", {"px": "1"})
                        await wire.say(brav, conv, "END", {"reason": "passed"})
                assert call.ended is not None
                assert call.ended.body == {"reason": "passed"}
                break
    assert heard == ["RFQ"]


async def test_a_ring_that_came_before_the_connection_is_found(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey, alfa: SigningKey
) -> None:
    wire.desks["ALFA"] = alfa.pk
    conv = await wire.ring(brav, "ALFA")
    with trio.fail_after(5):
        async with dealer() as desk:
            async for ring in desk.rings():
                assert ring.conv == conv
                await ring.decline("busy")
                break
    assert msgspec.json.decode(wire.convs[conv][1]["envelope"])["body"] == {"reason": "busy"}


async def test_a_ring_that_another_process_of_the_key_picked_up_is_left_out(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey, alfa: SigningKey
) -> None:
    with trio.fail_after(5):
        async with dealer() as desk:
            await desk.open("ALFA")
            taken = await wire.ring(brav, "ALFA", "01" * 8)
            await wire.say(alfa, taken, "PICKUP")
            free = await wire.ring(brav, "ALFA", "02" * 8)
            assert (await desk.next_ring()).conv == free
            await wire.say(brav, taken, "RFQ")  # nobody's business here


async def test_several_tasks_share_the_rings_and_each_gets_its_own(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey, nursery: trio.Nursery
) -> None:
    got: list[str] = []

    async def take(desk: Desk) -> None:
        got.append((await desk.next_ring()).conv)

    with trio.fail_after(5):
        async with dealer() as desk:
            await desk.open("ALFA")
            for _ in range(3):
                nursery.start_soon(take, desk)
            await wait_all_tasks_blocked()
            for n in range(3):
                await wire.ring(brav, "ALFA", f"{n:016x}")
            await wait_all_tasks_blocked()
    assert sorted(got) == [f"{n:016x}" for n in range(3)]


async def test_a_ring_that_ended_before_it_was_seen_is_left_out(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    with trio.fail_after(5):
        async with dealer() as desk:
            await desk.open("ALFA")
            first = await wire.ring(brav, "ALFA", "01" * 8)
            await wire.say(brav, first, "END")
            second = await wire.ring(brav, "ALFA", "02" * 8)
            async for ring in desk.rings():
                assert ring.conv == second
                break


async def test_a_call_that_ends_while_picking_up_ends_the_block_quietly(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    with trio.fail_after(5):
        async with dealer() as desk:
            await desk.open("ALFA")
            conv = await wire.ring(brav, "ALFA")
            async for ring in desk.rings():
                wire.silent_events = True
                await wire.say(brav, conv, "END", {"reason": "changed my mind"})
                async with ring.answer() as call:
                    await call.send("QUOTE")
                    pytest.fail("nothing can be said in a call that is over")
                assert ring.ended
                break


async def test_nobody_picks_up(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    wire.desks["BRAV"] = brav.pk

    async def time_out() -> None:
        await wire.called.wait()
        conv, (row,) = next(iter(wire.convs.items()))
        caller = msgspec.json.decode(row["envelope"])["from"]
        await wire.say(wire.key, conv, "END", {"reason": "no_answer"}, caller)

    with trio.fail_after(5):
        async with dealer() as desk, trio.open_nursery() as nursery:
            await desk.open("ALFA")
            nursery.start_soon(time_out)
            with pytest.raises(CallEnded) as caught:
                async with desk.dial("BRAV"):
                    pytest.fail("nobody is there")
    assert caught.value.reason == "no_answer"


async def test_an_unknown_code_is_refused_before_anything_is_signed(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect
) -> None:
    with trio.fail_after(5):
        async with dealer() as desk:
            await desk.open("ALFA")
            with pytest.raises(Refused) as caught:
                async with desk.dial("NONE"):
                    pass
    assert caught.value.code == "unknown_desk"
    assert wire.sent("send_call") == []


async def test_leaving_the_connection_in_a_call_hangs_up(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    wire.desks["BRAV"] = brav.pk
    with trio.fail_after(5):
        with trio.CancelScope() as scope:
            async with dealer() as desk, trio.open_nursery() as nursery:
                await desk.open("ALFA")
                nursery.start_soon(pick_up, wire, brav)
                async with desk.dial("BRAV") as call:
                    scope.cancel()
                    await trio.sleep_forever()
    last = msgspec.json.decode(wire.convs[call.conv][-1]["envelope"])
    assert (last["type"], last["body"]) == ("END", {"reason": "hung_up"})


@pytest.mark.requirement("client.repeats")
async def test_repeats_are_dropped(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    with trio.fail_after(5):
        async with dealer() as desk:
            await desk.open("ALFA")
            conv = await wire.ring(brav, "ALFA")
            ring = await desk.next_ring()
            async with ring.answer() as call:
                await wire.say(brav, conv, "RFQ")
                (session,) = wire.sessions
                session.position = 0
                await wire.push()
                assert (await call.receive()).type == "RFQ"
                with trio.move_on_after(1):
                    pytest.fail(f"a repeat was heard: {await call.receive()}")
            with trio.move_on_after(1):
                async for again in desk.rings():
                    pytest.fail(f"a repeat rang: {again.conv}")


@pytest.mark.requirement("client.resume")
async def test_a_broken_connection_comes_back_by_cursor_with_nothing_missing(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    with trio.fail_after(60):
        async with dealer() as desk:
            await desk.open("ALFA")
            conv = await wire.ring(brav, "ALFA")
            ring = await desk.next_ring()
            async with ring.answer() as call:
                await trio.sleep(1)
                before = desk.cursor
                await wire.drop_all()
                await wire.say(brav, conv, "RFQ", {"qty": "1"})
                assert (await call.receive()).body == {"qty": "1"}
                follows = wire.sent("follow")
                assert msgspec.json.decode(follows[-1]) == {"after": before}


@pytest.mark.requirement("client.retry-hint")
async def test_after_a_restart_the_client_waits_as_long_as_the_hint_says(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect
) -> None:
    with trio.fail_after(60):
        async with dealer() as desk:
            await desk.open("ALFA")
            began = trio.current_time()
            await wire.drop_all(1012, '{"retry_in_ms":4200}')
            await desk.open("ALFA")
            assert trio.current_time() - began >= 4.2
    assert wire.connections == 2


@pytest.mark.requirement("client.backoff")
async def test_attempts_to_reconnect_come_further_and_further_apart(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect
) -> None:
    with trio.fail_after(60):
        async with dealer() as desk:
            await desk.open("ALFA")
            began = trio.current_time()
            wire.refuse_connections = 4
            await wire.drop_all()
            await desk.open("ALFA")
            # 0.1, 0.2, 0.4, 0.8 and 1.6 s, each three quarters of it by the chance of this test
            assert trio.current_time() - began == pytest.approx(0.75 * 3.1)


@pytest.mark.requirement("client.gap")
async def test_what_a_trimmed_stream_lost_is_read_from_the_conversation(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    with trio.fail_after(60):
        async with dealer() as desk:
            await desk.open("ALFA")
            conv = await wire.ring(brav, "ALFA")
            ring = await desk.next_ring()
            async with ring.answer() as call:
                await wire.drop_all()
                wire.recovered = False
                await wire.say(brav, conv, "RFQ", {"qty": "7"})
                missed = await wire.ring(brav, "ALFA", "07" * 8)
                assert (await call.receive()).body == {"qty": "7"}
                async for other in desk.rings():
                    assert other.conv == missed
                    break


async def test_an_event_beyond_the_next_one_makes_the_client_read_what_is_between(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    with trio.fail_after(5):
        async with dealer() as desk:
            await desk.open("ALFA")
            conv = await wire.ring(brav, "ALFA")
            ring = await desk.next_ring()
            async with ring.answer() as call:
                wire.silent_events = True
                await wire.say(brav, conv, "RFQ")
                (session,) = wire.sessions
                assert session.position is not None
                session.position += 1
                wire.silent_events = False
                await wire.say(brav, conv, "END", {"reason": "oh"})
                assert (await call.receive()).type == "RFQ"
                assert (await call.wait_ended()).body == {"reason": "oh"}


@pytest.mark.parametrize(
    ("member", "value", "words"),
    [
        ("chain", "00" * 32, "the wire says chain"),
        ("sig", "00" * 64, "the signature does not verify"),
    ],
)
@pytest.mark.requirement("client.verifies-events")
async def test_a_wire_that_lies_in_an_event_ends_everything(
    autojump_clock: MockClock,
    wire: FakeWire,
    dealer: Connect,
    brav: SigningKey,
    alfa: SigningKey,
    member: str,
    value: str,
    words: str,
) -> None:
    wire.desks["ALFA"] = alfa.pk
    await wire.ring(brav, "ALFA")
    wire.events[alfa.pk][0][1][member] = value

    async def listen() -> None:
        async with dealer(after="t.e.0") as desk:
            await desk.next_ring()

    with trio.fail_after(5), pytest.raises(WireFault, match=words):
        await listen()


@pytest.mark.requirement("client.verifies-events")
@pytest.mark.parametrize(
    ("to", "wire_pk", "words"),
    [("brav", None, "a ring for another key"), ("alfa", "ee" * 32, "another wire")],
)
async def test_a_ring_that_belongs_elsewhere_ends_everything(
    autojump_clock: MockClock,
    wire: FakeWire,
    dealer: Connect,
    brav: SigningKey,
    alfa: SigningKey,
    to: str,
    wire_pk: str | None,
    words: str,
) -> None:
    caller, called = SigningKey.from_seed("cc" * 32), {"alfa": alfa, "brav": brav}[to]
    body = {"code_from": "CCCC", "code_to": "ALFA", **({"wire": wire_pk} if wire_pk else {})}

    async def listen() -> None:
        async with dealer() as desk:
            await wire.say(caller, "cc" * 8, "CALL", body, called.pk)
            wire.events[alfa.pk] = wire.events[called.pk]
            await wire.push()
            await desk.next_ring()

    with trio.fail_after(5), pytest.raises(WireFault, match=words):
        await listen()


async def test_a_conversation_is_joined_again_after_a_restart(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    with trio.fail_after(5):
        async with dealer() as desk:
            await desk.open("ALFA")
            conv = await wire.ring(brav, "ALFA")
        async with dealer() as desk:
            call = await desk.join(conv)
            await call.send("PICKUP")
            await wire.say(brav, conv, "RFQ")
            assert (await call.receive()).type == "RFQ"
            with pytest.raises(Refused, match="unknown_conv"):
                await desk.join("99" * 8)


async def test_a_desk_that_is_not_open_can_not_dial(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect
) -> None:
    with trio.fail_after(5):
        async with dealer() as desk:
            with pytest.raises(Refused, match="open a desk before dialling"):
                async with desk.dial("BRAV"):
                    pass
    assert abs(desk.now_ms() - wire.now_ms()) < 1000


async def test_a_refused_desk_is_told(autojump_clock: MockClock, wire: FakeWire, dealer: Connect) -> None:
    wire.script("open_desk", refuse("code_taken", "another desk holds this code"))
    with trio.fail_after(5):
        async with dealer() as desk:
            with pytest.raises(Refused) as caught:
                await desk.open("ALFA")
    assert caught.value.code == "code_taken"
    assert desk.code is None


async def test_a_watcher_sees_all_that_the_stream_brings(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    seen: list[tuple[str, bytes]] = []
    with trio.fail_after(5):
        async with dealer(on_event=lambda kind, params: seen.append((kind, params))) as desk:
            await desk.open("ALFA")
            conv = await wire.ring(brav, "ALFA")
            await desk.next_ring()
    assert [(kind, msgspec.json.decode(params)["conv"]) for kind, params in seen] == [("ring", conv)]


def test_a_call_is_what_dial_and_answer_give() -> None:
    assert {"send", "receive", "end"} <= set(dir(Call))
