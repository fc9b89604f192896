"""Programs of chance against an agent's readers: whatever breaks and whenever, each message comes once and in order."""

import random
from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock

from gateways.client import channel as channels
from tests.gateways.client.conftest import OpenAgent
from tests.gateways.client.fake_network import CHANNEL, FakeNetwork

FAULTS = ("swallow", "lose answer", "break after", "break before")
Say = Callable[[str], Awaitable[object]]
Take = Callable[[], Awaitable[int]]


class Player:
    """Says and takes numbers, and breaks things in between. `tools`: those whose answers may get lost."""

    def __init__(self, seed: int, network: FakeNetwork, say: Say, take: Take, *tools: str) -> None:
        self.chance = random.Random(seed)  # programs that can be played again
        self.said = 0
        self.taken: list[int] = []
        self._network = network
        self._say, self._take, self._tools = say, take, tools
        self.steps: list[Callable[[], Awaitable[None]]] = [
            *[self.say] * 3, self.take, self.take, self.drop, self.spoil, self.pause
        ]  # fmt: skip

    async def play(self, steps: int) -> None:
        """So many steps; then everything works, and what is missing is taken. Then nothing may come."""
        for _ in range(steps):
            await self.chance.choice(self.steps)()
        self._network.scripts.clear()
        with trio.fail_after(2000):
            while len(self.taken) < self.said:
                self.taken.append(await self._take())
        with trio.move_on_after(60):
            raise AssertionError(await self._take())
        assert self.taken == list(range(self.said))

    async def say(self) -> None:
        for _ in range(self.chance.randrange(6)):
            await self._say(str(self.said))
            self.said += 1

    async def take(self) -> None:
        with trio.move_on_after(self.chance.choice((0, 0.001, 1, 30))):
            for _ in range(self.chance.randrange(8)):
                self.taken.append(await self._take())

    async def drop(self) -> None:
        await self._network.drop_all(*self.chance.choice(((), (4008,), (1012,))))

    async def spoil(self) -> None:
        tool = self.chance.choice(self._tools)
        self._network.script(tool, *(self.chance.choice(FAULTS) for _ in range(self.chance.randrange(3))))  # type: ignore[arg-type]  # they are actions

    async def pause(self) -> None:
        await trio.sleep(self.chance.choice((0, 0.05, 1, 20)))


@pytest.mark.requirement("client.agent-channel")
@pytest.mark.parametrize("seed", range(15))
async def test_a_channel_in_programs_of_chance(
    autojump_clock: MockClock,
    network: FakeNetwork,
    agent: OpenAgent,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    monkeypatch.setattr(channels, "ROOM", (1, 3, 10)[seed % 3])
    monkeypatch.setattr(channels, "PAGE", (1, 2, 5)[seed // 3 % 3])
    async with agent() as me, me.channel(CHANNEL) as channel:

        async def take() -> int:
            post = await anext(channel)
            assert post.seq == int(post.body) + 1
            return int(post.body)

        await Player(seed, network, network.say, take, "get_channel_history").play(40)


@pytest.mark.requirement("client.agent-inbox", "client.agent-catch-up")
@pytest.mark.parametrize("seed", range(15))
async def test_an_inbox_in_programs_of_chance(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent, seed: int
) -> None:
    async with agent() as me:
        inbox = me.inbox()

        async def say(body: str) -> None:
            network.message(body)

        async def take() -> int:
            return int((await anext(inbox)).body)

        player = Player(seed, network, say, take, "wait_for_events", "get_inbox")

        async def forget() -> None:
            network.trimmed = player.chance.randrange(len(network.stream) + 1)

        async def restore() -> None:
            network.epoch += "+"

        player.steps += [forget, restore]
        await say("0")
        player.said, player.taken = 1, [await take()]  # so that there is something to go by
        await player.play(50)
