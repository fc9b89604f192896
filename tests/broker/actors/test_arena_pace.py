"""The hot path: actions that are decided where they arrive, without a look at their key."""

from typing import Any

import msgspec
import pytest
import trio

from broker.actors.arena import Submit
from broker.actors.once import MISMATCH, Once
from broker.core.arena import rejected_log
from tests.support.agents import make_agent
from tests.support.arena import call, first_legal, new_key, open_session, submit
from tests.support.broker import Bench

LATER = 10**15


async def playing(bench: Bench, who: Any) -> tuple[str, dict[str, Any]]:
    """A session whose actor has done something: its id, and the next action."""
    session = await open_session(bench, who)
    shown = (await submit(bench, who, session))["session"]
    return shown["session_id"], first_legal(shown)


async def ask(
    bench: Bench, session_id: str, version: int, action: dict[str, Any], digest: bytes = b"d"
) -> Any:
    """As a request whose caller has left reaches the actor: nothing but the actor looks at its key."""
    command = Submit(version, action, "ag_", Once("key:ag_:submit_action", "same", digest, LATER))
    answer = await bench.broker._services.house.ask("arena", session_id, command)
    return answer if answer is MISMATCH else msgspec.json.encode(answer)


@pytest.mark.requirement("arena.pace.key")
async def test_the_identical_request_right_behind_gets_the_first_answer_and_is_no_rejected_attempt(
    bench: Bench,
) -> None:
    session_id, action = await playing(bench, await make_agent(bench, "Ann"))
    answers: list[bytes] = []

    async def one() -> None:
        answers.append(await ask(bench, session_id, 1, action))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(one)
    assert len(set(answers)) == 1
    assert b'"version":2' in answers[0]
    assert await bench.store.entries(rejected_log(session_id)) == []


@pytest.mark.requirement("arena.pace.key")
async def test_another_request_under_the_key_does_nothing_in_this_session_nor_in_another(
    bench: Bench,
) -> None:
    ann = await make_agent(bench, "Ann")
    session_id, action = await playing(bench, ann)
    other, another = await playing(bench, ann)
    await ask(bench, session_id, 1, action)
    assert await ask(bench, session_id, 2, call("higher"), b"e") is MISMATCH
    assert await ask(bench, other, 1, another, b"e") is MISMATCH
    shown = await bench.call("get_session", ann, session_id=other)
    assert shown["session"]["version"] == 1
    assert (await submit(bench, ann, shown["session"]))["session"]["version"] == 2


@pytest.mark.requirement("arena.pace.limits")
async def test_who_has_as_many_open_as_it_may_opens_another_as_soon_as_one_is_over(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    most = bench.broker.settings.arena.open_sessions
    sessions = [await open_session(bench, ann) for _ in range(most)]
    for _ in range(2):
        await submit(bench, ann, sessions.pop(), {"type": "stop"})
        await open_session(bench, ann)
        refused = await bench.call("open_session", ann, game="hilo", idempotency_key=new_key())
        assert (refused.code, refused.detail["reason"]) == ("LIMIT_EXCEEDED", "open")
