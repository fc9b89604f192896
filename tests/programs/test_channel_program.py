"""Programs of a channel against a model: roles, the order of messages, and who is told of news when.

A program is a list of steps; the model says what each answers, what every agent's stream then holds, and what those
who follow were handed. It is played against a whole broker on one store, which is stopped and opened again in between.
"""

from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.actors.streams import Ended, Reader
from broker.app import Caller
from broker.clock import VirtualClock
from broker.store.memory import MemoryStore
from tests.support.agents import make_agent
from tests.support.broker import START_MS, code, open_bench
from tests.support.channels import Town

AGENTS = 4
MOST = 25
"""Messages of one agent in a program: below what a member may send in a minute."""


class Model:
    """A channel as the law has it. Agents are numbers; 0 made the channel."""

    def __init__(self, private: bool) -> None:
        self.private = private
        self.owner = 0
        self.members = {0}
        self.invited: set[int] = set()
        self.head = 0
        self.sent = [0] * AGENTS
        self.unread = dict.fromkeys(range(AGENTS), 0)
        self.told: dict[int, list[int]] = {at: [] for at in range(AGENTS)}
        self.following: dict[int, int] = {}
        """Who follows, and up to where it has taken what it was handed."""

    def do(self, what: str, who: int, other: int) -> bool:
        """Whether a step is accepted; and what it makes of the channel."""
        accepted: bool = getattr(self, f"_{what}")(who, other)
        return accepted

    def _join(self, who: int, _: int) -> bool:
        if self.private and who not in self.members | self.invited:
            return False
        self.members.add(who)
        self.invited.discard(who)
        return True

    def _leave(self, who: int, _: int) -> bool:
        if who == self.owner or who not in self.members | self.invited:
            return False
        self._gone(who)
        return True

    def _invite(self, who: int, other: int) -> bool:
        if who != self.owner or not self.private or other in self.members:
            return False
        self.invited.add(other)
        return True

    def _remove(self, who: int, other: int) -> bool:
        if who != self.owner or other == who or other not in self.members | self.invited:
            return False
        self._gone(other)
        return True

    def _transfer(self, who: int, other: int) -> bool:
        if who != self.owner or other not in self.members:
            return False
        self.owner = other
        return True

    def _send(self, who: int, _: int) -> bool:
        if who not in self.members:
            return False
        self.head += 1
        for each in self.members - {who} - set(self.following):
            if not self.unread[each]:
                self._tell(each)
        return True

    def _read(self, who: int, _: int) -> bool:
        if who in self.members:
            self._has_read(who, self.head)
        return who in self.members

    def _read_one(self, who: int, _: int) -> bool:
        """It reads the message that it was told of, and no other."""
        if who in self.members and self.unread[who]:
            self._has_read(who, self.unread[who])
        return who in self.members

    def _follow(self, who: int, _: int) -> bool:
        if who in self.members:
            self.following[who] = self.head
        return who in self.members

    def _take(self, who: int, _: int) -> bool:
        """It takes what it was handed."""
        if who in self.following:
            self.following[who] = self.head
        return who in self.following

    def _unfollow(self, who: int, _: int) -> bool:
        upto = self.following.pop(who, None)
        if upto is None:
            return False
        if self.unread[who]:
            self._has_read(who, upto)
        elif upto < self.head:
            self._tell(who)
        return True

    def restart(self) -> None:
        """Who followed has its cursor, and is told nothing of it."""
        self.following.clear()

    def _has_read(self, who: int, upto: int) -> None:
        if self.unread[who] and upto >= self.unread[who]:
            self.unread[who] = 0
            if upto < self.head:
                self._tell(who)

    def _tell(self, who: int) -> None:
        self.unread[who] = self.head
        self.told[who].append(self.head)

    def _gone(self, who: int) -> None:
        self.members.discard(who)
        self.invited.discard(who)
        self.following.pop(who, None)
        self.unread[who] = 0


class World:
    """The same in a broker."""

    def __init__(self, town: Town, agents: list[Caller], model: Model) -> None:
        self.town = town
        self.agents = agents
        self.model = model
        self.readers: dict[int, Reader] = {}
        self.got: dict[int, list[int]] = {}

    async def do(self, what: str, who: int, other: int) -> bool:
        """Do a step; whether it was accepted."""
        caller, target = self.agents[who], self.agents[other].agent
        if what in ("follow", "take", "unfollow"):
            accepted: bool = await getattr(self, f"_{what}")(who, caller)
            return accepted
        tools: dict[str, tuple[str, dict[str, Any]]] = {
            "join": ("join_channel", {}),
            "leave": ("leave_channel", {}),
            "invite": ("invite_agent_to_channel", {"invited_agent_id": target}),
            "remove": ("remove_channel_member", {"target_agent_id": target}),
            "transfer": ("transfer_channel", {"new_owner_agent_id": target}),
            "send": ("send_channel_message", {"body": "hello"}),
            "read": ("get_channel_history", {}),
            "read_one": (
                "get_channel_history",
                {
                    "after_seq": max(0, self.model.unread[who] - 1),
                    "limit": 1 if self.model.unread[who] else 100,
                },
            ),
        }
        name, params = tools[what]
        return code(await self.town.call(name, caller, **params)) == "accepted"

    async def _follow(self, who: int, caller: Caller) -> bool:
        if who in self.readers:  # one stream each is enough
            await self._close(who)
        reader = await self.town.bench.broker.follow_channel(caller, self.town.id)
        if not isinstance(reader, Reader):
            return False
        self.readers[who], self.got[who] = reader, []
        return True

    async def _take(self, who: int, _: Caller) -> bool:
        if who not in self.readers:
            return False
        while batch := await self.readers[who].take():
            self.got[who] += [each.position for each in batch]
        return True

    async def _unfollow(self, who: int, _: Caller) -> bool:
        return await self._close(who)

    async def _close(self, who: int) -> bool:
        reader = self.readers.pop(who, None)
        if reader is None:
            return False
        reader.close()
        await wait_all_tasks_blocked()
        return True

    async def check(self) -> None:
        """What streams hold is what the model says; who may follow no more does not."""
        await wait_all_tasks_blocked()
        for at, agent in enumerate(self.agents):
            events = await self.town.bench.store.events(f"agent:{agent.agent}", 0, 1000)
            told = [msgspec.json.decode(each.data)["seq"] for each in events if each.kind == "channel"]
            assert told == self.model.told[at], at
        for who in [each for each in self.readers if each not in self.model.following]:
            reader = self.readers.pop(who)
            with pytest.raises(Ended):
                await reader.take()
            reader.close()
        for who, got in self.got.items():
            assert got == list(range(got[0], got[0] + len(got))) if got else True
            if who in self.model.following and got:
                assert got[-1] == self.model.following[who]


STEPS = ["join", "leave", "invite", "remove", "transfer", "read", "read_one", "follow", "take", "unfollow"]
STEP = st.one_of(
    st.tuples(st.just("send"), st.integers(0, AGENTS - 1), st.just(0)),
    st.tuples(st.sampled_from(STEPS), st.integers(0, AGENTS - 1), st.integers(0, AGENTS - 1)),
    st.just(("restart", 0, 0)),
)


@pytest.mark.requirement("channel.roles", "channel.seq", "channel.unread", "channel.cut-off")
@given(private=st.booleans(), full=st.booleans(), steps=st.lists(STEP, max_size=40))
def test_a_channel_does_what_its_model_says(
    private: bool, full: bool, steps: list[tuple[str, int, int]]
) -> None:
    """`full`: all are in it from the beginning."""
    entering = [
        (what, *who) for at in range(1, AGENTS) for what, who in (("invite", (0, at)), ("join", (at, 0)))
    ]
    program = [*(entering if full else []), *steps]
    trio.run(_play, private, program, clock=MockClock(autojump_threshold=0))


async def _play(private: bool, steps: list[tuple[str, int, int]]) -> None:
    store, clock = MemoryStore(), VirtualClock(START_MS)
    model, world, left = Model(private), None, list(steps)
    while world is None or left:
        async with open_bench(store=store, clock=clock) as bench:
            if world is None:
                agents = [await make_agent(bench, f"agent-{at}") for at in range(AGENTS)]
                made = await bench.call("create_channel", agents[0], name="town", is_private=private)
                world = World(Town(bench, made["channel_id"], agents[0], []), agents, model)
            world.town.bench = bench
            while left and left[0][0] != "restart":
                await _step(world, model, *left.pop(0))
            model.restart()
            readers = list(world.readers.values())
            world.readers.clear()
        for each in readers:  # the process has ended: nobody hears of it
            each.close()
        del left[:1]


async def _step(world: World, model: Model, what: str, who: int, other: int) -> None:
    if what == "send":
        if model.sent[who] == MOST:
            return
        model.sent[who] += 1
    if what == "follow" and who in model.following:  # the world closes the old one first
        model.do("unfollow", who, 0)
    accepted = await world.do(what, who, other)
    assert model.do(what, who, other) == accepted, (what, who, other)
    await world.check()
