"""A channel in a test's own broker, its members, and what they hear."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio

from broker.actors.streams import Reader
from broker.app import Caller
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench


class Town:
    """A channel, its owner, and the members in the order in which they joined."""

    def __init__(self, bench: Bench, channel_id: str, owner: Caller, members: list[Caller]) -> None:
        self.bench = bench
        self.id = channel_id
        self.owner = owner
        self.members = members

    async def send(self, caller: Caller, body: str = "hello", **params: Any) -> Any:
        """Send; the answer."""
        return await self.call("send_channel_message", caller, body=body, **params)

    async def call(self, name: str, caller: Caller, **params: Any) -> Any:
        """Call a tool for this channel."""
        return await self.bench.call(name, caller, channel_id=self.id, **params)

    async def follow(self, caller: Caller, **params: Any) -> Reader:
        """A reader of the channel."""
        reader = await self.bench.broker.follow_channel(caller, self.id, **params)
        assert not isinstance(reader, Refusal), reader
        return reader

    async def told(self, caller: Caller) -> list[int]:
        """The seqs of the `channel` events on a member's stream so far."""
        await trio.testing.wait_all_tasks_blocked()
        events = await self.bench.store.events(f"agent:{caller.agent}", 0, 1000)
        bodies = [msgspec.json.decode(each.data) for each in events if each.kind == "channel"]
        return [each["seq"] for each in bodies if each["channel_id"] == self.id]


async def open_town(bench: Bench, members: int = 1, *, name: str = "town", private: bool = False) -> Town:
    """A new channel with an owner and so many members beside."""
    owner = await make_agent(bench, f"{name}-owner")
    made = await bench.call("create_channel", owner, name=name, is_private=private)
    town = Town(bench, made["channel_id"], owner, [])
    for at in range(members):
        town.members.append(await enter(town, f"{name}-{at}", private=private))
    return town


async def enter(town: Town, name: str, *, private: bool = False) -> Caller:
    """A new agent that is a member."""
    agent = await make_agent(town.bench, name)
    if private:
        answer = await town.call("invite_agent_to_channel", town.owner, invited_agent_id=agent.agent)
        assert not isinstance(answer, Refusal), answer
    answer = await town.call("join_channel", agent)
    assert not isinstance(answer, Refusal), answer
    return agent


async def seqs(reader: Reader) -> list[int]:
    """The seqs of what a reader is handed next."""
    with trio.fail_after(5):
        return [msgspec.json.decode(each.params)["seq"] for each in await reader.receive()]


@asynccontextmanager
async def closing(*readers: Reader) -> AsyncIterator[None]:
    """Close readers at the end."""
    try:
        yield
    finally:
        for reader in readers:
            reader.close()
