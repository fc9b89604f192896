"""What the agent holds: each event handed out once, rings that are over forgotten, all hung up at the end."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.wire.keys import SigningKey
from gateways.agent import calls
from gateways.agent.calls import Board, Held
from gateways.client.dealer import Desk
from tests.gateways.client.conftest import Connect
from tests.gateways.client.fake_wire import FakeWire

CONVS = [f"{each:02x}" * 8 for each in range(0xC0, 0xF0)]


async def rung(wire: FakeWire, desk: Desk, board: Board, brav: SigningKey, conv: str = CONVS[0]) -> Held:
    """A ring of BRAV's on the board."""
    await wire.ring(brav, "ALFA", conv)
    ring = await desk.next_ring()
    board.add_ring(ring, await desk.join(ring.conv))
    held = board.find_ring(conv)
    assert held is not None
    return held


async def picked_up(
    wire: FakeWire, desk: Desk, board: Board, nursery: trio.Nursery, brav: SigningKey, conv: str = CONVS[0]
) -> Held:
    """A call that BRAV dialled and the board holds."""
    held = await rung(wire, desk, board, brav, conv)
    await held.call.send("PICKUP")
    board.drop_ring(conv)
    return board.hold(nursery, held)


def kinds(events: list[dict[str, Any]]) -> list[tuple[str, int | None]]:
    return [(each["event"], each.get("n")) for each in events]


@pytest.mark.requirement("agent.news", "agent.untrusted")
async def test_each_event_is_handed_out_once_and_in_order(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey, nursery: trio.Nursery
) -> None:
    async with dealer() as desk:
        await desk.open("ALFA")
        board = Board(desk.pk)
        held = await rung(wire, desk, board, brav)
        await board.wait_news()
        [ring] = board.take()
        assert ring == {
            "event": "ring",
            "call": CONVS[0],
            "with": "BRAV",
            "pk": brav.pk,
            "body": {"code_from": "BRAV", "code_to": "ALFA", "wire": wire.key.pk},
        }
        assert board.take() == []
        await held.call.send("PICKUP")
        board.drop_ring(CONVS[0])
        assert board.hold(nursery, held) is board.hold(nursery, Held(held.call, desk.pk)) is held
        assert board.take() == []  # the ring was told of
        await wire.say(brav, CONVS[0], "RFQ", {"qty": "1"})
        await board.wait_news(held)
        assert kinds(board.take(held)) == [("envelope", 2)]
        assert held.state()["your_turn"]
        await held.call.send("QUOTE", {"px": "1"})
        await wire.say(brav, CONVS[0], "HIT")
        await wire.say(brav, CONVS[0], "END", {"reason": "done"})
        await board.wait_news()
        await held.call.wait_ended()
        assert kinds(board.take()) == [("envelope", 4), ("ended", 5)]
        assert board.calls == {}
        assert held.state()["state"] == "ended"


@pytest.mark.requirement("agent.news")
async def test_news_of_one_call_leaves_those_of_the_others(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey, nursery: trio.Nursery
) -> None:
    async with dealer() as desk:
        await desk.open("ALFA")
        board = Board(desk.pk)
        first, second = [await picked_up(wire, desk, board, nursery, brav, conv) for conv in CONVS[:2]]
        for held in (first, second):
            await wire.say(brav, held.call.conv, "RFQ")
            await board.wait_news(held)
        assert [each["call"] for each in board.take(second)] == [CONVS[1]]
        assert [each["call"] for each in board.take()] == [CONVS[0]]


@pytest.mark.requirement("agent.news")
async def test_a_wait_that_is_cancelled_loses_nothing(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey, nursery: trio.Nursery
) -> None:
    async with dealer() as desk:
        await desk.open("ALFA")
        board = Board(desk.pk)
        held = await picked_up(wire, desk, board, nursery, brav)
        with trio.move_on_after(1) as scope:
            await board.wait_news(held)
        assert scope.cancelled_caught
        await wire.say(brav, CONVS[0], "RFQ")
        with trio.fail_after(1):
            await board.wait_news(held)
        assert kinds(board.take(held)) == [("envelope", 2)]


async def test_one_answer_has_a_bounded_number_of_events(
    autojump_clock: MockClock,
    wire: FakeWire,
    dealer: Connect,
    brav: SigningKey,
    nursery: trio.Nursery,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "MOST_NEWS", 3)
    async with dealer() as desk:
        await desk.open("ALFA")
        board = Board(desk.pk)
        for conv in CONVS[:4]:
            await rung(wire, desk, board, brav, conv)
        held = await picked_up(wire, desk, board, nursery, brav, CONVS[4])
        await wire.say(brav, CONVS[4], "END")
        await held.call.wait_ended()
        assert [[each["call"] for each in board.take()] for _ in range(3)] == [CONVS[:3], CONVS[3:5], []]


async def test_a_call_is_held_though_its_connection_has_just_ended(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey
) -> None:
    async with dealer() as desk:
        await desk.open("ALFA")
        board = Board(desk.pk)
        held = await rung(wire, desk, board, brav)
        async with trio.open_nursery() as nursery:
            pass
        assert board.hold(nursery, held) is held


async def test_a_ring_that_ended_or_that_another_process_answered_is_over(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, alfa: SigningKey, brav: SigningKey
) -> None:
    async with dealer() as desk:
        await desk.open("ALFA")
        board = Board(desk.pk)
        for conv in CONVS[:3]:
            await rung(wire, desk, board, brav, conv)
        await wire.say(brav, CONVS[0], "END")
        await wire.say(alfa, CONVS[1], "PICKUP")
        await wait_all_tasks_blocked()
        assert board.find_ring(CONVS[0]) is None
        assert board.find_ring(CONVS[1]) is None
        assert [ring.conv for ring in board.rings()] == [CONVS[2]]
        assert (await board.wait_ring()).call.conv == CONVS[2]


async def test_rings_and_calls_that_are_over_are_kept_in_bounded_number(
    autojump_clock: MockClock,
    wire: FakeWire,
    dealer: Connect,
    brav: SigningKey,
    nursery: trio.Nursery,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "MOST_RINGS", 2)
    monkeypatch.setattr(calls, "MOST_CALLS", 2)
    async with dealer() as desk:
        await desk.open("ALFA")
        board = Board(desk.pk)
        for conv in CONVS[:3]:
            await rung(wire, desk, board, brav, conv)
        assert [ring.conv for ring in board.rings()] == CONVS[1:3]
        for conv in CONVS[3:5]:
            await picked_up(wire, desk, board, nursery, brav, conv)
        await wire.say(brav, CONVS[4], "END")
        await board.calls[CONVS[4]].call.wait_ended()
        await picked_up(wire, desk, board, nursery, brav, CONVS[5])
        assert list(board.calls) == [CONVS[3], CONVS[5]]


async def test_a_late_answer_and_the_wires_end_say_so(
    autojump_clock: MockClock,
    wire: FakeWire,
    dealer: Connect,
    alfa: SigningKey,
    brav: SigningKey,
    nursery: trio.Nursery,
) -> None:
    async with dealer() as desk:
        await desk.open("ALFA")
        board = Board(desk.pk)
        held = await picked_up(wire, desk, board, nursery, brav)
        await wire.say(brav, CONVS[0], "RFQ")
        await held.call.wait_row(2)
        await held.call.send("QUOTE", {"valid_until_ms": wire.now_ms() - 1})
        await wire.say(brav, CONVS[0], "HIT")
        await wire.say(wire.key, CONVS[0], "END", {"reason": "idle"}, to=alfa.pk)
        await held.call.wait_ended()
        rfq, hit, end = board.take(held)
        assert "late" not in rfq
        assert (hit["type"], hit["late"], hit["from"]) == ("HIT", True, "counterparty")
        assert (end["event"], end["from"], end["body"]) == ("ended", "wire", {"reason": "idle"})


@pytest.mark.requirement("agent.ends")
async def test_all_that_is_held_is_hung_up_side_by_side_and_in_bounded_time(
    autojump_clock: MockClock, wire: FakeWire, dealer: Connect, brav: SigningKey, nursery: trio.Nursery
) -> None:
    async with dealer() as desk:
        await desk.open("ALFA")
        board = Board(desk.pk)
        for conv in CONVS[:3]:
            await picked_up(wire, desk, board, nursery, brav, conv)
        await board.hang_up()
        assert [len(wire.convs[conv]) for conv in CONVS[:3]] == [3, 3, 3]
        ringing, cut_short = [await rung(wire, desk, board, brav, conv) for conv in CONVS[6:8]]
        cut_short.unsettled = ("PICKUP", {})
        await cut_short.call.send("PICKUP")
        await board.hang_up()
        assert [len(wire.convs[each.call.conv]) for each in (ringing, cut_short)] == [1, 3]
        for conv in CONVS[3:6]:
            await picked_up(wire, desk, board, nursery, brav, conv)
        wire.script("send_env", *["swallow"] * 10)
        began = trio.current_time()
        await board.hang_up()
        assert 1 <= trio.current_time() - began <= 3
        assert board.calls == {}
