"""A channel in a test's own broker, its members, and what they hear."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio

from broker.actors.streams import Reader
from broker.app import Caller
from broker.wire.refusals import Refusal
from gateways.eventstream import Decoder
from gateways.listen import App
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


class SseFollower:
    """A client of `GET /channels/<id>` without a socket: what the door's ASGI callable sends it, decoded."""

    def __init__(self, app: App, channel_id: str, token: str, query: str = "") -> None:
        self._app = app
        self._scope = {
            "type": "http",
            "method": "GET",
            "path": f"/channels/{channel_id}",
            "query_string": query.encode(),
            "headers": [(b"authorization", f"Bearer {token}".encode()), (b"host", b"127.0.0.1:8766")],
            "client": ("203.0.113.7", 1),
        }
        self.status = 0
        self.body = b""
        self.events: list[tuple[str, Any]] = []
        """Each event's name and its data; the first is resume."""
        self.left = trio.Event()
        self.news = trio.lowlevel.ParkingLot()
        self._decoder = Decoder()

    async def run(self) -> None:
        """Follow until it leaves (`left`) or the door ends the stream."""
        await self._app(self._scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        await trio.lowlevel.checkpoint()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        self.body += message["body"]
        for event in self._decoder.feed(message["body"]):
            self.events.append((event.event, msgspec.json.decode(event.data)))
        self.news.unpark_all()

    async def wait(self, count: int) -> list[tuple[str, Any]]:
        """The events, once there are `count`."""
        with trio.fail_after(30):
            while len(self.events) < count:
                await self.news.park()
        return self.events
