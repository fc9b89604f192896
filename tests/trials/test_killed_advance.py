"""A long advance whose broker is killed in the middle of it goes on where it was, as one call, to the same artifact."""

import random
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from broker.core.plan.read import Checked, read_plan
from broker.core.tapes.synthetic import KINDS, make
from broker.core.trials.script import Advance, Start, artifact_of, read_artifact, replay
from tests.crash.talkers import call, make_talkers
from tests.support.process import served
from tests.support.rehearsals import FADE, HEAVY

TICKS = 3_000
PLAN = FADE.replace("tick % 3", "tick % 50") + HEAVY[HEAVY.index("\nwhen avg") :]
"""Trades, and takes long at it: a first part, and another that goes on by itself."""


async def ask(http: Any, name: str, **params: Any) -> Any:
    """The answer of a call that is done."""
    answer = await call(http, f"kestrel.{name}", **params)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.requirement("trial.session-killed", "trial.session-operation")
@pytest.mark.timeout(60)
async def test_an_advance_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (ann,) = await make_talkers(data, random.Random(1), 1)
    dying = served(data, environment={"DIE_AT": "3"}, program="tests.crash.dying")
    async with dying as broker, ann.connected(broker) as http:
        seen = await ask(http, "session.open", entry="trend", seed=3, idempotency_key="1")
        id = {"session_id": seen["session_id"]}
        await ask(http, "session.start", **id, plan=PLAN, expected_version=0, idempotency_key="2")
        advance = {**id, "ticks": TICKS, "expected_version": 1, "idempotency_key": "3"}
        with trio.fail_after(20), pytest.raises(httpx.HTTPError):
            await ask(http, "session.advance", **advance)  # it dies as the first part is kept
    async with served(data) as broker, ann.connected(broker) as http:
        begun = await ask(http, "session.advance", **advance)
        assert 0 < begun["ran"] == begun["operation"]["progress"]["ran"] < TICKS, "the first answer"
        shown = await ask(http, "session.resume", **id)
        assert shown["observation"]["tick"] + 1 >= begun["ran"], "the part is kept"
        operation = {"operation_id": begun["operation"]["operation_id"]}
        done = await ask(http, "operation.resume", **operation, wait_ms=20_000)
        assert (done["ran"], done["version"], done.get("operation")) == (TICKS, 2, None)
        ended = await ask(http, "session.finalize", **id, expected_version=2, idempotency_key="4")
        content = (await http.get(f"/artifact/{ended['ref']}")).content
    checked = read_plan(PLAN)
    assert isinstance(checked, Checked)
    calls = [Start(checked.plan), Advance(TICKS)]
    entry = read_artifact(content).entry
    assert content == artifact_of(entry, calls, replay(make(KINDS["trend"], 3), calls))
    assert done["fills_count"] > 100
