"""Whoever has lost its memory goes on with what kestrel.session.resume gives: all of it is what the calls said."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.rehearsals import ask, do, opened, resumed, whole

PLAN = """plan {name} 1 on EURUSD bound position 3000000, loss 250000, orders 5000, until 100000
when position = 0 and tick % 3 = 0: buy 1000 at ask + 2
when position > 0: sell 1000 at bid - 2
when tick >= {last}: stand_down"""
EACH: dict[str, dict[str, Any]] = {
    "start": {"plan": PLAN.format(name="late", last=9)},
    "revise": {"plan": PLAN.format(name="late", last=9)},
    "submit": {"order": {"side": "buy", "size": 1}},
    "advance": {"ticks": 1},
}
STEPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("start", {"plan": PLAN.format(name="one", last=90_000)}),
    ("advance", {"ticks": 40}),
    ("submit", {"order": {"side": "sell", "size": 7, "at": 990_000, "tif": 2_000}}),
    ("advance", {"ticks": 1_500}),
    ("submit", {"order": {"side": "buy", "size": 9, "at": 3, "tif": "gtc"}}),
    ("revise", {"plan": PLAN.format(name="two", last=1_600)}),
    ("advance", {"ticks": 1_500}),
)


async def agree(bench: Bench, who: Any, told: dict[str, Any], fills: list[Any], plan: str | None) -> Any:
    """A trial as it is resumed, which says what its last call said, and which calls may follow."""
    shown = await resumed(bench, who, told, fills_from=max(0, len(fills) - 100))
    assert {name: shown.get(name) for name in ("version", "outcome", "observation", "over", "operation")} == {
        name: told.get(name, "RUNNING" if name == "outcome" else None)
        for name in ("version", "outcome", "observation", "over", "operation")
    }
    assert (shown["fills"], shown["fills_count"]) == (fills[-100:], len(fills))
    checked = {} if plan is None else await ask(bench, who, "validate", plan=plan)
    assert (shown.get("plan"), shown.get("text")) == (checked.get("tree"), checked.get("text"))
    for verb in set(EACH) - set(shown["legal_calls"]):
        refused = await do(bench, who, shown, verb, **EACH[verb])
        assert code(refused) == ("CONFLICT" if "operation" in shown else "ILLEGAL_ACTION"), verb
    return shown


@pytest.mark.requirement("trial.session-resumed")
async def test_what_is_resumed_is_what_the_calls_said_and_all_that_the_next_one_needs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    for name, value in (("INLINE", 40_000), ("STEPS", 20_000), ("PART", 80_000)):
        monkeypatch.setattr(f"broker.actors.trial.{name}", value)
    ann, fills, plan, orders = await make_agent(bench, "Ann"), list[Any](), None, list[Any]()
    seen = await opened(bench, ann, "trend", seed=3)
    shown = await agree(bench, ann, seen, fills, plan)
    assert (shown["entry"], shown["opened_at"]) == (seen["entry"], shown["changed_at"])
    for verb, params in STEPS:
        await trio.sleep(1)
        at = bench.clock.now_ms()
        assert verb in shown["legal_calls"]
        told, plan = await do(bench, ann, shown, verb, **params), params.get("plan", plan)
        if "operation" in told:
            begun = await resumed(bench, ann, told)
            assert begun["operation"]["operation_id"] == told["operation"]["operation_id"]
            assert begun["legal_calls"] == ["finalize"]
            told = await whole(bench, ann, {"operation": begun["operation"]})
            assert told["fills_from"] == len(fills)
            assert (await do(bench, ann, shown, verb, idempotency_key="x", **params)).code == "CONFLICT"
        while len(fills) < told.get("fills_count", 0):
            fills += (await resumed(bench, ann, told, fills_from=len(fills)))["fills"]
        shown = await agree(bench, ann, told, fills, plan)
        assert shown["opened_at"] < at <= shown["changed_at"]
        orders += [(each["price"], each["dies"]) for each in shown["observation"]["resting"]]
    assert {(990_000, 39 + 2_000), (3, None)} <= set(orders), "by hand: at its price, for its time"
    assert (shown["outcome"], shown["over"], shown["legal_calls"]) == ("STAND_DOWN", "rule", ["finalize"])
