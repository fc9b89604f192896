"""A channel's actor: its rows, its log, and its stream (network.md, Channels).

1. Message `seq` is row seq - 1 of the log and position seq of the stream, whose events refer to the log: it is stored
   once, whoever reads it.
2. Some members that are to be told of it are told in the message's own commit, at most CHUNK; the others a chunk at a
   time afterwards. Until that is done the channel's row says when it is due, so that a restart forgets nobody.
3. Who follows the channel when the process ends goes on by its cursor, and is not told of what it may have read.
"""

from collections import OrderedDict, deque
from itertools import islice
from typing import Any, Final

import msgspec

from broker.actors.actor import Letter
from broker.actors.calls import agent_stream
from broker.actors.followers import Followers
from broker.actors.once import Once
from broker.actors.receipts import Receipts, Stopped
from broker.actors.record import Index, Record, RecordActor, Told
from broker.core import channel as core
from broker.core.channel import Change, Channel, ChannelRow, MemberRow, Message
from broker.core.conversation import Due
from broker.core.machine import Now
from broker.core.pace import Pace, Seen, Spent, recount
from broker.store.port import Append, Put, Store
from broker.store.stored import every, read_row, stored
from broker.wire.refusals import Refusal, refuse

CHUNK: Final = 64
"""Agents that are told in one commit."""
DUE_MS: Final = 2_000
"""So long after a message those who were not told yet are looked for, where the actor has not done it."""


def channel_name(channel_id: str) -> str:
    """A channel's log, and its stream."""
    return f"channel:{channel_id}"


async def read_channel(store: Store, channel_id: str) -> ChannelRow | None:
    """A channel as stored, or None."""
    return await read_row(store, ChannelRow, "channel", channel_id)


async def read_member(store: Store, channel_id: str, agent_id: str) -> MemberRow | None:
    """A member, or an invited agent; None for others."""
    return await read_row(store, MemberRow, "member", f"{channel_id}:{agent_id}")


def index_of_channel(row: ChannelRow) -> Index:
    """What a channel is found by."""
    index: list[tuple[str, str | int]] = [("all", "1")]
    if row.owner_id:
        index.append(("owner", row.owner_id))
    if not row.is_private:
        index.append(("public", "1"))
    if row.due is not None:
        index.append(("due", row.due))
    return tuple(index)


class Do(msgspec.Struct, frozen=True):
    """A command of the core; the answer is its Change's, or a Refusal."""

    command: core.Command
    once: Once | None = None


class FollowBegan(msgspec.Struct, frozen=True):
    """An agent follows the channel now. Told, not asked."""

    agent_id: str


class HasRead(msgspec.Struct, frozen=True):
    """An agent has read all up to `seq`; its stream of the channel may have ended there. Told, not asked: it is noted
    with others' in one commit."""

    agent_id: str
    seq: int


class _Settle:
    """Tell the next ones."""


class Windows:
    """What this process knows of each channel that was written to lately; its actors come and go."""

    def __init__(self, keep_s: float) -> None:
        """`keep_s`: the window of the limits."""
        self._keep_s = keep_s
        self._seen: OrderedDict[str, tuple[float, int, deque[Spent]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seen)

    def get(self, channel_id: str) -> Seen | None:
        """What is known of a channel; None: this process has not written to it lately."""
        found = self._seen.get(channel_id)
        return None if found is None else Seen(found[1], tuple(found[2]))

    def keep(self, state: Channel, channel_id: str, mono: float) -> None:
        """Note where a channel stands at monotonic second `mono`; forget those that nobody writes to."""
        self._seen[channel_id] = (mono, state.head, state.spent)
        self._seen.move_to_end(channel_id)
        while next(iter(self._seen.values()))[0] <= mono - self._keep_s:
            self._seen.popitem(last=False)


class ChannelActor(RecordActor[ChannelRow]):
    """One channel."""

    kind = "channel"
    type = ChannelRow

    def __init__(
        self,
        key: str,
        *,
        started: Now,
        windows: Windows,
        pace: Pace,
        followers: Followers,
        receipts: Receipts,
        **parts: Any,
    ) -> None:
        super().__init__(key, **parts)
        self.channel = Channel(pace)
        self._started = started
        self._windows = windows
        self._followers = followers
        self._receipts = receipts
        self._versions: dict[str, int] = {}
        self._awake: dict[str, None] = {}
        """Who is to be told of the next message: members that have read what they were told of, and don't follow."""
        self._owed: dict[str, None] = {}
        """Who is to be told of the last one."""
        self._left: dict[str, int] = {}
        """How far those have read whose streams have ended."""
        self._settling = False

    def knows(self, agent_id: str) -> bool:
        """Whether an agent is in the channel, or invited, as far as the actor has read."""
        return agent_id in self.channel.members

    def index_of(self, row: ChannelRow) -> Index:
        return index_of_channel(row)

    async def load(self) -> Record[ChannelRow]:
        record = await super().load()
        state = self.channel
        state.row = record.row
        for name in ("channel", "invited"):
            async for document in every(self.store, "member", name, self.key):
                row = stored(MemberRow, document.doc, "member", document.id)
                state.members[row.agent_id] = row
                self._versions[row.agent_id] = document.version
        await self._read_back(state)
        for agent_id in state.members:
            self._sort(agent_id)
        if record.row is not None and record.row.due is not None:
            self._owed.update(self._awake)
        return record

    async def _read_back(self, state: Channel) -> None:
        rows = [
            stored(Message, entry.data, "channel", self.key)
            for entry in reversed(
                await self.store.tail(channel_name(self.key), limit=self.channel.pace.channel)
            )
        ]
        if rows:
            state.head, state.last_at = rows[-1].seq, rows[-1].at
        sent = [(row.seq, row.agent_id, row.at) for row in rows]
        state.spent.extend(recount(sent, self._windows.get(self.key), self._started, self._now()))

    def decide(self, command: Any) -> Any:
        match command:
            case FollowBegan(agent_id):
                self._sort(agent_id)
                return None
            case HasRead(agent_id, seq):
                self._sort(agent_id)
                if not self._followers.live(self.key, agent_id):
                    self._left[agent_id] = max(seq, self._left.get(agent_id, 0))
                    self._settle_soon()
                return None
        return super().decide(command)

    async def do(self, command: Any) -> Any:
        match command:
            case Do(core.Send() as send, once):
                return await self._send(send, once)
            case Do(core.Create() as create, once):
                return await self._create(create, once)
            case Do(core.Read() as read, once):
                return await self._read_upto(read, once)
            case Do(wanted, once):
                change = core.decide(self.channel, wanted, self._now())
                return change if isinstance(change, Refusal) else await self._commit(change, once)
            case _Settle() | Due():
                return await self._settle()
        raise TypeError(type(command))

    async def _create(self, command: core.Create, once: Once | None) -> Any:
        change = core.decide(self.channel, command, self._now())
        if isinstance(change, Refusal):
            return change
        row = command.row
        if await self.store.get("channelname", row.name) is not None:
            return refuse("already_exists", "there is a channel of this name")
        claim = Put("channelname", row.name, 0, msgspec.json.encode({"channel_id": row.channel_id}))
        return await self._commit(change, once, claim)

    async def _send(self, command: core.Send, once: Once | None) -> Any:
        now = self._now()
        change = core.decide(self.channel, command, now)
        if isinstance(change, Refusal):
            return change
        assert change.message is not None
        row = self.row
        assert row is not None
        trace = self._receipts.judge(
            command.message_id, sender=command.agent_id, to=self.key, place=self.key, now=now
        )
        if isinstance(trace, Stopped):
            return await self._stopped(command.agent_id, trace)
        message = msgspec.structs.replace(change.message, hops=trace.hops)
        telling = [each for each in self._awake if each != command.agent_id]
        told = core.settle(self.channel, {}, telling[:CHUNK], message.seq)
        rest = telling[CHUNK:]
        if rest and row.due is None:
            row = msgspec.structs.replace(row, due=message.at + DUE_MS)
        change = msgspec.structs.replace(
            change, row=row, members=told.members, told=told.told, message=message
        )
        self._windows.keep(self.channel, self.key, now.mono)
        answer = await self._commit(change, once)
        if not isinstance(answer, Refusal):
            self._receipts.heard(self.key, command.agent_id, trace, now)
            self._owed.update(dict.fromkeys(rest))
            if self._owed or self._left:
                self._settle_soon()
        return answer

    async def _stopped(self, agent_id: str, stopped: Stopped) -> Any:
        """The guard stopped a message: who sent it and who it answered are told, once."""
        other = next(
            (each.agent_id for each in reversed(self.channel.spent) if each.agent_id != agent_id), None
        )
        notice = {"what": "loop", "at": self.clock.now_ms(), "channel_id": self.key, "by": agent_id}
        notice.update(stopped.refusal.detail)
        told = dict.fromkeys((agent_id, other or agent_id)) if stopped.tell else ()
        events = [Told(agent_stream(each), "notice", notice) for each in told]
        return await self.write(self.row, stopped.refusal, events=events)

    async def _read_upto(self, command: core.Read, once: Once | None) -> Any:
        change = core.decide(self.channel, command, self._now())
        if isinstance(change, Refusal):
            return change
        if command.seq >= self.channel.head:
            self._owed.pop(command.agent_id, None)
        return await self._commit(change, once)

    async def _settle(self) -> Any:
        """Tell the next CHUNK. What the store does not take now is done at the next occasion."""
        self._settling = False
        left = dict(islice(self._left.items(), CHUNK))
        owed = list(islice((each for each in self._owed if each not in left), CHUNK - len(left)))
        more = len(self._left) + len(self._owed) > len(left) + len(owed)
        change = core.settle(self.channel, left, owed)
        row = self.row
        if row is not None and row.due is not None and not more:
            row = msgspec.structs.replace(row, due=None)
        answer = await self._commit(msgspec.structs.replace(change, row=row), None)
        if isinstance(answer, Refusal):
            return answer
        for agent_id in left:
            del self._left[agent_id]
        for agent_id in (*left, *owed):
            self._owed.pop(agent_id, None)
        if more:
            self._settle_soon()
        return None

    def _settle_soon(self) -> None:
        if not self._settling:
            self._settling = True
            self.post(Letter(_Settle(), None))
            self._parked.wake()  # it may have been told while it decided on another letter

    async def _commit(self, change: Change, once: Once | None, *puts: Put) -> Any:
        """Commit a change and fold it; its answer, or why not."""
        row, message = change.row if change.row is not None else self.row, change.message
        events = [Told(agent_stream(agent_id), "notice", body) for agent_id, body in change.notices]
        events += [
            Told(agent_stream(agent_id), "channel", {"channel_id": self.key, "seq": seq})
            for agent_id, seq in change.told
        ]
        append = None
        if message is not None:
            name = channel_name(self.key)
            append = Append(name, message.seq - 1, msgspec.json.encode(message), message.at)
            events.append(Told(name, "channel_message", None))
        private = row is not None and row.is_private
        members = [self._put_member(agent_id, member, private) for agent_id, member in change.members]
        answer = await self.write(
            row, change.answer, once=once, puts=[*members, *puts], events=events, append=append
        )
        if not isinstance(answer, Refusal):
            self._folded(change)
        return answer

    def _folded(self, change: Change) -> None:
        now = self._now()
        core.fold(self.channel, change, now)
        if change.message is not None:
            self._windows.keep(self.channel, self.key, now.mono)
        self.channel.row = row = self.row
        for agent_id, member in change.members:
            self._versions[agent_id] = self._versions.get(agent_id, 0) + 1
            if member is None:
                del self._versions[agent_id]
                self._owed.pop(agent_id, None)
                self._followers.end(self.key, agent_id, core.inside(row, None) or core.missing())
            self._sort(agent_id)

    def _put_member(self, agent_id: str, member: MemberRow | None, private: bool) -> Put:
        name, expect = f"{self.key}:{agent_id}", self._versions.get(agent_id, 0)
        if member is None:
            return Put("member", name, expect, None)
        place = "invited" if member.role == "invited" else "channel"
        index: Index = (
            (place, self.key),
            ("agent", agent_id),
            *((("private", agent_id),) if private else ()),
        )
        return Put("member", name, expect, msgspec.json.encode(member), index)

    def _sort(self, agent_id: str) -> None:
        """Whether an agent is to be told of the next message."""
        told = self.channel.in_it(agent_id) and not self.channel.members[agent_id].unread
        if told and not self._followers.live(self.key, agent_id):
            self._awake[agent_id] = None
        else:
            self._awake.pop(agent_id, None)

    def _now(self) -> Now:
        return Now(self.clock.now_ms(), self.clock.monotonic())
