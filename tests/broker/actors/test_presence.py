import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.actors.presence import Presence, Watch
from broker.clock import VirtualClock
from broker.config import Presence as Settings

A, B = "a" * 64, "b" * 64


@pytest.fixture
async def presence(clock: VirtualClock, nursery: trio.Nursery) -> Presence:
    made = Presence(Settings(), clock)
    nursery.start_soon(made.run)
    return made


async def changes(watch: Watch, within: float = 1000) -> list[tuple[float, dict[str, bool]]]:
    """(when, what) of all answers in a time."""
    got: list[tuple[float, dict[str, bool]]] = []
    with trio.move_on_after(within):
        await record(watch, got)
    return got


async def record(watch: Watch, into: list[tuple[float, dict[str, bool]]]) -> None:
    while True:
        what = await watch.receive()
        into.append((round(trio.current_time(), 6), what))


@pytest.mark.requirement("presence.open-stream", "presence.linger")
async def test_a_desk_is_online_while_a_stream_is_open_and_15_seconds_longer(
    presence: Presence, autojump_clock: MockClock
) -> None:
    assert not presence.online(A)
    with presence.attach(A):
        await trio.sleep(10_000)
        assert presence.online(A)
    closed = trio.current_time()
    await trio.sleep_until(closed + 14.999)
    assert presence.online(A)
    await trio.sleep_until(closed + 15)
    assert not presence.online(A)
    await trio.sleep(0.001)
    assert presence.statistics().desks == 0


@pytest.mark.requirement("presence.open-stream")
async def test_one_of_two_sockets_closes_and_the_desk_stays_online(
    presence: Presence, autojump_clock: MockClock
) -> None:
    with presence.attach(A):
        with presence.attach(A):
            await trio.sleep(1)
        await trio.sleep(1000)
        assert presence.online(A)


@pytest.mark.requirement("presence.poll")
async def test_a_desk_is_online_for_60_seconds_after_a_poll(
    presence: Presence, autojump_clock: MockClock
) -> None:
    presence.polled(A)
    await trio.sleep(59.999)
    assert presence.online(A)
    presence.polled(A)
    await trio.sleep(59.999)
    assert presence.online(A)
    await trio.sleep(0.001)
    assert not presence.online(A)


async def test_a_stream_closing_does_not_shorten_what_a_poll_gave(
    presence: Presence, autojump_clock: MockClock
) -> None:
    with presence.attach(A):
        presence.polled(A)
        await trio.sleep(1)
    await trio.sleep(58)
    assert presence.online(A)
    assert presence.present() == [A]
    await trio.sleep(1)
    assert presence.present() == []


async def test_online_is_right_without_the_timer_task(clock: VirtualClock, autojump_clock: MockClock) -> None:
    presence = Presence(Settings(), clock)
    presence.polled(A)
    await trio.sleep(60)
    assert not presence.online(A)
    presence.polled(A)
    assert presence.online(A)


@pytest.mark.requirement("presence.snapshot-then-changes")
async def test_a_watch_gives_a_snapshot_then_changes_to_the_second(
    presence: Presence, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    presence.polled(B)
    got: list[tuple[float, dict[str, bool]]] = []
    async with presence.watch({"EURO": A, "CABL": B, "NONE": None}) as watch:
        assert watch.snapshot == {"EURO": False, "CABL": True, "NONE": False}
        nursery.start_soon(record, watch, got)
        await trio.sleep(5)
        with presence.attach(A), presence.attach(A):
            await trio.sleep(5)
        await trio.sleep(100)
        assert got == [(5, {"EURO": True}), (25, {"EURO": False}), (60, {"CABL": False})]
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("presence.coalesced")
async def test_changes_come_at_most_once_a_second_and_in_one_answer(
    presence: Presence, autojump_clock: MockClock
) -> None:
    async with presence.watch({"EURO": A, "CABL": B}) as watch:
        await trio.sleep(0.2)
        presence.polled(A)
        await trio.sleep(0.2)
        presence.polled(B)
        assert await changes(watch, 30) == [(1, {"EURO": True, "CABL": True})]


@pytest.mark.requirement("presence.coalesced")
async def test_the_second_runs_from_the_last_answer(
    presence: Presence, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    got: list[tuple[float, dict[str, bool]]] = []
    async with presence.watch({"EURO": A, "CABL": B}) as watch:
        nursery.start_soon(record, watch, got)
        await trio.sleep(5)
        presence.polled(A)
        await trio.sleep(0.25)
        presence.polled(B)
        await trio.sleep(10)
        assert got == [(5, {"EURO": True}), (6, {"CABL": True})]
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("presence.coalesced")
async def test_what_changes_back_within_the_second_is_not_told(
    clock: VirtualClock, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    presence = Presence(Settings(linger_s=0.2), clock)
    nursery.start_soon(presence.run)
    got: list[tuple[float, dict[str, bool]]] = []
    async with presence.watch({"EURO": A}) as watch:
        nursery.start_soon(record, watch, got)
        with presence.attach(A):
            await trio.sleep(0.1)
        await trio.sleep(2)
        assert got == []
        with presence.attach(A):
            await trio.sleep(3)
            for _ in range(5):
                with presence.attach(A):
                    await trio.sleep(0.1)
        await trio.sleep(0.1)
        with presence.attach(A):
            await trio.sleep(10)
        assert got == [(2.1, {"EURO": True})]
        nursery.cancel_scope.cancel()


async def test_a_cancelled_receive_loses_no_change(presence: Presence, autojump_clock: MockClock) -> None:
    async with presence.watch({"EURO": A}) as watch:
        presence.polled(A)
        for _ in range(2):
            with trio.move_on_after(0.3) as scope:
                await watch.receive()
            assert scope.cancelled_caught
        assert await watch.receive() == {"EURO": True}


@pytest.mark.requirement("presence.moved-code")
async def test_a_moved_code_is_watched_at_its_new_key(presence: Presence, autojump_clock: MockClock) -> None:
    presence.polled(A)
    async with presence.watch({"EURO": A}) as watch, presence.watch({"CABL": A}) as other:
        presence.rebind("EURO", B)
        presence.rebind("NONE", B)
        assert await changes(watch, 5) == [(1, {"EURO": False})]
        presence.polled(B)
        assert await changes(watch, 5) == [(5, {"EURO": True})]
        presence.rebind("EURO", None)
        assert await changes(watch, 5) == [(10, {"EURO": False})]
        assert await changes(other, 50) == [(60, {"CABL": False})]


async def test_a_poll_that_ends_before_others_moves_the_timer_forward(
    presence: Presence, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    presence.polled(A)
    got: list[tuple[float, dict[str, bool]]] = []
    async with presence.watch({"EURO": A, "CABL": B}) as watch:
        nursery.start_soon(record, watch, got)
        await trio.sleep(10)
        with presence.attach(B):
            await trio.sleep(2)
        await trio.sleep(100)
        assert got == [(10, {"CABL": True}), (27, {"CABL": False}), (60, {"EURO": False})]
        nursery.cancel_scope.cancel()


async def test_many_polls_of_a_desk_take_one_place_in_the_timer(
    presence: Presence, autojump_clock: MockClock
) -> None:
    for _ in range(1000):
        presence.polled(A)
        with presence.attach(A):
            pass
    assert len(presence._ends) == 1
    await trio.sleep(61)
    assert (presence.statistics().desks, len(presence._ends)) == (0, 0)


async def test_a_closed_watch_leaves_nothing_and_wakes_the_one_who_waits(
    presence: Presence, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    watch = presence.watch({"EURO": A, "NONE": None})
    assert presence.statistics().watches == 1

    async def wait() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await watch.receive()

    async with trio.open_nursery() as waiting:
        waiting.start_soon(wait)
        await wait_all_tasks_blocked()
        watch.close()
        watch.close()
    assert presence.statistics().watches == 0
    assert (presence._watching, presence._labels) == ({}, {})
