"""The session's actor: what it keeps, what it tells, and what becomes of it when it is read again."""

import json

import pytest

from broker.core.arena import rejected_log
from tests.support.agents import make_agent
from tests.support.arena import call, open_session, submit
from tests.support.broker import Bench


@pytest.mark.requirement("arena.rejected")
async def test_a_rejected_attempt_is_kept_beside_the_session(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann)
    await submit(bench, ann, session, call("higher"), expected_version=7)
    await submit(bench, ann, session, {"type": "fold"})
    rows = await bench.store.entries(rejected_log(session["session_id"]))
    kept = [json.loads(row.data) for row in rows]
    assert [(each["code"], each["expected_version"], each["by"]) for each in kept] == [
        ("CONFLICT", 7, ann.agent),
        ("ILLEGAL_ACTION", 0, ann.agent),
    ]
    assert kept[1]["action"] == {"type": "fold"}
