"""SIGKILL under agents that try plans: no call is lost or done twice, and an operation goes on where it was (trial.md).

KILL_ROUNDS sets the rounds (1 here, more in soak). In every other one the broker dies between a commit and its answer.
"""

import os
import random
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from broker.core.tapes.synthetic import KINDS, make
from broker.core.trials.script import artifact_of, read_artifact, replay
from broker.store import sqlite_file
from gateways.commands.check import beside_of, look_through
from tests.crash.dealers import kill
from tests.crash.players import LIMITS
from tests.crash.talkers import call, code_of, make_talkers, settle
from tests.crash.trainees import Trainee
from tests.support.process import served

ROUNDS = int(os.environ.get("KILL_ROUNDS", "1"))
Links = dict[Trainee, httpx.AsyncClient]


@pytest.mark.requirement("trial.session-killed", "trial.session-once")
@pytest.mark.timeout(60 + 12 * ROUNDS)
async def test_what_trainees_were_told_is_so_when_the_broker_is_killed_under_them(tmp_path: Path) -> None:
    chance, data = random.Random(20_261_203), tmp_path / "data"
    talkers = await make_talkers(data, chance, 2)
    trainees = [Trainee(each.first, each.key, chance, each.agent_id) for each in talkers]
    for number in range(ROUNDS):
        dying = number % 2 == 0
        environment = {**LIMITS, **({"DIE_AT": str(chance.randint(15, 30))} if dying else {})}
        async with (
            served(data, environment=environment, program="tests.crash.dying") as broker,
            trio.open_nursery() as nursery,
        ):
            for trainee in trainees:
                nursery.start_soon(trainee.run, broker)
            goal = answered(trainees) + chance.randint(15, 30)
            with trio.fail_after(30):
                # Other tasks' lists, and another process.
                while broker.process.returncode is None and (dying or answered(trainees) < goal):  # noqa: ASYNC110
                    await trio.sleep(0.005)
            kill(broker, nursery)
    async with served(data, environment=LIMITS) as broker:
        async with AsyncExitStack() as stack:
            links = {each: await stack.enter_async_context(each.connected(broker)) for each in trainees}
            for trainee, http in links.items():
                if trainee.pending is not None:
                    await settle(http, trainee.pending)
                    trainee.asked.append(trainee.pending)
            trials = await compare(links)
            await replay_answers(links)
        assert await broker.stop() == 0
    found = look_through(data / sqlite_file.FILE, True, beside_of(data))
    assert (found.ok, found.faults, found.trials) == (True, [], trials)
    assert trials > 0
    assert answered(trainees) > 8 * ROUNDS, "too little load to tell anything"


def answered(trainees: list[Trainee]) -> int:
    """How much was answered for good."""
    return sum(len(each.asked) for each in trainees)


async def compare(links: Links) -> int:
    """Each call that was accepted made one version, and no other did; each artifact is what its calls come to. How many
    trials there are."""
    trials = 0
    for trainee, http in links.items():
        calls: dict[str, int] = defaultdict(int)
        for asked in trainee.asked:
            if asked.done:
                calls[asked.answer["session_id"]] += asked.tool != "kestrel.session.open"
        for session_id, count in calls.items():
            shown = await ended(trainee, http, session_id)
            assert shown["version"] == count
            trials += 1
    return trials


async def ended(trainee: Trainee, http: httpx.AsyncClient, session_id: str) -> Any:
    """A trial whose operation is over; then it is finalized by other hands, and its artifact run again."""
    shown = await trainee.resume(http, session_id)
    with trio.fail_after(30):
        while "operation" in shown:
            id = shown["operation"]["operation_id"]
            await call(http, "kestrel.operation.resume", operation_id=id, wait_ms=5_000)
            shown = await trainee.resume(http, session_id)
    ref = shown.get("artifact", {}).get("ref")
    if ref is None:
        params = {"session_id": session_id, "expected_version": shown["version"]}
        done = await call(http, "kestrel.session.finalize", **params, idempotency_key=f"end-{session_id}")
        ref = done.json()["ref"]
    content = (await http.get(f"/artifact/{ref}")).content
    read = read_artifact(content)
    assert read.entry.seed is not None
    market = make(KINDS["trend"], read.entry.seed)
    assert content == artifact_of(read.entry, read.calls, replay(market, read.calls))
    return shown


async def replay_answers(links: Links) -> None:
    """The identical request gets the very same bytes, also where it was refused for good."""
    for trainee, http in links.items():
        for asked in trainee.asked:
            if asked.done or code_of(asked.body) not in ("CONFLICT", "LIMIT_EXCEEDED"):
                before = asked.status, asked.body
                await settle(http, asked)
                assert (asked.status, asked.body) == before, asked.tool
