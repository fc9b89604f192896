"""What an agent hears of a trial that it does not wait for, how it gets out of one, and what operators count."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from broker.actors.artifacts import read_artifact as stored_artifact
from broker.app import Caller
from broker.core.tapes.synthetic import KINDS, make
from broker.core.trials.script import Advance, artifact_of, read_artifact, replay
from broker.store.memory import MemoryStore
from broker.wire.keys import SigningKey
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.rehearsals import FADE, QUIET, ask, do, new_key, opened, resumed, started, whole
from tests.support.webhooks import Receiver, registered, world


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advances take long, and are done in many parts."""
    for name, value in (("INLINE", 2_000), ("STEPS", 1_000), ("PART", 20_000)):
        monkeypatch.setattr(f"broker.actors.trial.{name}", value)


async def events_of(bench: Bench, who: Caller) -> list[Any]:
    """The events of trials on an agent's stream, without cursors."""
    found = await bench.call("wait_for_events", who, after="0")
    events = [each for each in found["events"] if each["event"] == "trial"]
    return [{name: each[name] for name in each if name not in ("event", "cursor", "own")} for each in events]


@pytest.mark.requirement("trial.event")
async def test_who_waits_for_events_hears_of_the_end_of_a_long_advance(
    bench: Bench, slow: None, autojump_clock: MockClock
) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    seen = await do(bench, ann, await started(bench, ann), "advance", ticks=1)
    assert await events_of(bench, ann) == [], "a call that is answered is no news"
    begun = await do(bench, ann, seen, "advance", ticks=800)
    with trio.fail_after(60):
        found = await bench.call("wait_for_events", ann, wait_ms=50_000)
    assert [each["event"] for each in found["events"]] == ["trial"]
    done = await whole(bench, ann, begun)
    id, operation_id = seen["session_id"], begun["operation"]["operation_id"]
    advanced = {"session_id": id, "what": "advanced", "version": 3, "outcome": "RUNNING"}
    assert await events_of(bench, ann) == [{**advanced, "operation_id": operation_id, "ran": 800}]
    end = await do(bench, ann, done, "finalize")
    over = {"session_id": id, "what": "finalized", "version": 4, "outcome": "RUNNING", "ref": end["ref"]}
    assert (await events_of(bench, ann))[1:] == [over]
    assert await events_of(bench, bob) == []


@pytest.mark.requirement("trial.event", "trial.session-idle")
async def test_the_webhook_hears_of_a_trial_that_nobody_ended(autojump_clock: MockClock) -> None:
    receiver = Receiver()
    settings = tuned(store={"sweep_s": 86_400}, actors={"idle_s": 7_200}, trials={"idle_h": 0.5})
    async with world(receiver, settings=settings) as bench:
        ann = await make_agent(bench, "Ann", tier="standard")
        await registered(bench, ann)
        seen = await started(bench, ann)
        await trio.sleep(0.6 * 3_600)
        (post,) = [each for each in await receiver.wait(1) if each.event["type"] == "trial"]
        shown = await resumed(bench, ann, seen)
        assert (post.event["data"]["what"], post.event["data"]["ref"]) == (
            "expired",
            shown["artifact"]["ref"],
        )


@pytest.mark.requirement("trial.session-stopped", "trial.event", "trial.session-exclusive")
async def test_an_advance_that_was_a_mistake_is_ended_with_its_trial(
    slow: None, autojump_clock: MockClock
) -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        ann = await make_agent(bench, "Ann")
        begun = await do(bench, ann, await started(bench, ann), "advance", ticks=3_000)
        waited: list[dict[str, Any]] = []

        async def wait() -> None:
            waited.append(await whole(bench, ann, begun))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.sleep(0.2)
            stale = await do(bench, ann, begun, "finalize", expected_version=0)
            assert (stale.code, stale.detail["operation_id"]) == (
                "CONFLICT",
                begun["operation"]["operation_id"],
            )
            key, again = new_key(), []
            for _ in range(2):
                again.append(await do(bench, ann, begun, "finalize", idempotency_key=key))
        end = again[0]
        assert again == [end, end]
        assert begun["ran"] < waited[0]["ran"] < 3_000
        assert (waited[0]["version"], end["version"], len(waited[0]["fills"])) == (2, 2, 100)
        assert bench.broker.statistics().trials.operations == 0
        (event,) = await events_of(bench, ann)
        assert (event["what"], event["ran"], event["ref"]) == ("finalized", waited[0]["ran"], end["ref"])
        assert event["operation_id"] == begun["operation"]["operation_id"]
        content = await stored_artifact(store, end["ref"])
        assert content is not None
        read = read_artifact(content)
        assert read.calls[1] == Advance(waited[0]["ran"])
        assert content == artifact_of(read.entry, read.calls, replay(make(KINDS["trend"], 1), read.calls))
        graded = await ask(bench, ann, "grade", ref=end["ref"])
        assert graded["grades"]["ticks"] == waited[0]["ran"]


@pytest.mark.requirement("trial.figures")
async def test_operators_see_how_much_is_rehearsed(slow: None, autojump_clock: MockClock) -> None:
    store, key = MemoryStore(), SigningKey.generate()
    async with open_bench(store=store, key=key) as bench:
        ann = await make_agent(bench, "Ann")
        await opened(bench, ann)
        seen = await do(bench, ann, await started(bench, ann, FADE), "advance", ticks=10)
        assert code(await do(bench, ann, seen, "advance", ticks=1, expected_version=9)) == "CONFLICT"
        await ask(bench, ann, "validate", plan=QUIET)
        await ask(bench, ann, "validate", plan="plan x")
        begun = await do(bench, ann, seen, "advance", ticks=800)
        assert bench.broker.statistics().trials.operations == 1
        await do(bench, ann, await whole(bench, ann, begun), "finalize")
        told = bench.broker.statistics().trials
        assert (told.open, told.opened, told.over, told.ticks) == (1, 2, {"finalized": 1}, 810)
        assert (told.calls, told.rejected, told.plans) == (3, {"CONFLICT": 1}, {"valid": 2, "invalid": 1})
        assert (told.operations, told.waiting) == (0, 0)
        assert told.turns > 30
    async with open_bench(store=store, key=key) as bench:
        told = bench.broker.statistics().trials
        assert (told.open, told.opened, told.turns) == (1, 0, 0)
