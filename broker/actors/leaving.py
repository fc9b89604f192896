"""An agent that goes leaves its channels: nobody counts it, and what it owned is nobody's until operators give it to
somebody (network.md, Channels).

1. The documents are those of the channels: a channel's actor that has read them before sees a conflict, and reads them
   again (broker.actors.record).
2. What the agent had begun may be done just after it went. So what it let go of is looked for once more, LINGER_MS
   later: it is in no channel for good, and has no account, no webhook and no secret.
3. Its tasks that are open, given or taken, and its open sessions of the arena are asked then, and end: until none is
   left it is looked again.
"""

from collections.abc import Awaitable, Callable
from itertools import product
from typing import Any, Final

import msgspec

from broker.actors.binding import unbind_all
from broker.actors.channel import index_of_channel
from broker.actors.record import Index, RecordActor
from broker.actors.task import TaskMark
from broker.core.channel import ChannelRow, MemberRow, without
from broker.core.conversation import DUE, Due
from broker.store.port import Put, Store, Unit
from broker.store.stored import stored
from broker.wire.refusals import Refusal
from broker.wire.task import OPEN

AT_ONCE: Final = 50
"""Channels that are left in one commit; an agent may be in any number of them."""
LINGER_MS: Final = 60_000
"""Longer than a request waits for its actor and its commit."""
KIND: Final = "leaving"


class LeavingRow(msgspec.Struct, frozen=True):
    """An agent that has gone (kind "leaving", id = agent_id). `due`: when it is looked again, wall milliseconds."""

    due: int


class LeavingActor(RecordActor[LeavingRow]):
    """What is left to do of one that has gone; the key is its id."""

    kind = KIND
    type = LeavingRow

    def __init__(self, key: str, *, rouse: Callable[[str, str, Any], None], **parts: Any) -> None:
        """`rouse`: the house's, by which its tasks and sessions are asked."""
        super().__init__(key, **parts)
        self._rouse = rouse

    def index_of(self, row: LeavingRow) -> Index:
        return (("due", row.due),)

    async def do(self, command: Any) -> Any:
        if not isinstance(command, Due):
            raise TypeError(type(command))
        if self.row is None or self.row.due > self.clock.now_ms():
            return None
        refused = await leave_channels(self.store, self.key, self.commit)
        if refused is not None:
            return refused
        left = LeavingRow(self.clock.now_ms() + LINGER_MS) if await self._ask_what_is_open() else None
        return await self.write(left, None, puts=await let_go(self.store, self.key))

    async def _ask_what_is_open(self) -> bool:
        """Have open tasks and sessions of the agent, some at least, look whether their agents are there; whether there
        are any."""
        found = [
            ("task", stored(TaskMark, each.doc, "taskmark", each.id).task_id)
            for side, state in product(("in", "out"), sorted(OPEN))
            for each in await self.store.find("taskmark", f"{side}.{state}", self.key, limit=AT_ONCE)
        ]
        for kind in ("arena", "trial"):
            found += [
                (kind, each.id) for each in await self.store.find(kind, "open", self.key, limit=AT_ONCE)
            ]
        for kind, id in found:
            self._rouse(kind, id, DUE)
        return bool(found)


def put_leaving(agent_id: str, now: int) -> Put:
    """For the commit with which an agent goes. `now`: wall milliseconds."""
    due = now + LINGER_MS
    return Put(KIND, agent_id, 0, msgspec.json.encode(LeavingRow(due)), (("due", due),))


async def let_go(store: Store, agent_id: str) -> list[Put]:
    """What takes an agent's accounts, its webhook, its endpoint, its own secrets, and what was counted of it. Raises
    what the store raises."""
    puts = await unbind_all(store, agent_id)
    for kind in ("sending", "push", "endpoint", "safe"):
        document = await store.get(kind, agent_id)
        if document is not None:
            puts.append(Put(kind, agent_id, document.version, None))
    return puts


async def leave_channels(
    store: Store, agent_id: str, commit: Callable[[Unit], Awaitable[Refusal | None]]
) -> Refusal | None:
    """Take an agent out of all its channels, in commits of its actor's: whoever is cut off in between comes again, and
    goes on. Returns why one was not written. Raises what the store raises."""
    while puts := await _some(store, agent_id):
        refused = await commit(Unit(puts=tuple(puts)))
        if refused is not None:
            return refused
    return None


async def _some(store: Store, agent_id: str) -> list[Put]:
    """What takes it out of some of them; nothing where it is in none."""
    puts: list[Put] = []
    for document in await store.find("member", "agent", agent_id, limit=AT_ONCE):
        member = stored(MemberRow, document.doc, "member", document.id)
        puts.append(Put("member", document.id, document.version, None))
        found = await store.get("channel", member.channel_id)
        if found is not None:
            row = without(stored(ChannelRow, found.doc, "channel", found.id), member)
            index = index_of_channel(row)
            puts.append(Put("channel", found.id, found.version, msgspec.json.encode(row), index))
    return puts
