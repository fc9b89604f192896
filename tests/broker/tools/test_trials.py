"""The tools of trials: whose they are, what they refuse, how they wait."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from broker.actors.mill import Mill
from broker.app import Caller
from broker.core.trials.run import SHOWN
from tests.support.agents import make_agent, owner_caller
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.rehearsals import FADE, QUIET, ask, do, new_key, opened, resumed, started
from tests.support.signin import new_owner

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("start", {"plan": QUIET}),
    ("advance", {"ticks": 1}),
    ("revise", {"plan": QUIET}),
    ("submit", {"order": {"side": "buy", "size": 1}}),
    ("finalize", {}),
)


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each advance takes long."""
    for name, value in (("INLINE", 0), ("STEPS", 2_000), ("PART", 4_000)):
        monkeypatch.setattr(f"broker.actors.trial.{name}", value)


async def family(bench: Bench) -> tuple[Caller, Caller, Caller]:
    """An owner, its agent, and a stranger."""
    owner_id = await new_owner(bench)
    ann = await make_agent(bench, "Ann", owner_id=owner_id)
    return owner_caller(bench, owner_id), ann, await make_agent(bench, "Bob")


@pytest.mark.requirement("trial.session-plans")
async def test_a_plan_has_a_tree_a_text_and_what_it_costs(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    checked = await ask(bench, ann, "validate", plan=FADE)
    assert checked["valid"]
    assert checked["bounds"]["position"] == 3_000_000
    assert checked["cost"] > 5
    # Of a client that keeps to the schema, which says text.
    as_text = msgspec.json.encode(checked["tree"]).decode()
    for form in (checked["text"], checked["tree"], as_text):
        assert await ask(bench, ann, "validate", plan=form) == checked


@pytest.mark.requirement("trial.session-plans")
async def test_a_plan_that_does_not_hold_is_a_result_of_validate_and_a_refusal_of_start(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    checked = await ask(bench, ann, "validate", plan=QUIET.replace("loss 100, ", ""))
    assert not checked["valid"]
    first = checked["diagnostics"][0]
    assert (first["line"], first["code"]) == (3, "bound")
    seen = await opened(bench, ann)
    for plan in ("plan x", {"name": "x"}, "x" * 9_000):
        refused = await do(bench, ann, seen, "start", plan=plan)
        assert (refused.code, refused.detail["path"]) == ("bad_request", "plan")
        assert 1 <= len(refused.detail["diagnostics"]) <= 8
    other = await do(bench, ann, seen, "start", plan=QUIET.replace("EURUSD", "USDSEK"))
    assert code(other) == "ILLEGAL_ACTION"
    assert (await resumed(bench, ann, seen))["version"] == 0


@pytest.mark.requirement("trial.session-own")
async def test_a_trial_is_its_agents_and_its_owners_and_nobody_elses(bench: Bench) -> None:
    owner, ann, bob = await family(bench)
    seen = await opened(bench, owner, agent_id=ann.agent)
    for verb, params in CALLS:
        assert code(await do(bench, bob, seen, verb, **params)) == "NOT_FOUND", verb
    assert code(await resumed(bench, bob, seen)) == "NOT_FOUND"
    mine = await ask(bench, bob, "session.open", entry=0, agent_id=ann.agent, idempotency_key=new_key())
    assert code(mine) == "FORBIDDEN"
    seen = await do(bench, ann, seen, "start", plan=FADE)
    seen = await do(bench, owner, seen, "advance", ticks=5)
    assert (await resumed(bench, owner, seen))["version"] == 2
    assert code(await do(bench, owner, seen, "finalize")) == "accepted"


@pytest.mark.requirement("trial.session-own")
async def test_an_operation_of_others_is_not_there(
    bench: Bench, long: None, autojump_clock: MockClock
) -> None:
    owner, ann, bob = await family(bench)
    begun = await do(bench, ann, await started(bench, ann), "advance", ticks=9)
    id = begun["operation"]["operation_id"]
    told = await ask(bench, bob, "operation.resume", operation_id=id)
    missing = await ask(bench, bob, "operation.resume", operation_id="op_" + "0" * 26)
    assert (told.code, told.body()) == ("NOT_FOUND", missing.body())
    assert told.detail["path"] == "operation_id"
    assert (await ask(bench, owner, "operation.resume", operation_id=id))["ran"] == 9


@pytest.mark.requirement("trial.session-own")
async def test_nobody_acts_for_an_agent_that_is_suspended_and_its_owner_still_looks(bench: Bench) -> None:
    owner, ann, _ = await family(bench)
    seen = await started(bench, ann)
    operator = Caller(operator=True)
    await bench.call("suspend_agent", operator, agent_id=ann.agent, reason="x")
    assert code(await do(bench, owner, seen, "advance", ticks=1)) == "suspended"
    assert code(await do(bench, owner, seen, "finalize")) == "suspended"
    assert (await resumed(bench, owner, seen))["version"] == 1


@pytest.mark.parametrize(
    "order",
    [
        {},
        {"side": "up", "size": 1},
        {"side": "buy", "size": 0},
        {"side": "buy", "size": 1.5},
        {"side": "buy", "size": 1, "tif": 0},
        {"side": "buy", "size": 1, "tif": "fok"},
        {"side": "buy", "size": 1, "price": 3},
        {"side": "buy", "size": 10**13},
    ],
)
async def test_an_order_that_is_none_is_refused_by_its_path(bench: Bench, order: dict[str, Any]) -> None:
    ann = await make_agent(bench, "Ann")
    seen = await started(bench, ann)
    refused = await do(bench, ann, seen, "submit", order=order)
    assert (refused.code, refused.detail["path"]) == ("bad_request", "order")
    assert "; it is {side: buy or sell, size, at: a price in ticks" in refused.message


@pytest.mark.requirement("trial.session-waits")
async def test_who_waits_is_told_how_far_it_is_and_waits_no_longer_than_it_said(
    bench: Bench, long: None, autojump_clock: MockClock
) -> None:
    ann = await make_agent(bench, "Ann")
    begun = await do(bench, ann, await started(bench, ann), "advance", ticks=3_000)
    id = begun["operation"]["operation_id"]
    now = trio.current_time()
    shown = await ask(bench, ann, "operation.resume", operation_id=id, wait_ms=10)
    assert trio.current_time() - now == pytest.approx(0.01, abs=0.005)
    assert shown["operation"]["progress"]["of"] == 3_000
    assert shown["fills"] == []
    told: list[Any] = []

    async def progress(event: bytes) -> None:
        told.append(msgspec.json.decode(event))

    params = msgspec.json.encode({"operation_id": id})
    done = await bench.broker.call(ann, "kestrel.operation.resume", params, progress=progress)
    assert done.ran == 3_000
    assert [each["of"] for each in told] == [3_000] * len(told)
    ran = [each["ran"] for each in told]
    assert ran == sorted(ran)
    assert len(ran) > 3


@pytest.mark.requirement("trial.session-waits")
async def test_who_stops_waiting_stops_nothing(bench: Bench, long: None, autojump_clock: MockClock) -> None:
    ann = await make_agent(bench, "Ann")
    begun = await do(bench, ann, await started(bench, ann), "advance", ticks=3_000)
    id = begun["operation"]["operation_id"]
    with trio.move_on_after(0.02) as waited:
        await ask(bench, ann, "operation.resume", operation_id=id, wait_ms=60_000)
    assert waited.cancelled_caught
    assert not bench.broker._services.mill._moved
    done = await ask(bench, ann, "operation.resume", operation_id=id, wait_ms=60_000)
    assert (done["ran"], done["version"]) == (3_000, 2)


async def test_on_a_full_disk_no_trial_is_opened() -> None:
    async with open_bench(tuned(store={"min_free_bytes": 2**62})) as bench:
        ann = await make_agent(bench, "Ann")
        refused = await ask(bench, ann, "session.open", entry=0, idempotency_key=new_key())
        assert code(refused) == "unavailable"


async def test_an_owner_says_for_which_agent(bench: Bench) -> None:
    owner, _, _ = await family(bench)
    refused = await ask(bench, owner, "session.open", entry=0, idempotency_key=new_key())
    assert (refused.code, refused.detail["path"]) == ("bad_request", "agent_id")
    gone = await ask(
        bench, owner, "session.open", entry=0, agent_id="ag_" + "0" * 26, idempotency_key=new_key()
    )
    assert code(gone) == "NOT_FOUND"


@pytest.mark.requirement("trial.session-fair")
async def test_plans_are_read_and_made_ready_in_turns(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    turns, real = list[str](), Mill.turn

    def turn(mill: Mill, who: str) -> Any:
        turns.append(who)
        return real(mill, who)

    monkeypatch.setattr(Mill, "turn", turn)
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    rules = (
        f"\nwhen {' or '.join(f'bid > {10 * rule + n}' for n in range(14))}: cancel" for rule in range(22)
    )
    large = QUIET + "".join(rules)
    async with trio.open_nursery() as nursery:
        for each in (ann, bob):
            nursery.start_soon(lambda each=each: ask(bench, each, "validate", plan=large))
    assert len(turns) > 16
    assert all(one != other for one, other in pairwise(turns[1:])), "one piece each"
    long = QUIET + "".join(f"\nwhen avg(mid, {900 + n}) < 0: cancel" for n in range(36))
    seen = await do(bench, ann, await started(bench, ann, QUIET), "advance", ticks=900)
    turns.clear()
    seen = await do(bench, ann, seen, "revise", plan=long)
    assert seen["version"] == 3, seen
    assert len(turns) > 900 * 37 / SHOWN + 3
    turns.clear()
    await do(bench, ann, seen, "submit", order={"side": "buy", "size": 1})
    assert turns == [], "an order by hand waits for nobody"
