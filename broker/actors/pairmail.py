"""The messages of a pair: sent, kept, read (network.md, Messages, Loop guard).

1. What an agreement allows is looked at when the letter is taken, in the actor that revokes it too.
2. An inbox keeps so many of each sender: who writes much pushes out its own.
3. What a message counts for, where its sender's day is limited, is in the message's own commit.
"""

from typing import Any, Final

import msgspec

from broker.actors.agentdocs import present, version_of
from broker.actors.calls import agent_stream
from broker.actors.once import Once
from broker.actors.pairdocs import FRESH, find_overfull, put_message, read_message, tell_stopped
from broker.actors.receipts import Receipts, Stopped
from broker.actors.record import RecordActor, Told
from broker.config import Network
from broker.core import agreement as core
from broker.core.agent import AgentRow, Sending, allowance, count_message
from broker.core.agreement import PairRow, pair_key
from broker.core.loops import Receipt, Trace
from broker.core.machine import Now
from broker.core.message import MessageRow, shown
from broker.store.port import Put
from broker.store.stored import stored
from broker.wire.refusals import Refusal, refuse

NOT_AGREED: Final = refuse(
    "agreement_required",
    "you have no agreement with this agent that allows messages; ask for one with request_contact",
    scope="message",
)
NO_MESSAGE: Final = refuse(
    "not_found", "in_reply_to names no message of yours and this agent's", path="in_reply_to"
)


class Send(msgspec.Struct, frozen=True):
    """A message. Answer: {message_id, sent_at, hops}."""

    message_id: str
    sender: str
    recipient: str
    body: str
    in_reply_to: str | None = None
    once: Once | None = None


class MarkRead(msgspec.Struct, frozen=True):
    """Messages to `by`, as who asks has looked, are read. Answer: Marked, of all that was `asked` for.

    `done`: those that are read already, in other pairs. With `once` this is the last of the request's commits: what is
    remembered has happened.
    """

    by: str
    message_ids: tuple[str, ...]
    asked: tuple[str, ...]
    done: frozenset[str] = frozenset()
    once: Once | None = None


class Marked(msgspec.Struct, frozen=True):
    """Which of the messages are read now, and which ids are none of yours."""

    marked: list[str]
    missing: list[str]


class Sent(msgspec.Struct, frozen=True):
    """A message that was accepted: durable, and in the other one's inbox. `sent_at`: Unix milliseconds."""

    message_id: str
    to_agent_id: str
    sent_at: int
    hops: int


class MailActor(RecordActor[PairRow]):
    """The part of a pair's actor that messages need; see broker.actors.pair."""

    kind = "pair"
    type = PairRow

    def __init__(self, key: str, *, settings: Network, receipts: Receipts, **parts: Any) -> None:
        super().__init__(key, **parts)
        self._settings = settings
        self._receipts = receipts

    async def send(self, command: Send) -> Any:
        """Sent, or why not: agreement_required, not_found (what it answers), quota_exceeded (its sender's day, or a
        loop)."""
        now = Now(self.clock.now_ms(), self.clock.monotonic())
        sender, recipient = command.sender, command.recipient
        if core.find_agreement(self.row, sender, "message", now.wall_ms) is None:
            return NOT_AGREED
        author = await self.find_present(sender)
        if author is None or await self.find_present(recipient) is None:
            return NOT_AGREED
        replied: Receipt | None = None
        if command.in_reply_to is not None:
            original = await self._shared(command.in_reply_to)
            if original is None:
                return NO_MESSAGE
            if original.sender == recipient:
                replied = Receipt(original.sender, now.mono, original.trace)
        counted = await self._count(author, now.wall_ms)
        if isinstance(counted, Refusal):
            return counted
        trace = self._receipts.judge(
            command.message_id,
            sender=sender,
            to=recipient,
            place=self.key,
            now=now,
            replied=replied,
            agents=(sender, recipient),
        )
        if isinstance(trace, Stopped):
            events = tell_stopped(trace, sender, recipient, now.wall_ms)
            return await self.write(self.row, trace.refusal, events=events)
        answer = await self._deliver(command, author.name, trace, now.wall_ms, counted)
        if not isinstance(answer, Refusal):
            both = (sender, recipient)
            self._receipts.heard(recipient, sender, trace, now, place=self.key, agents=both)
        return answer

    async def _count(self, author: AgentRow, now: int) -> list[Put] | Refusal:
        """What counts a message in its sender's day."""
        if allowance(author).messages_a_day is None:
            return []
        document = await self.store.get("sending", author.agent_id)
        old = Sending() if document is None else stored(Sending, document.doc, "sending", author.agent_id)
        sending = count_message(author, old, now)
        if isinstance(sending, Refusal):
            return sending
        return [Put("sending", author.agent_id, version_of(document), msgspec.json.encode(sending))]

    async def _deliver(self, command: Send, name: str, trace: Trace, now: int, counted: list[Put]) -> Any:
        message = MessageRow(
            command.message_id,
            command.sender,
            command.recipient,
            command.body,
            now,
            trace,
            name,
            command.in_reply_to,
        )
        most = self._settings.messages_kept
        dropped = await find_overfull(self.store, self.pair(), command.recipient, most)
        unread = sum(each.read_at is None for each, _ in dropped)
        row = core.sent(self.pair(), command.recipient, dropped=len(dropped), dropped_unread=unread)
        return await self.write(
            row,
            Sent(message.message_id, message.recipient, now, trace.hops),
            once=command.once,
            puts=[
                put_message(message, FRESH),
                *counted,
                *(Put("dm", each.message_id, version, None) for each, version in dropped),
            ],
            events=[Told(agent_stream(command.recipient), "message", shown(message))],
        )

    async def mark(self, command: MarkRead) -> Any:
        """Marked. What made room meanwhile is missing."""
        now, found, puts = self.clock.now_ms(), [], []
        for message_id in command.message_ids:
            document = await self.store.get("dm", message_id)
            message = stored(MessageRow, document.doc, "dm", message_id) if document is not None else None
            if document is None or message is None:
                continue  # it made room meanwhile
            found.append(message_id)
            if message.read_at is None:
                read = msgspec.structs.replace(message, read_at=now)
                puts.append(put_message(read, document.version))
        row = core.read(self.pair(), command.by, len(puts)) if puts else self.row
        done = command.done.union(found)
        marked = Marked(
            [each for each in command.asked if each in done],
            [each for each in command.asked if each not in done],
        )
        return await self.write(row, marked, once=command.once if done else None, puts=puts)

    async def _shared(self, message_id: str) -> MessageRow | None:
        """A message between the two."""
        message = await read_message(self.store, message_id)
        ours = message is not None and pair_key(message.sender, message.recipient) == self.key
        return message if ours else None

    async def find_present(self, agent_id: str) -> AgentRow | None:
        """One of the two, where it is there now."""
        return await present(self.store, agent_id, self.clock.now_ms())

    def pair(self) -> PairRow:
        """The row as it stands, or a new one's."""
        one, _, other = self.key.partition(":")
        return self.row or PairRow((one, other))
