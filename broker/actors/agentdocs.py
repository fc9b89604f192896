"""What is stored of agents: the documents of their names and keys, and how all of it is read.

Who only looks, a tool or the actor of a pair, reads here and asks no actor.
"""

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from broker.actors.standing import Facts
from broker.core.agent import AgentRow, is_over
from broker.core.claim import ClaimCode
from broker.store.port import Document, Put, Store
from broker.store.stored import every, read_row, stored
from broker.wire.refusals import refuse

NO_AGENT: Final = refuse("not_found", "there is no such agent")
"""One answer for an agent that is gone, hidden or never was."""
NO_CODE: Final = refuse("not_found", "no agent waits for this claim code")


class KeyRow(msgspec.Struct, frozen=True):
    """A key that belongs or belonged to an agent (kind "key", id = pk)."""

    pk: str
    kid: str
    agent_id: str
    added_at: int
    revoked_at: int | None = None


class NameRow(msgspec.Struct, frozen=True):
    """Whose a name is (kind "agentname", id = what it looks like; a name has one or two of them)."""

    agent_id: str


def facts_of(row: AgentRow) -> Facts:
    """What Standing is told of an agent."""
    return Facts(
        ends_at=row.expires_at,
        suspended=row.suspended is not None,
        after=row.tokens_after,
        kids=frozenset(key.kid for key in row.keys),
        pks=frozenset(key.pk for key in row.keys),
    )


async def read_agent(store: Store, agent_id: str, now_ms: int) -> AgentRow | None:
    """An agent that lives, suspended or not; None for one that is gone or never was."""
    row = await read_row(store, AgentRow, "agent", agent_id)
    return None if row is None or is_over(row, now_ms) else row


async def present(store: Store, agent_id: str, now_ms: int) -> AgentRow | None:
    """An agent that others may see and deal with; None for one that is suspended, gone, or never was."""
    row = await read_agent(store, agent_id, now_ms)
    return row if row is not None and row.suspended is None else None


async def find_claim(store: Store, code: ClaimCode, now_ms: int) -> AgentRow | None:
    """The agent that waits for a claim code."""
    for document in await store.find("agent", "claim", code.selector):
        row = stored(AgentRow, document.doc, "agent", document.id)
        if row.claim == code and not is_over(row, now_ms):
            return row
    return None


async def read_keys(store: Store, agent_id: str) -> list[KeyRow]:
    """All keys that an agent has or had, in the order in which they joined."""
    found = every(store, "key", "agent", agent_id)
    return [stored(KeyRow, document.doc, "key", document.id) async for document in found]


async def read_facts(store: Store, agent_id: str) -> Facts | None:
    """What Standing is told, read from the store; None where there is no such agent."""
    row = await read_row(store, AgentRow, "agent", agent_id)
    return None if row is None else facts_of(row)


async def read_all_facts(store: Store) -> AsyncIterator[tuple[str, Facts]]:
    """Those of every agent that has a key: at the start, so that its keys are known to be its own."""
    async for document in every(store, "agent", "keyed", "1"):
        yield document.id, facts_of(stored(AgentRow, document.doc, "agent", document.id))


def put_key(row: KeyRow, version: int) -> Put:
    """A key's document: found by its agent and by its name."""
    return Put("key", row.pk, version, msgspec.json.encode(row), (("agent", row.agent_id), ("kid", row.kid)))


def version_of(document: Document | None) -> int:
    """What a Put of it expects."""
    return document.version if document is not None else 0
