"""Any program of changes, readers that come, leave and come back, and restarts: each reader has every event of its task
once, in order (network.md, A2A)."""

import random
from typing import Any

import msgspec
import pytest
import trio

from broker.actors.task import read_task, task_stream
from broker.app import Caller, Reader
from broker.store.memory import MemoryStore
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from broker.wire.task import OPEN, Status
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench
from tests.support.pairs import agree

STEPS = 40


class Follower:
    """Reads a task's stream now and then; remembers the last cursor alone."""

    def __init__(self, began: int) -> None:
        self.began = began
        self.seen: list[int] = []
        self.last: str | None = None
        self.reader: Reader | None = None

    async def read(self, bench: Bench, caller: Caller, task_id: str) -> None:
        """What there is now; comes back first where it has left."""
        if self.reader is None:
            followed = await bench.broker.follow_task(caller, task_id, after=self.last)
            assert not isinstance(followed, Refusal)
            assert followed.reader.resume.recovered
            self.reader = followed.reader
            if self.last is None:
                self.last = followed.reader.resume.from_
        while events := await self.reader.take():
            self.seen += [each.position for each in events]
            self.last = events[-1].cursor

    def leave(self) -> None:
        if self.reader is not None:
            self.reader.close()
            self.reader = None


async def change(bench: Bench, chance: random.Random, ann: Caller, bob: Caller, task_id: str) -> None:
    """One change; refused ones are part of the game."""
    name, caller, params = chance.choice(
        (
            ("update_task", bob, {"status": "working"}),
            ("update_task", bob, {"status": "input-required", "text": "?"}),
            ("send_task", ann, {"target_agent_id": bob.agent, "text": "so"}),
            ("get_task", ann, {}),
        )
    )
    given: dict[str, Any] = dict(params)
    assert code(await bench.call(name, caller, task_id=task_id, **given)) in ("accepted", "quota_exceeded")


@pytest.mark.requirement("network.a2a.resume", "network.a2a.streams")
@pytest.mark.parametrize("seed", range(3))
async def test_every_reader_has_every_event_once(seed: int) -> None:
    chance, store, key = random.Random(seed), MemoryStore(), SigningKey.generate()
    followers: list[Follower] = []
    task_id = ""
    ann = bob = Caller()
    left = STEPS
    while left > 0:
        async with open_bench(store=store, key=key) as bench:
            if not task_id:
                ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
                await agree(bench, ann, bob, scopes=["task"])
                made = await bench.call("send_task", ann, target_agent_id=bob.agent, text="x")
                task_id = made["task"]["task_id"]
            for _ in range(min(left, chance.randint(5, 20))):  # until the next restart
                left -= 1
                what = chance.random()
                if what < 0.5:
                    await change(bench, chance, ann, bob, task_id)
                elif what < 0.65 or not followers:
                    row = await read_task(store, task_id)
                    assert row is not None
                    followers.append(Follower(row.told))
                    await followers[-1].read(bench, ann, task_id)
                elif what < 0.9:
                    await chance.choice(followers).read(bench, ann, task_id)
                else:
                    chance.choice(followers).leave()
            if left <= 0:
                await bench.call("complete_task", bob, task_id=task_id, outcome="completed", text="done")
                for each in followers:
                    with trio.fail_after(5):
                        await each.read(bench, ann, task_id)
            for each in followers:
                each.leave()
    events = await store.events(task_stream(task_id), 0, 500)
    assert len(followers) > 2
    for each in followers:
        assert each.seen == list(range(each.began + 1, len(events) + 1))
    states = [
        msgspec.json.decode(each.data, type=Status).state for each in events if each.kind == "task_status"
    ]
    assert states[-1] == "completed"
    assert all(state in OPEN for state in states[:-1])
