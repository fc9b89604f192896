"""A channel and its members: made in a store before the broker starts, each with a token of its own.

Agents (bench.kit.agents) and members are made by the broker's own actors; from then on everything goes through doors.
"""

import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import trio

from bench.fan import Event, Fan
from bench.followers import SseFollower, WebSocketFollower
from bench.kit.agents import ABREAST, Tokens, done, make_agent, ulid
from bench.kit.machine import disk_directory
from bench.kit.parties import NOTE
from bench.kit.server import Broker
from bench.kit.websocket import Socket, frame, request
from broker.actors.channel import Do
from broker.app import open_broker
from broker.clock import SystemClock
from broker.config import Settings
from broker.core import channel as core
from broker.store.sqlite import SqliteStore
from gateways.wirekeys import open_keyring

BODY: Final = NOTE * 4
"""About 500 bytes of text."""


class Room(msgspec.Struct, frozen=True):
    """A channel as prepared: its id, who owns it, and its other members."""

    channel_id: str
    owner: str
    members: Sequence[str]


@contextmanager
def prepare(members: int) -> Iterator[tuple[Path | None, Room | None]]:
    """A new data directory with a channel of so many members beside its owner; (None, None) for none."""
    if not members:
        yield None, None
        return
    with tempfile.TemporaryDirectory(prefix="turret-bench-", dir=disk_directory()) as temporary:
        data = Path(temporary, "data")
        data.mkdir(mode=0o700)
        yield data, trio.run(_prepare, data, members)


async def _prepare(data: Path, members: int) -> Room:
    clock = SystemClock()
    store = await SqliteStore.open(data)
    try:
        keyring = await open_keyring(data, store, clock.now_ms())
        async with open_broker(Settings(), store, clock, keyring) as broker:
            owner, channel_id = f"ag_{ulid(0)}", f"ch_{ulid(0)}"
            await make_agent(broker, owner, "bench-owner")
            row = core.ChannelRow(channel_id, "bench", owner, clock.now_ms())
            await done(broker, "channel", channel_id, Do(core.Create(row)))
            agents = [f"ag_{ulid(at)}" for at in range(1, members + 1)]
            turns = trio.CapacityLimiter(ABREAST)

            async def join(at: int, agent_id: str) -> None:
                async with turns:
                    await make_agent(broker, agent_id, f"bench-{at}")
                    await done(broker, "channel", channel_id, Do(core.Join(agent_id)))

            async with trio.open_nursery() as nursery:
                for at, agent_id in enumerate(agents):
                    nursery.start_soon(join, at, agent_id)
    finally:
        await store.aclose()
    return Room(channel_id, owner, agents)


class Member(WebSocketFollower):
    """A member that follows over the dealing port or the public port's /ws, by its token."""

    def __init__(self, url: str, channel_id: str, token: str) -> None:
        opened = Socket(url)
        opened.ask("authenticate", {"token": token})
        opened.ask("follow", {"channel": channel_id})
        super(WebSocketFollower, self).__init__(opened.socket)
        self.rest = opened.rest


class SseMember(SseFollower):
    """The same over GET /channels/<id>."""

    def __init__(self, http: str, channel_id: str, token: str) -> None:
        self.begin(http, f"/channels/{channel_id}", f"Bearer {token}")


class Channel(Fan):
    """The owner sends; an answer and an event are the right ones by their seq."""

    def __init__(self, room: Room, broker: Broker) -> None:
        """Connect the owner. Raises Lost, Refused."""
        self._room = room
        self._broker = broker
        self._tokens = Tokens(broker, "channel message")
        super().__init__(Socket(broker.dealing))
        self._socket.ask("authenticate", {"token": self._tokens.of(room.owner)})
        page = self._socket.ask("get_channel_history", {"channel_id": room.channel_id, "limit": 1})
        self._before: int = page["head"]

    def members(self, count: int, over: str) -> list[Member | SseMember]:
        """So many members that follow from now on. Raises Lost, Refused."""
        tokens = [self._tokens.of(agent_id) for agent_id in self._room.members[:count]]
        room = self._room.channel_id
        if over == "sse":
            return [SseMember(self._broker.http, room, token) for token in tokens]
        url = self._broker.ws if over == "ws" else self._broker.dealing
        return [Member(url, room, token) for token in tokens]

    def plan(self, most: int) -> deque[Event]:
        """Messages, by their number."""
        return deque(self._event(n) for n in range(self.written + 1, self.written + most + 1))

    def close(self) -> None:
        """Close the owner's connection."""
        self._socket.socket.close()

    def _event(self, n: int) -> Event:
        params = {"channel_id": self._room.channel_id, "body": BODY}
        text = request(n, "send_channel_message", params)
        return Event(n, frame(text), b'"seq":%d,' % (self._before + n), self.followers)
