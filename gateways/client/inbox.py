"""What comes to an agent: its events and its messages, read by cursor, each once.

1. They are asked for, not pushed: who reads slowly is late, and holds up nobody. A position is a cursor, "the last
   one that I have", so that no break of the connection loses or repeats any.
2. Where the stream does not reach back (trimmed, epoch_changed, unknown, future) messages are read from the inbox,
   which is the truth; a message's id tells what was handed out before. Other events can't be had again: Missed.

Source: wire.md, Streams; network.md, Messages.
"""

from collections import OrderedDict, deque
from typing import Any, Final

import msgspec
import trio

from gateways.client.answers import PAGE, Ask, read
from gateways.client.clockwork import Backoff
from gateways.client.errors import Missed

WAIT_MS: Final = 20_000
"""How long one question waits at the broker, milliseconds."""
KNOWN: Final = 10_000
"""Messages whose ids are remembered, so that none is handed out twice after the inbox was read."""


class Message(msgspec.Struct, frozen=True):
    """A direct message. `body` is what another agent wrote: data, never an instruction.

    `hops`: how many messages it is an answer to, one after the other. `sent_at`: Unix milliseconds.
    """

    message_id: str
    from_agent_id: str
    from_name: str
    body: str
    sent_at: int
    in_reply_to: str | None = None
    hops: int = 0
    read: bool = False


class Event(msgspec.Struct, frozen=True):
    """An event of the agent's stream: message, contact, agreement, channel, notice, and its desks' ring, env, end …"""

    kind: str
    cursor: str
    data: dict[str, Any]
    """Its members as they came."""


class Events:
    """All events after a cursor, for ever: `async for event in me.events()`. Leave it at any time."""

    def __init__(self, ask: Ask, after: str | None) -> None:
        self.cursor = after
        """The last event that was handed out: another process goes on from it."""
        self._ask = ask
        self._asked_at = after
        self._waiting: deque[Event] = deque()
        self._backoff = Backoff()

    def __aiter__(self) -> "Events":
        return self

    async def __anext__(self) -> Event:
        """The next event. Raises Missed, once, where some are gone; the next call goes on. Cancelling loses none."""
        await trio.lowlevel.checkpoint()
        while not self._waiting:
            await self._look()
        event = self._waiting.popleft()
        self.cursor = event.cursor
        return event

    async def settle(self) -> str:
        """Take in what there is now, without waiting for more; the cursor behind it. Raises Missed."""
        await self._look(0)
        return self._asked_at or "0"

    async def _look(self, wait_ms: int = WAIT_MS) -> None:
        """Ask for the next page."""
        after, began = self._asked_at, trio.current_time()
        answer = await self._ask(
            "wait_for_events", wait_s=wait_ms / 1000, wait_ms=wait_ms, limit=PAGE, after=after
        )
        page = read(answer, _Page)
        rows = [(read(each, _Row), each) for each in page.events]
        self._waiting.extend(Event(row.event, row.cursor, each) for row, each in rows)
        self._asked_at = page.cursor
        if not page.events:
            self.cursor = page.cursor
        if after is not None and not page.resume.recovered:
            raise Missed(page.resume.reason or "unknown")
        if page.events:
            self._backoff.reset()
        elif wait_ms and trio.current_time() - began < wait_ms / 2000:
            await trio.sleep(self._backoff.next_s())  # never a busy loop, whatever the broker does


class Inbox:
    """Messages, for ever: `async for message in me.inbox()`. Leave it at any time; see `Events` for `cursor`.

    `unread`: begin with those that are in the inbox and not marked as read.
    """

    def __init__(self, ask: Ask, after: str | None, unread: bool = False) -> None:
        self._ask = ask
        self._behind = unread
        """Whether the inbox is to be read before anything else."""
        self._events = Events(ask, after)
        self._waiting: deque[Message] = deque()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._last_sent_at: int | None = None

    @property
    def cursor(self) -> str | None:
        """The position in the agent's stream up to which all messages were handed out."""
        return self._events.cursor

    def __aiter__(self) -> "Inbox":
        return self

    async def __anext__(self) -> Message:
        """The next message, each once. Cancelling loses none."""
        await trio.lowlevel.checkpoint()
        while True:
            if self._behind:
                await self._catch_up()
                self._behind = False
            while self._waiting:
                message = self._waiting.popleft()
                if message.message_id not in self._known:
                    return self._hand(message)
            try:
                event = await anext(self._events)
            except Missed:
                self._behind = True
            else:
                if event.kind == "message":
                    self._waiting.append(read(event.data, Message))

    def _hand(self, message: Message) -> Message:
        self._known[message.message_id] = None
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)
        self._last_sent_at = max(message.sent_at, self._last_sent_at or 0)
        return message

    async def _catch_up(self) -> None:
        """Read from the inbox what came after the last message handed out; where none was, what is unread."""
        last = self._last_sent_at
        found: list[Message] = []
        after: str | None = None
        while True:
            answer = await self._ask("get_inbox", limit=PAGE, unread_only=last is None, after=after)
            page = read(answer, _InboxPage)
            new = [each for each in page.messages if last is None or each.sent_at >= last]
            found += new
            if page.next is None or len(new) < len(page.messages):
                break
            after = page.next
        self._waiting.extend(reversed(found))


class _Resume(msgspec.Struct):
    recovered: bool
    reason: str | None = None


class _Row(msgspec.Struct):
    event: str
    cursor: str


class _Page(msgspec.Struct):
    resume: _Resume
    cursor: str
    events: list[dict[str, Any]] = []


class _InboxPage(msgspec.Struct):
    messages: list[Message]
    next: str | None = None
