"""An agent's actor: its row, its keys, its name (network.md, Identity).

A name is claimed like a desk's code: a document under what the name looks like, so that no two agents can be taken
for each other. What changes an agent's right to speak is told to Standing after the commit.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import msgspec

from broker.actors.once import Once
from broker.actors.record import Index, RecordActor
from broker.actors.standing import Facts
from broker.core.agent import AgentRow, Key
from broker.store.port import Put, Store
from broker.wire.refusals import refuse

PAGE: Final = 500


class KeyRow(msgspec.Struct, frozen=True):
    """A key that belongs or belonged to an agent (kind "key", id = pk)."""

    pk: str
    kid: str
    agent_id: str
    added_at: int
    revoked_at: int | None = None


class Create(msgspec.Struct, frozen=True):
    """A new agent, with its first keys. Answer: `answer`, or a Refusal (already_exists)."""

    row: AgentRow
    answer: Any
    once: Once | None = None


class AgentActor(RecordActor[AgentRow]):
    """One agent."""

    kind = "agent"
    type = AgentRow

    def __init__(self, key: str, *, told: Callable[[str, Facts], None], **parts: Any) -> None:
        super().__init__(key, **parts)
        self._told = told

    def index_of(self, row: AgentRow) -> Index:
        index: list[tuple[str, str | int]] = [("all", "1"), ("tier", row.tier)]
        index += [("cap", each) for each in row.capabilities]
        if row.keys:
            index.append(("keyed", "1"))
        if row.owner_id is not None:
            index.append(("owner", row.owner_id))
        if row.public:
            index.append(("public", "1"))
        if row.suspended is not None:
            index.append(("suspended", row.suspended.at))
        if row.expires_at is not None:
            index.append(("due", row.expires_at))
        return tuple(index)

    def wrote(self, old: AgentRow | None, new: AgentRow | None) -> None:
        self._told(self.key, facts_of(new) if new is not None else Facts(gone=True))

    async def do(self, command: Any) -> Any:
        match command:
            case Create(row, answer, once):
                if self.row is not None:
                    return refuse("already_exists", "there is an agent of this id")
                return await self.write(row, answer, once=once, puts=[put_key(row, key) for key in row.keys])
        raise TypeError(type(command))


def facts_of(row: AgentRow) -> Facts:
    """What Standing is told of an agent."""
    return Facts(
        suspended=row.suspended is not None,
        after=row.tokens_after,
        kids=frozenset(key.kid for key in row.keys),
        pks=frozenset(key.pk for key in row.keys),
    )


async def read_facts(store: Store, agent_id: str) -> Facts | None:
    """The same, read from the store; None where there is no such agent."""
    document = await store.get("agent", agent_id)
    return None if document is None else facts_of(msgspec.json.decode(document.doc, type=AgentRow))


async def read_all_facts(store: Store) -> AsyncIterator[tuple[str, Facts]]:
    """Those of every agent that has a key: at the start, so that its keys are known to be its own."""
    after = 0
    while page := await store.find("agent", "keyed", "1", after, PAGE):
        for document in page:
            yield document.id, facts_of(msgspec.json.decode(document.doc, type=AgentRow))
        after = page[-1].order


def put_key(row: AgentRow, key: Key) -> Put:
    """A key that nobody has had joins an agent."""
    made = KeyRow(key.pk, key.kid, row.agent_id, key.added_at)
    return Put("key", key.pk, 0, msgspec.json.encode(made), (("agent", row.agent_id), ("kid", key.kid)))
