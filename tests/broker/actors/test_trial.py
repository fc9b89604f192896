"""A trial: its calls, its operations, what failures leave of it."""

from array import array
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from broker.actors.artifacts import read_artifact as stored_artifact
from broker.actors.trial import read_events
from broker.app import Caller
from broker.clock import VirtualClock
from broker.core.arena import rejected_log, session_log
from broker.core.tapes.catalog import TapeRow
from broker.core.tapes.synthetic import KINDS, make
from broker.core.tapes.tape import About, Tape
from broker.core.trials.account import MAX_PNL
from broker.core.trials.script import Advance, artifact_of, read_artifact, replay
from broker.core.trials.session import MAX_FILLS, Opened, Ran
from broker.store.memory import MemoryStore
from broker.store.port import Drop, Put, Unit
from broker.wire.keys import SigningKey
from tests.programs.flaky import FlakyMemory
from tests.support.agents import caller_of, make_agent
from tests.support.broker import START_MS, Bench, code, open_bench, tuned
from tests.support.imports import bring, foreign
from tests.support.rehearsals import (
    DOWN,
    FADE,
    HEAVY,
    QUIET,
    ask,
    do,
    new_key,
    opened,
    resumed,
    started,
    whole,
)

HOUR_S = 3_600.0
SMALL = "broker.actors.trial"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advances take long, and are done in many parts."""
    monkeypatch.setattr(f"{SMALL}.INLINE", 2_000)
    monkeypatch.setattr(f"{SMALL}.STEPS", 1_000)
    monkeypatch.setattr(f"{SMALL}.PART", 20_000)


async def content_of(bench: Bench, done: dict[str, Any]) -> bytes:
    content = await stored_artifact(bench.store, done["ref"])
    assert content is not None
    return content


@pytest.mark.requirement("trial.session-artifact", "trial.session-versions")
async def test_a_trial_from_its_opening_to_its_artifact(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    seen = await started(bench, ann, FADE, seed=3)
    assert seen["version"] == 1
    seen = await do(bench, ann, seen, "advance", ticks=50)
    assert (seen["version"], seen["outcome"], seen["ran"]) == (2, "RUNNING", 50)
    assert seen["fills_count"] == len(seen["fills"]) > 3
    seen = await do(bench, ann, seen, "submit", order={"side": "sell", "size": 700})
    assert (seen["version"], seen["sent"]) == (3, True)
    seen = await do(bench, ann, seen, "revise", plan=QUIET)
    seen = await do(bench, ann, seen, "advance", ticks=5)
    assert 700 in [each["size"] for each in seen["fills"]]
    done = await do(bench, ann, seen, "finalize")
    assert done["version"] == 6
    assert done["uri"] == f"kestrel://artifact/{done['ref']}"
    content = await content_of(bench, done)
    read, market = read_artifact(content), make(KINDS["trend"], 3)
    assert [type(each).__name__ for each in read.calls] == ["Start", "Advance", "Submit", "Revise", "Advance"]
    assert content == artifact_of(read.entry, read.calls, replay(market, read.calls))
    assert code(await do(bench, ann, {**seen, "version": 6}, "advance", ticks=1)) == "SESSION_OVER"
    shown = await resumed(bench, ann, seen)
    assert (shown["status"], shown["ended"], shown["artifact"]["ref"]) == ("over", "finalized", done["ref"])


@pytest.mark.requirement("trial.session-versions")
async def test_a_call_on_another_version_is_a_conflict_and_nothing_is_done(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    seen = await started(bench, ann)
    for verb, params in (
        ("advance", {"ticks": 1}),
        ("revise", {"plan": QUIET}),
        ("submit", {"order": {"side": "buy", "size": 1}}),
        ("finalize", {}),
    ):
        refused = await do(bench, ann, seen, verb, expected_version=0, **params)
        assert (refused.code, refused.detail["version"]) == ("CONFLICT", 1), verb
    assert (await resumed(bench, ann, seen))["version"] == 1


async def test_a_stand_down_is_a_result_and_the_run_is_over(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    seen = await do(bench, ann, await started(bench, ann, DOWN), "advance", ticks=100)
    assert (seen["outcome"], seen["over"], seen["ran"]) == ("STAND_DOWN", "rule", 6)
    refused = await do(bench, ann, seen, "advance", ticks=1)
    assert (refused.code, refused.detail["legal_actions"]) == ("ILLEGAL_ACTION", ["finalize"])


async def test_an_order_that_a_bound_keeps_back_is_told(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    seen = await do(bench, ann, await started(bench, ann, QUIET), "advance", ticks=1)
    order = {"side": "buy", "size": 1_000, "tif": "gtc", "at": 1}
    seen = await do(bench, ann, seen, "submit", order=order)
    assert (seen["sent"], seen["observation"]["resting_count"]) == (True, 1)
    seen = await do(bench, ann, seen, "submit", order=order)
    assert (seen["sent"], seen["observation"]["avoided"]) == (False, 1)


# ── Operations ──


@pytest.mark.requirement("trial.session-operation", "trial.session-slices", "trial.session-exclusive")
async def test_a_long_advance_goes_on_by_itself_and_is_one_call(
    bench: Bench, slow: None, autojump_clock: MockClock
) -> None:
    ann = await make_agent(bench, "Ann")
    begun = await do(bench, ann, await started(bench, ann), "advance", ticks=3_000)
    assert begun["operation"]["progress"]["of"] == 3_000
    assert 0 < begun["operation"]["progress"]["ran"] == begun["ran"] < 3_000
    assert (begun["version"], begun["fills"]) == (1, [])
    id = begun["operation"]["operation_id"]
    for version in (1, 2):
        refused = await do(bench, ann, begun, "advance", ticks=1, expected_version=version)
        assert (refused.code, refused.detail["operation_id"]) == ("CONFLICT", id)
    shown = await resumed(bench, ann, begun)
    assert (shown["operation"]["operation_id"], shown["legal_calls"]) == (id, ["finalize"])
    await trio.sleep(60)  # nobody asks
    done = await whole(bench, ann, begun)
    assert (done["version"], done["ran"], done["outcome"]) == (2, 3_000, "RUNNING")
    assert done["fills_from"] == 0
    assert done["fills_count"] > len(done["fills"]) == 100
    parts = [each for each in await read_events(bench.store, begun["session_id"]) if isinstance(each, Ran)]
    assert len(parts) > 5
    end = await do(bench, ann, done, "finalize")
    read = read_artifact(await content_of(bench, end))
    assert read.calls[1] == Advance(3_000)
    market = make(KINDS["trend"], 1)
    assert await content_of(bench, end) == artifact_of(read.entry, read.calls, replay(market, read.calls))


@pytest.mark.requirement("trial.session-operation")
async def test_the_result_of_an_operation_is_there_later_too(
    bench: Bench, slow: None, autojump_clock: MockClock
) -> None:
    ann = await make_agent(bench, "Ann")
    begun = await do(bench, ann, await started(bench, ann), "advance", ticks=600)
    done = await whole(bench, ann, begun)
    seen = await do(bench, ann, done, "submit", order={"side": "buy", "size": 1})
    seen = await do(bench, ann, seen, "advance", ticks=3)
    later = await whole(bench, ann, begun)
    assert (later["fills"], later["ran"], later["version"]) == (done["fills"], 600, 4)
    assert seen["fills_from"] == done["fills_count"]
    fresh = await do(bench, ann, seen, "advance", ticks=600)
    assert "operation" in fresh
    old = await ask(bench, ann, "operation.resume", operation_id=begun["operation"]["operation_id"])
    assert code(old) == "NOT_FOUND", "of a trial's operations the last one is known"


@pytest.mark.requirement("trial.session-killed", "trial.session-operation")
async def test_an_operation_goes_on_after_a_restart(slow: None, autojump_clock: MockClock) -> None:
    store, clock, key = MemoryStore(), VirtualClock(START_MS), SigningKey.generate()
    async with open_bench(store=store, clock=clock, key=key) as bench:
        ann = await make_agent(bench, "Ann")
        begun = await do(bench, ann, await started(bench, ann), "advance", ticks=3_000)
        await trio.sleep(0.1)
    before = len(await read_events(store, begun["session_id"]))
    async with open_bench(store=store, clock=clock, key=key) as bench:
        ann = caller_of(bench, str(ann.agent))
        opening = (await read_events(store, begun["session_id"]))[0]
        assert isinstance(opening, Opened)
        await bench.broker._services.tapes.tape(opening.entry)  # made in a thread: no clock jumps over it
        await trio.sleep(60)
        events = await read_events(store, begun["session_id"])
        assert len(events) > before > 3, "some parts before, some after"
        done = await whole(bench, ann, begun)
        assert (done["version"], done["ran"]) == (2, 3_000)
        content = await content_of(bench, await do(bench, ann, done, "finalize"))
    read, market = read_artifact(content), make(KINDS["trend"], 1)
    assert content == artifact_of(read.entry, read.calls, replay(market, read.calls))


@pytest.mark.requirement("trial.session-operation")
async def test_a_part_that_can_not_be_written_is_done_once_more(
    slow: None, autojump_clock: MockClock
) -> None:
    store = FlakyMemory()
    async with open_bench(store=store) as bench:
        ann = await make_agent(bench, "Ann")
        begun = await do(bench, ann, await started(bench, ann), "advance", ticks=2_000)
        for way in ("unavailable", "applied", "doubt"):
            store.fail(way, lambda unit: unit.append is not None)  # type: ignore[arg-type]
            await trio.sleep(0.05)
        done = await whole(bench, ann, begun)
        content = await content_of(bench, await do(bench, ann, done, "finalize"))
    read, market = read_artifact(content), make(KINDS["trend"], 1)
    assert read.calls[1] == Advance(2_000)
    assert content == artifact_of(read.entry, read.calls, replay(market, read.calls))


@pytest.mark.requirement("trial.session-once")
@pytest.mark.parametrize("way", ["unavailable", "applied", "doubt"])
async def test_a_call_whose_commit_fails_is_done_once(way: Any) -> None:
    store = FlakyMemory()
    async with open_bench(store=store) as bench:
        ann = await make_agent(bench, "Ann")
        seen, again = await started(bench, ann), {"ticks": 40, "idempotency_key": new_key()}
        store.fail(way, lambda unit: unit.append is not None)
        assert code(await do(bench, ann, seen, "advance", **again)) in ("unavailable", "in_doubt")
        done = await do(bench, ann, seen, "advance", **again)
        assert (done["version"], done["observation"]["tick"]) == (2, 39)
        assert await do(bench, ann, seen, "advance", **again) == done
        assert len(await bench.store.entries(session_log(seen["session_id"]))) == 3


@pytest.mark.requirement("trial.session-bounded")
async def test_an_advance_ends_where_the_fills_do(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("broker.actors.trial", "broker.core.trials.session"):
        monkeypatch.setattr(f"{module}.MAX_FILLS", 7)
    assert MAX_FILLS > 7
    ann = await make_agent(bench, "Ann")
    seen = await do(bench, ann, await started(bench, ann), "advance", ticks=3_000)
    assert (seen["outcome"], seen["fills_count"]) == ("RUNNING", 7)
    assert seen["ran"] < 3_000
    refused = await do(bench, ann, seen, "advance", ticks=1)
    assert (refused.code, refused.detail["reason"]) == ("LIMIT_EXCEEDED", "fills")
    assert code(await do(bench, ann, seen, "finalize")) == "accepted"


async def test_fills_are_read_from_any_number_on(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    seen = await started(bench, ann)
    for _ in range(4):
        seen = await do(bench, ann, seen, "advance", ticks=36)
    all = (await resumed(bench, ann, seen, fills_from=0))["fills"]
    assert len(all) == seen["fills_count"] > 20
    for first in (0, 1, 7, len(all) - 1, len(all), len(all) + 9):
        shown = await resumed(bench, ann, seen, fills_from=first, limit=6)
        assert (shown["fills"], shown["fills_from"]) == (all[first : first + 6], first)
    last = await resumed(bench, ann, seen, limit=6)
    assert (last["fills"], last["fills_from"]) == (all[-6:], len(all) - 6)


def soaring() -> Tape:
    """A tape of yen that rises so far that no JSON keeps whole what a great position makes."""
    prices = [150_000 + 10_000 * n for n in range(60)]
    about = About("USDJPY", 0, 1_000, 1_000, 0, sized=False)
    return Tape(about, array("q", prices), array("q", prices), array("q"))


GREEDY = (
    QUIET.replace("EURUSD", "USDJPY").replace("1000,", f"{10**12},").replace("loss 100,", "loss 1000000000,")
)
"""Holds what makes more than any JSON keeps."""


@pytest.mark.requirement("trial.session-money")
@pytest.mark.parametrize("apart", [False, True], ids=["one-call", "operation"])
async def test_more_money_than_is_told_stands_down_and_the_trial_has_its_artifact(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, bench: Bench, apart: bool
) -> None:
    if apart:
        monkeypatch.setattr(f"{SMALL}.INLINE", 0)
        monkeypatch.setattr(f"{SMALL}.PART", 100)
    ann = await make_agent(bench, "Ann")
    seen = await started(bench, ann, GREEDY, entry=(await bring(bench, soaring()))["index"])
    seen = await do(bench, ann, seen, "submit", order={"side": "buy", "size": 10**12})
    begun = await do(bench, ann, seen, "advance", ticks=60)
    assert ("operation" in begun) is apart
    done = await whole(bench, ann, begun)
    assert (done["outcome"], done["over"], done["observation"]["pnl"]) == ("STAND_DOWN", "money", MAX_PNL)
    content = await content_of(bench, await do(bench, ann, done, "finalize"))
    read = read_artifact(content)
    assert content == artifact_of(read.entry, read.calls, replay(soaring(), read.calls))


# ── A tape that is not there ──


@pytest.mark.requirement("trial.session-tape")
async def test_a_trial_on_an_imported_tape_goes_on_and_without_it_only_ends(
    slow: None, autojump_clock: MockClock
) -> None:
    store, clock, key, tape = MemoryStore(), VirtualClock(START_MS), SigningKey.generate(), foreign()
    async with open_bench(store=store, clock=clock, key=key) as bench:
        ann = await make_agent(bench, "Ann")
        left = await opened(bench, ann, (await bring(bench, tape))["index"])
        text = FADE.replace("EURUSD", "USDSEK")
        begun = await do(bench, ann, await started(bench, ann, text, entry=tape.ref()), "advance", ticks=50)
        assert "operation" in begun
    document = await store.get("tape", tape.ref())
    assert document is not None
    row = msgspec.json.decode(document.doc, type=TapeRow)
    gone = msgspec.json.encode(TapeRow(row.ref, "gone", row.turn, 0, 0, index=row.index))
    await store.commit(Unit(puts=(Put("tape", row.ref, document.version, gone),), drop=Drop(row.log)))
    async with open_bench(store=store, clock=clock, key=key) as bench:
        ann = caller_of(bench, str(ann.agent))
        done = await whole(bench, ann, begun)
        assert (done["version"], done["observation"].get("bid")) == (2, None)
        assert done["ran"] < 50
        refused = await do(bench, ann, done, "advance", ticks=1)
        assert (refused.code, refused.detail["legal_actions"]) == ("ILLEGAL_ACTION", ["finalize"])
        assert (await resumed(bench, ann, left))["legal_calls"] == ["finalize"]
        content = await content_of(bench, await do(bench, ann, done, "finalize"))
    read = read_artifact(content)
    assert content == artifact_of(read.entry, read.calls, replay(tape, read.calls))


# ── Time ──


@pytest.mark.requirement("trial.session-idle")
async def test_a_trial_that_nobody_goes_on_with_is_over_and_published(autojump_clock: MockClock) -> None:
    async with open_bench(tuned(trials={"idle_h": 1.0})) as bench:
        ann = await make_agent(bench, "Ann")
        seen = await do(bench, ann, await started(bench, ann), "advance", ticks=10)
        await trio.sleep(0.9 * HOUR_S)
        seen = await do(bench, ann, seen, "advance", ticks=10)
        await trio.sleep(0.9 * HOUR_S)
        assert (await resumed(bench, ann, seen))["status"] == "open"
        await trio.sleep(0.2 * HOUR_S)
        shown = await resumed(bench, ann, seen)
        assert (shown["status"], shown["ended"], shown["version"]) == ("over", "expired", 4)
        read = read_artifact(await content_of(bench, shown["artifact"]))
        assert (read.result.ticks, read.result.over) == (20, None)
        assert await bench.store.due("trial", "due", 2**62) == []


@pytest.mark.requirement("trial.session-idle")
async def test_an_agent_that_is_gone_has_no_open_trial(slow: None, autojump_clock: MockClock) -> None:
    async with open_bench() as bench:
        ends = bench.clock.now_ms() + 7 * 86_400_000
        ann = await make_agent(bench, "Ann", tier="unclaimed", expires_at=ends)
        begun = await do(bench, ann, await started(bench, ann), "advance", ticks=100)
        bench.clock.step(7 * 86_400_000)
        await trio.sleep(180)
        (document,) = await bench.store.find("trial", "agent", str(ann.agent))
        assert b'"over":"expired"' in document.doc
        assert document.id == begun["session_id"]


@pytest.mark.requirement("trial.session-once", "trial.session-own")
async def test_identical_requests_at_once_are_one(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    seen, answers = await started(bench, ann), list[Any]()

    async def send(who: Caller, **params: Any) -> None:
        answers.append(await do(bench, who, seen, "advance", ticks=30, **params))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(lambda: send(ann, idempotency_key="same"))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["version"] == 2
    assert await bench.store.entries(rejected_log(seen["session_id"])) == []


async def test_a_log_that_is_not_the_documents_is_damage(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    seen = await opened(bench, ann)
    document = await bench.store.get("trial", seen["session_id"])
    assert document is not None
    spoiled = document.doc.replace(b'"changed_at"', b'"events":5,"changed_at"')
    put = Put("trial", document.id, document.version, spoiled, (("agent", str(ann.agent)),))
    await bench.store.commit(Unit(puts=(put,)))
    for actor in list(bench.broker._services.house):
        actor.leave()
    await trio.testing.wait_all_tasks_blocked()
    assert code(await resumed(bench, ann, seen)) == "unavailable"


async def test_heavy_plans_are_operations_without_help(bench: Bench, autojump_clock: MockClock) -> None:
    ann = await make_agent(bench, "Ann")
    begun = await do(bench, ann, await started(bench, ann, HEAVY), "advance", ticks=3_600)
    assert "operation" in begun
    assert (await whole(bench, ann, begun))["outcome"] == "DONE"
