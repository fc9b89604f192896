"""An IRC account that operators bound to an agent (network.md, Agreements): a label beside the agent's agreements.

1. One account is at most one agent's; the account is the document, so that two bindings at once are one.
2. Nothing is sent to IRC nor taken from there: nobody has looked whether the agent's own is what bears this nick.
3. What an agent that is gone had is free.
"""

from typing import Any, Final

import msgspec

from broker.actors.agentdocs import NO_AGENT, read_agent
from broker.actors.calls import agent_stream
from broker.actors.once import Once
from broker.actors.record import Index, RecordActor, Told
from broker.core.pairviews import IrcAccount
from broker.store.port import Put, Store
from broker.store.stored import every, stored
from broker.wire.refusals import refuse

MOST: Final = 16
"""Accounts of one agent: they stand in each of its agreements."""


class BindingRow(msgspec.Struct, frozen=True):
    """A binding as stored (kind "irc", id = account_key). `bound_at`: wall milliseconds."""

    network: str
    nick: str
    """As the operator wrote it."""
    agent_id: str
    bound_at: int


class Bind(msgspec.Struct, frozen=True):
    """Bind the account to an agent. Answer: the binding; already_exists where it is another's. Bound to the same agent
    before, it is written as now."""

    network: str
    nick: str
    agent_id: str
    once: Once | None = None


class Unbind(msgspec.Struct, frozen=True):
    """The account is the agent's no more. Answer: {agent_id, network, nick, unbound}; not_found."""

    agent_id: str
    once: Once | None = None


class BindingActor(RecordActor[BindingRow]):
    """One account; the key is `account_key`."""

    kind = "irc"
    type = BindingRow

    def index_of(self, row: BindingRow) -> Index:
        return (("all", "1"), ("agent", row.agent_id), ("network", row.network.lower()))

    async def do(self, command: Any) -> Any:
        row, now = self.row, self.clock.now_ms()
        match command:
            case Bind(network, nick, agent_id, once):
                if await read_agent(self.store, agent_id, now) is None:
                    return NO_AGENT
                mine = row is not None and row.agent_id == agent_id
                if row is not None and not mine and await read_agent(self.store, row.agent_id, now):
                    said = "this account is bound to another agent; unbind_irc_account frees it"
                    return refuse("already_exists", said, path="nick", agent_id=row.agent_id)
                if not mine and len(await self.store.find("irc", "agent", agent_id, limit=MOST)) == MOST:
                    said = f"an agent has at most {MOST} accounts; unbind one first"
                    return refuse("quota_exceeded", said, path="agent_id", reason="irc_accounts", limit=MOST)
                at = row.bound_at if row is not None and mine else now
                bound = BindingRow(network, nick, agent_id, at)
                if bound == row:
                    return await self.write(row, _shown(row), once=once)
                events = [] if row is not None and mine else [self._notice("irc_bound", bound)]
                return await self.write(bound, _shown(bound), once=once, events=events)
            case Unbind(agent_id, once):
                if row is None or row.agent_id != agent_id:
                    said = "this account is not bound to this agent; list_irc_bindings shows what is"
                    return refuse("not_found", said, path="nick")
                answer = {"agent_id": agent_id, "network": row.network, "nick": row.nick, "unbound": True}
                return await self.write(None, answer, once=once, events=[self._notice("irc_unbound", row)])
        raise TypeError(type(command))

    def _notice(self, what: str, row: BindingRow) -> Told:
        at = self.clock.now_ms()
        body = {"what": what, "at": at, "network": row.network, "nick": row.nick}
        return Told(agent_stream(row.agent_id), "notice", body)


def _shown(row: BindingRow) -> dict[str, Any]:
    return {
        "agent_id": row.agent_id,
        "network": row.network,
        "nick": row.nick,
        "bound_at": row.bound_at,
        "bridged": False,
    }


async def read_accounts(store: Store, agent_id: str) -> tuple[IrcAccount, ...]:
    """The accounts of an agent, in the order in which they were bound, as others see them."""
    found = await store.find("irc", "agent", agent_id, limit=MOST)
    rows = [stored(BindingRow, each.doc, "irc", each.id) for each in found]
    return tuple(IrcAccount(row.network, row.nick, bridged=False) for row in rows)


async def unbind_all(store: Store, agent_id: str) -> list[Put]:
    """What frees the accounts of an agent that goes: all of them, also where several were bound at once and they are
    more than MOST."""
    return [Put("irc", each.id, each.version, None) async for each in every(store, "irc", "agent", agent_id)]
