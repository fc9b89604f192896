"""What sessions of the arena and trials share. Their own tests show it too (tests/arena, test_trial.py)."""

import pytest

from broker.core.arena import rejected_log
from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.rehearsals import do, new_key, opened, resumed


@pytest.mark.requirement("trial.session-rejected")
async def test_the_first_rejected_attempts_are_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.actors.session.REJECTED_KEPT", 2)
    ann = await make_agent(bench, "Ann")
    seen = await opened(bench, ann)
    for _ in range(3):
        assert code(await do(bench, ann, seen, "advance", ticks=1)) == "ILLEGAL_ACTION"
    kept = await bench.store.entries(rejected_log(seen["session_id"]))
    assert [each.n for each in kept] == [0, 1]
    assert b'"type":"advance","ticks":1' in kept[0].data
    assert str(ann.agent).encode() in kept[0].data


@pytest.mark.requirement("trial.session-rejected", "trial.session-once")
async def test_a_final_refusal_is_the_answer_for_good_and_a_conflict_is_not(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    seen = await opened(bench, ann)
    final, passing = new_key(), new_key()
    assert code(await do(bench, ann, seen, "advance", ticks=1, idempotency_key=final)) == "ILLEGAL_ACTION"
    asked = {"ticks": 2, "expected_version": 1, "idempotency_key": passing}
    assert code(await do(bench, ann, seen, "advance", **asked)) == "CONFLICT"
    quiet = "plan q 1 on EURUSD bound position 1, loss 1, orders 1, until 9 when tick < 0: flatten"
    assert code(await do(bench, ann, seen, "start", plan=quiet)) == "accepted"
    assert code(await do(bench, ann, seen, "advance", ticks=1, idempotency_key=final)) == "ILLEGAL_ACTION"
    assert code(await do(bench, ann, seen, "advance", **asked)) == "accepted"
    assert (await resumed(bench, ann, seen))["version"] == 2
