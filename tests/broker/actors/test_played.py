"""What sessions count: as many as were accepted and rejected, also by who plays anew on the same store."""

from typing import Any

import pytest

from broker.app import Caller
from broker.store.memory import MemoryStore
from broker.wire.keys import SigningKey
from tests.support.agents import make_agent
from tests.support.arena import call, open_session, submit
from tests.support.broker import Bench, open_bench


@pytest.mark.requirement("arena.figures")
async def test_sessions_and_actions_are_counted_and_who_starts_again_knows_what_is_open() -> None:
    store, key = MemoryStore(), SigningKey.generate()
    async with open_bench(store=store, key=key) as first:
        ann = await make_agent(first, "Ann")
        session, other = [await open_session(first, ann) for _ in range(2)]
        after = (await submit(first, ann, session))["session"]
        await submit(first, ann, after)
        await submit(first, ann, other, call("higher"), expected_version=7)
        await submit(first, ann, other, {"type": "stop"})
        assert played(first) == (1, 2, 3, {"CONFLICT": 1}, {"stopped": 1})
    async with open_bench(store=store, key=key) as second:
        assert played(second) == (1, 0, 0, {}, {})
        await submit(second, ann, await shown(second, ann, session), {"type": "stop"})
        assert played(second) == (0, 0, 1, {}, {"stopped": 1})


def played(of: Bench) -> tuple[int, int, int, dict[str, int], dict[str, int]]:
    told = of.broker.statistics()
    return told.sessions_open, told.sessions_opened, told.actions, told.actions_rejected, told.sessions_over


async def shown(of: Bench, who: Caller, session: dict[str, Any]) -> dict[str, Any]:
    answer = await of.call("get_session", who, session_id=session["session_id"])
    found: dict[str, Any] = answer["session"]
    return found
