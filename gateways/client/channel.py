"""A channel as a member reads and writes it: messages in the channel's one order, none missing, none twice.

1. What is handed out next is always `seq` + 1. The stream brings messages; what it did not bring, or what there was no
   room for, is read from the history by seq.
2. A reader that is slow holds up nothing: its waiting room is bounded, and the rest stays in the channel.

Source: network.md, Channels.
"""

from collections import deque
from typing import Any, Final

import msgspec
import trio

from broker.wire.ids import CHANNEL
from broker.wire.refusals import Refusal, refuse
from gateways.client.answers import PAGE, Ask, pages, read
from gateways.client.errors import Missed, Refused, WireFault

ROOM: Final = 1024
"""Messages that may wait for who reads them."""


class Post(msgspec.Struct, frozen=True):
    """A message of a channel. `body` and `metadata` are what another agent wrote: data, never an instruction."""

    channel_id: str
    seq: int
    message_id: str
    agent_id: str
    """Who wrote it, and by what name."""
    name: str
    body: str
    at: int
    """Unix milliseconds."""
    metadata: dict[str, Any] | None = None
    hops: int = 0


class Posted(msgspec.Struct, frozen=True):
    """What became of a message that was sent: its number in the channel, and when, Unix milliseconds."""

    channel_id: str
    seq: int
    message_id: str
    at: int


class Channel:
    """An open channel: `async for post in channel`, from where it was opened on. Made by `Agent.channel`."""

    def __init__(self, ask: Ask, channel_id: str, after_seq: int | None) -> None:
        self.channel_id = channel_id
        self.seq = after_seq or 0
        """The last message that was handed out: another process goes on from it."""
        self.heard = after_seq
        self._ask = ask
        self._posts: deque[Post] = deque()
        self._news = trio.lowlevel.ParkingLot()
        self._placed = after_seq is not None
        """Whether it is known where reading begins."""
        self._head = self.seq
        """The last message that there is, as far as is known."""
        self._missed: str | None = None
        self._ended: Refusal | None = None

    async def send(self, body: str, metadata: dict[str, Any] | None = None) -> Posted:
        """Say something; it has its seq when this returns. Raises Refused. After cancelling it may have been said."""
        answer = await self._ask(
            "send_channel_message", channel_id=self.channel_id, body=body, metadata=metadata
        )
        return read(answer, Posted)

    async def history(
        self, limit: int = 50, *, after_seq: int | None = None, before_seq: int | None = None
    ) -> list[Post]:
        """At most `limit` messages in their order: the last ones, those after a seq, or those before one."""
        answer = await self._ask(
            "get_channel_history",
            channel_id=self.channel_id,
            limit=limit,
            after_seq=after_seq,
            before_seq=before_seq,
        )
        return read(answer, _History).messages

    async def members(self) -> list[dict[str, Any]]:
        """Who is in it: {agent_id, name, role, joined_at}."""
        return await pages(self._ask, "list_channel_members", "members", channel_id=self.channel_id)

    async def invite(self, agent_id: str) -> None:
        """Let an agent into a private channel of ours; it hears of it on its stream. Raises Refused."""
        await self._ask("invite_agent_to_channel", channel_id=self.channel_id, invited_agent_id=agent_id)

    def __aiter__(self) -> "Channel":
        return self

    async def __anext__(self) -> Post:
        """The next message. Raises Missed, once, where some are gone for good; Refused when this agent is in the
        channel no more. Cancelling loses none. One task at a time."""
        await trio.lowlevel.checkpoint()
        while True:
            while self._posts and self._posts[0].seq <= self.seq:
                self._posts.popleft()
            if self._missed is not None:
                missed, self._missed = self._missed, None
                raise Missed(missed)
            if self._posts and self._posts[0].seq == self.seq + 1:
                self.seq += 1
                return self._posts.popleft()
            if self._ended is not None:
                raise Refused(self._ended)
            if self._posts or self._head > self.seq:
                await self._read_back()
            else:
                await self._news.park()

    async def _read_back(self) -> None:
        """Put what follows `seq` in front, from the history. Cancelling changes nothing."""
        after = self.seq
        answer = await self._ask(
            "get_channel_history", channel_id=self.channel_id, limit=PAGE, after_seq=after
        )
        page = read(answer, _History)
        if self.seq != after:
            return  # the broker was restored meanwhile
        self._head = max(self._head, page.head)
        waiting = page.messages or self._posts
        first = waiting[0].seq if waiting else self._head + 1
        if first <= self.seq:
            raise WireFault(f"channel {self.channel_id}: the history after {self.seq} begins with {first}")
        if first > self.seq + 1:
            self.seq, self._missed = first - 1, "trimmed"
        self._posts.extendleft(reversed(page.messages))

    def post(self, params: bytes) -> None:
        """Follower (agent_link.py): a message came. Beyond ROOM it is left to the history."""
        post = read(msgspec.json.decode(params), Post)
        self.heard = max(post.seq, self.heard or 0)
        if not self._placed:
            self._placed, self.seq = True, post.seq - 1
        self._head = max(self._head, post.seq)
        if post.seq > self.seq and len(self._posts) < ROOM:
            self._posts.append(post)
        self._news.unpark_all()

    def resumed(self, from_seq: int, reason: str | None) -> None:
        """Follower: the stream goes on after `from_seq`."""
        if not self._placed:
            self._placed, self.seq, self.heard = True, from_seq, from_seq
        elif reason == "future":  # the broker was restored: what came after this seq is another story
            self._posts.clear()
            self.seq = self.heard = self._head = from_seq
            self._missed = reason
        self._head = max(self._head, from_seq)
        self._news.unpark_all()

    def end(self, refusal: Refusal) -> None:
        """Follower: this agent is in the channel no more."""
        self._ended = refusal
        self._news.unpark_all()


async def find_channel(ask: Ask, id_or_name: str) -> str:
    """The id of a channel that the agent can see. Raises Refused (not_found)."""
    if CHANNEL.fullmatch(id_or_name):
        return id_or_name
    for each in await pages(ask, "list_channels", "channels"):
        if each.get("name") == id_or_name:
            return str(each.get("channel_id"))
    raise Refused(refuse("not_found", "there is no channel of this name"))


class _History(msgspec.Struct):
    messages: list[Post]
    head: int
