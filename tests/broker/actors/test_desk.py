"""The desk's actor: counts refolded from the log, a row that moved under it, what waits, what survives a restart."""

from typing import Any

import msgspec
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.actors.actor import Letter
from broker.actors.conversation import Dialled, Doubtful
from broker.actors.desk import DeskActor
from broker.actors.deskcommands import ReservePlace, ReserveRing
from broker.app import Caller
from broker.core.desk import CodeRow, DeskRow, Place, Ring
from broker.store.memory import MemoryStore
from broker.store.port import InDoubt, Put, Unit
from broker.wire.canonical import encode
from broker.wire.keys import SigningKey
from tests.support.broker import Bench, Line, Party, code, open_bench, tuned

DAY_MS = 86_400_000
OPERATOR = Caller(operator=True)


async def ask(bench: Bench, do: str, by: Party, **members: Any) -> Any:
    """Sign a statement and call the tool of its name."""
    return await bench.call(do, **by.statement(do, bench.broker.pk, bench.ts, **members))


def moving(bench: Bench, by: Party, desk: str, to: SigningKey) -> dict[str, Any]:
    """The params of move_desk, signed by both keys."""
    params = by.statement("move_desk", bench.broker.pk, bench.ts, code=desk, new_pk=to.pk)
    return {**params, "new_sig": to.sign(encode(params["statement"]))}


def actor_of(bench: Bench, party: Party) -> DeskActor:
    actor = bench.broker._services.house.alive("desk", party.pk)
    assert isinstance(actor, DeskActor)
    return actor


async def places_of(bench: Bench, party: Party) -> list[str]:
    """The conversations that count, oldest first, once the actor has heard all that it was told."""
    await wait_all_tasks_blocked()
    state = actor_of(bench, party).state
    assert state is not None
    return list(state.places.open)


async def ended(bench: Bench, lines: list[Line]) -> list[int]:
    """Which of these have ended."""
    found = [(await bench.call("read_conv", conv=line.conv))["state"] for line in lines]
    return [index for index, state in enumerate(found) if state == "ended"]


async def picked_up_backwards(bench: Bench) -> tuple[Party, list[Line]]:
    """Eight calls to BRAV, picked up from the last to the first."""
    called = await bench.open("BRAV")
    lines = [await bench.dial(await bench.open(f"AAA{chr(65 + i)}"), called) for i in range(8)]
    for line in reversed(lines):
        assert code(await line.send("PICKUP")) == "accepted"
    return called, lines


@pytest.mark.requirement("limits.counts-folded")
async def test_places_are_in_the_order_of_their_commits_again_after_leaving_memory(
    bench: Bench, autojump_clock: Any
) -> None:
    called, lines = await picked_up_backwards(bench)
    before = await places_of(bench, called)
    assert before == [line.conv for line in reversed(lines)]
    await trio.sleep(120)
    assert bench.broker.statistics().actors["desk"] == 0
    await bench.dial(called, await bench.open("CHAR"))
    assert await ended(bench, lines) == [7], "the one picked up first, not the one dialled first"
    assert (await places_of(bench, called))[:7] == before[1:]


@pytest.mark.requirement("limits.counts-folded")
async def test_places_are_in_the_order_of_their_commits_again_after_a_restart(autojump_clock: Any) -> None:
    async with open_bench() as bench:
        called, lines = await picked_up_backwards(bench)
        before = await places_of(bench, called)
    async with open_bench(store=bench.store, clock=bench.clock) as again:
        again._convs = 100  # other ids than before the restart
        await again.dial(called, await again.open("CHAR"))
        assert await ended(again, lines) == [7]
        assert (await places_of(again, called))[:7] == before[1:]


@pytest.mark.requirement("limits.counts-folded")
async def test_the_oldest_is_the_first_committed_whoever_was_told_first(bench: Bench) -> None:
    caller, called = await bench.open("ALFA"), await bench.open("BRAV")
    convs = [(await bench.connect(caller, called)).conv for _ in range(8)]
    actor = actor_of(bench, caller)
    assert actor.state is not None
    places = actor.state.places
    places.open = dict.fromkeys(reversed(convs))  # as tasks that a group commit woke in another order tell it
    answer = await bench.broker._services.house.ask("desk", caller.pk, ReservePlace("f" * 16, 0))
    assert answer == Place((convs[0],))


@pytest.mark.requirement("limits.counts-folded", "limits.eight")
async def test_a_call_that_was_in_doubt_and_landed_takes_its_place(bench: Bench, autojump_clock: Any) -> None:
    assert isinstance(bench.store, MemoryStore)
    caller, called = await bench.open("ALFA"), await bench.open("BRAV")
    params = bench.calling(caller, called)
    bench.store.gate.fail_next(InDoubt(), applied=True, when=lambda unit: unit.append is not None)
    assert code(await bench.call("send_call", **params)) == "in_doubt"
    lines = [await bench.connect(caller, called) for _ in range(7)]
    await trio.sleep(6)  # its reservation is over
    await bench.connect(caller, called)
    transcript = await bench.call("read_conv", conv=params["envelope"]["conv"])
    assert transcript["rows"][-1]["envelope"]["body"] == {"reason": "evicted", "by": caller.pk}
    assert await ended(bench, lines) == []


@pytest.mark.requirement("limits.counts-folded", "limits.eight")
async def test_a_pickup_that_was_in_doubt_and_landed_takes_its_place(
    bench: Bench, autojump_clock: Any
) -> None:
    assert isinstance(bench.store, MemoryStore)
    called = await bench.open("BRAV")
    callers = [await bench.open(f"AAA{chr(65 + i)}") for i in range(9)]
    doubtful, *lines = [await bench.dial(caller, called) for caller in callers]
    bench.store.gate.fail_next(InDoubt(), applied=True, when=lambda unit: unit.append is not None)
    assert code(await doubtful.send("PICKUP")) == "in_doubt"
    for line in lines[:7]:
        await line.send("PICKUP")
    await trio.sleep(6)
    await lines[7].send("PICKUP")
    assert await ended(bench, [doubtful, *lines]) == [0]


@pytest.mark.requirement("limits.counts-folded")
async def test_a_call_in_doubt_that_was_not_written_leaves_its_place_free(
    bench: Bench, autojump_clock: Any
) -> None:
    assert isinstance(bench.store, MemoryStore)
    caller, called = await bench.open("ALFA"), await bench.open("BRAV")
    bench.store.gate.fail_next(InDoubt(), when=lambda unit: unit.append is not None)
    assert code(await bench.call("send_call", **bench.calling(caller, called))) == "in_doubt"
    await trio.sleep(6)
    lines = [await bench.connect(caller, called) for _ in range(8)]
    assert await ended(bench, lines) == []
    assert await places_of(bench, caller) == [line.conv for line in lines]


async def test_an_end_that_was_in_doubt_and_landed_gives_its_place_back(
    bench: Bench, autojump_clock: Any
) -> None:
    assert isinstance(bench.store, MemoryStore)
    caller, called = await bench.open("ALFA"), await bench.open("BRAV")
    lines = [await bench.connect(caller, called) for _ in range(8)]
    bench.store.gate.fail_next(InDoubt(), applied=True, when=lambda unit: unit.append is not None)
    assert code(await lines[5].send("END")) == "in_doubt"
    await bench.connect(caller, called)
    assert await ended(bench, lines) == [5], "nobody is evicted for a place that is free"


async def test_a_row_that_was_written_elsewhere_is_read_again(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    document = await bench.store.get("desk", alfa.pk)
    assert document is not None
    await bench.store.commit(Unit(puts=(Put("desk", alfa.pk, document.version, document.doc),)))
    assert (
        code(await ask(bench, "screen_desk", alfa, code="ALFA", mode="all", allow=[], deny=[])) == "accepted"
    )
    assert code(await ask(bench, "close_desk", alfa, code="ALFA")) == "accepted"


@pytest.mark.requirement("desk.move")
async def test_a_desk_that_moves_to_a_key_with_a_living_actor_is_seen_by_it(bench: Bench) -> None:
    alfa, brav, char = await bench.open("ALFA"), await bench.open("BRAV"), await bench.open("CHAR")
    taker = Party("BRAV")
    assert code(await ask(bench, "open_desk", taker, code="ALFA")) == "code_taken"
    assert actor_of(bench, taker).state is not None, "it knows of no desk"
    deny = {"allow": [], "deny": [alfa.pk], "mode": "all"}
    await ask(bench, "screen_desk", brav, code="BRAV", **deny)
    assert code(await bench.call("move_desk", **moving(bench, brav, "BRAV", taker.key))) == "accepted"
    assert code(await bench.call("send_call", **bench.calling(alfa, taker))) == "desk_busy"
    assert code(await bench.call("send_call", **bench.calling(char, taker))) == "accepted"
    assert code(await ask(bench, "open_desk", taker, code="ZULU")) == "desk_exists"
    assert code(await ask(bench, "close_desk", taker, code="BRAV")) == "accepted"


@pytest.mark.requirement("desk.recovery")
async def test_a_waiting_move_to_a_key_that_opened_a_desk_meanwhile_is_dropped(
    bench: Bench, autojump_clock: Any
) -> None:
    recovery, taker = Party("BRAV"), Party("CHAR")
    brav = await bench.open("BRAV", recovery_pk=recovery.pk)
    assert code(await bench.call("move_desk", **moving(bench, recovery, "BRAV", taker.key))) == "accepted"
    assert code(await ask(bench, "open_desk", taker, code="CHAR")) == "accepted"
    bench.clock.step(DAY_MS + 1000)
    await trio.sleep(61)
    assert (await bench.call("resolve_code", code="BRAV"))["pk"] == brav.pk
    assert (await bench.call("resolve_code", code="CHAR"))["pk"] == taker.pk
    assert code(await ask(bench, "cancel_move", brav, code="BRAV")) == "not_found", "none is waiting any more"
    assert await bench.store.due("desk", "due", 2**62) == []


@pytest.mark.requirement("desk.recovery")
@pytest.mark.parametrize("way", ["move", "close"])
async def test_the_desks_key_moves_or_closes_before_a_recovery_move_takes_effect(
    bench: Bench, autojump_clock: Any, way: str
) -> None:
    recovery, taker = Party("BRAV"), Party("BRAV")
    brav = await bench.open("BRAV", recovery_pk=recovery.pk)
    late = moving(bench, recovery, "BRAV", SigningKey.generate())
    assert code(await bench.call("move_desk", **late)) == "accepted"
    if way == "move":
        answer = await bench.call("move_desk", **moving(bench, brav, "BRAV", taker.key))
    else:
        answer = await ask(bench, "close_desk", brav, code="BRAV")
    assert code(answer) == "accepted"
    bench.clock.step(DAY_MS + 1000)
    await trio.sleep(61)
    now = await bench.call("resolve_code", code="BRAV")
    assert code(now) == ("accepted" if way == "move" else "unknown_desk")
    assert way == "close" or now["pk"] == taker.pk


@pytest.mark.requirement("desk.suspended")
async def test_a_desk_stays_suspended_after_a_restart(autojump_clock: Any) -> None:
    async with open_bench() as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        await bench.call("suspend_desk", OPERATOR, code="ALFA")
    async with open_bench(store=bench.store, clock=bench.clock) as again:
        assert code(await again.call("send_call", **again.calling(alfa, brav))) == "suspended"
        assert code(await again.call("send_call", **again.calling(brav, alfa))) == "suspended"
        await again.call("release_desk", OPERATOR, code="ALFA")
        assert code(await again.call("send_call", **again.calling(alfa, brav))) == "accepted"
    async with open_bench(store=bench.store, clock=bench.clock) as third:
        assert code(await third.call("send_call", **third.calling(alfa, brav))) == "accepted"


@pytest.mark.requirement("desk.suspended")
@pytest.mark.parametrize("restart", [False, True])
async def test_a_suspended_desk_stays_suspended_when_it_moves(autojump_clock: Any, restart: bool) -> None:
    taker = Party("ALFA")
    async with open_bench() as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        await bench.call("suspend_desk", OPERATOR, code="ALFA")
        assert code(await bench.call("move_desk", **moving(bench, alfa, "ALFA", taker.key))) == "accepted"
        if not restart:
            await suspended_until_released(bench, alfa, taker, brav)
    if restart:
        async with open_bench(store=bench.store, clock=bench.clock) as again:
            await suspended_until_released(again, alfa, taker, brav)


async def suspended_until_released(bench: Bench, old: Party, new: Party, other: Party) -> None:
    assert code(await bench.call("send_call", **bench.calling(new, other))) == "suspended"
    assert code(await bench.call("release_desk", OPERATOR, code="ALFA")) == "accepted"
    assert code(await bench.call("send_call", **bench.calling(new, other))) == "accepted"
    elsewhere = Party("CHAR", old.key)
    assert code(await ask(bench, "open_desk", elsewhere, code="CHAR")) == "accepted"
    assert code(await bench.call("send_call", **bench.calling(elsewhere, other))) == "accepted"


@pytest.mark.requirement("desk.lapse")
async def test_a_lapsed_code_stays_reserved_when_its_key_opens_another(
    bench: Bench, autojump_clock: Any
) -> None:
    alfa = await bench.open("ALFA")
    bench.clock.step(100 * DAY_MS)
    assert code(await ask(bench, "open_desk", alfa, code="CHAR")) == "accepted"
    assert code(await ask(bench, "open_desk", Party("ALFA"), code="ALFA")) == "code_reserved"
    bench.clock.step(79 * DAY_MS)
    assert code(await ask(bench, "open_desk", Party("ALFA"), code="ALFA")) == "code_reserved"
    bench.clock.step(2 * DAY_MS)
    assert code(await ask(bench, "open_desk", Party("ALFA"), code="ALFA")) == "accepted"
    document = await bench.store.get("code", "ALFA")
    assert document is not None
    assert msgspec.json.decode(document.doc, type=CodeRow).pk != alfa.pk


@pytest.mark.requirement("statements.replay")
@pytest.mark.parametrize("do", ["open_desk", "close_desk", "move_desk", "cancel_move"])
async def test_the_identical_statement_sent_twice_at_once_is_done_once_and_answered_twice(
    bench: Bench, do: str
) -> None:
    recovery, taker = Party("ALFA"), Party("ALFA")
    alfa = Party("ALFA")
    if do != "open_desk":
        await ask(bench, "open_desk", alfa, code="ALFA", recovery_pk=recovery.pk)
    if do == "cancel_move":
        await bench.call("move_desk", **moving(bench, recovery, "ALFA", taker.key))
    if do == "move_desk":
        params = moving(bench, alfa, "ALFA", taker.key)
    else:
        params = alfa.statement(do, bench.broker.pk, bench.ts, code="ALFA")
    answers: list[Any] = []

    async def send() -> None:
        answers.append(await bench.call(do, **params))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(send)
    assert [code(answer) for answer in answers] == ["accepted"] * 5, answers
    assert sorted(answer.get("replayed", False) for answer in answers) == [False, *[True] * 4]
    assert len({answer["opened_at"] for answer in answers}) == 1


@pytest.mark.requirement("statements.nonce")
async def test_of_two_statements_with_one_nonce_at_once_one_is_taken(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    nonce = "ab" * 16
    answers: list[Any] = []

    async def screen(mode: str) -> None:
        members = {"code": "ALFA", "mode": mode, "allow": [], "deny": []}
        answers.append(await ask(bench, "screen_desk", alfa, nonce=nonce, **members))

    async with trio.open_nursery() as nursery:
        for mode in ("all", "known", "nobody"):
            nursery.start_soon(screen, mode)
    assert sorted(code(answer) for answer in answers) == ["accepted", "bad_statement", "bad_statement"]


@pytest.mark.requirement("desk.one-code-one-key")
async def test_two_openings_of_one_code_by_its_key_at_once_are_both_answered_with_the_row(
    bench: Bench,
) -> None:
    alfa = Party("ALFA")
    answers: list[Any] = []

    async def open_it() -> None:
        answers.append(await ask(bench, "open_desk", alfa, code="ALFA"))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(open_it)
    assert [code(answer) for answer in answers] == ["accepted"] * 3
    assert len({answer["opened_at"] for answer in answers}) == 1


async def test_a_place_told_twice_is_one(bench: Bench) -> None:
    caller = await bench.open("ALFA")
    line = await bench.dial(caller, await bench.open("BRAV"))
    house = bench.broker._services.house
    assert await house.ask("desk", caller.pk, Dialled(line.conv)) is None
    assert await places_of(bench, caller) == [line.conv]


async def test_use_is_noted_at_most_once_a_day(autojump_clock: Any) -> None:
    async with open_bench(tuned(calls={"idle_s": 1e9})) as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")

        async def used_at() -> int:
            document = await bench.store.get("desk", alfa.pk)
            assert document is not None
            return msgspec.json.decode(document.doc, type=DeskRow).used_at

        opened = await used_at()
        await bench.dial(alfa, brav)
        assert await used_at() == opened
        bench.clock.step(DAY_MS)
        await bench.dial(alfa, brav)
        await trio.sleep(1)
        assert await used_at() == opened + DAY_MS


@pytest.mark.requirement("limits.counts-folded")
async def test_places_are_given_where_they_are_asked_for_unless_something_has_to_be_looked_up(
    bench: Bench,
) -> None:
    alfa = await bench.open("ALFA")
    actor = actor_of(bench, alfa)
    answers: list[Any] = []
    ring = Ring("b" * 64, None, True)
    for command in (ReserveRing("1" * 16, 1, ring), ReservePlace("2" * 16, 2)):
        assert actor.post(Letter(command, answers.append)) is None
    assert answers == [None, Place(())]  # with no turn of the loop
    assert actor.state is not None
    assert set(actor.state.places.held) == {2}
    assert set(actor.state.places.held_rings) == {1}
    actor.post(Letter(Doubtful("3" * 16), None))
    assert set(actor.state.places.doubtful) == {"3" * 16}
    actor.post(Letter(ReservePlace("4" * 16, 4), answers.append))
    assert len(answers) == 2, "whether that call stands is the store's to say"
    await wait_all_tasks_blocked()
    assert answers[2:] == [Place(())]
