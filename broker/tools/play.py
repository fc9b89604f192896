"""What an agent has in the arena, for its profile; for whom a caller may play, and whose sessions it may see, the
arena's and those of trials (docs/reference/arena.md, Sessions and Accounts)."""

from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec

from broker.actors.player import NO_AGENT, next_commit, quota, read_account
from broker.core.agent import AgentRow, allowance, is_over
from broker.core.arena import PlayerRow, SessionRow
from broker.core.arenaviews import Account, SessionBrief, account_of, brief, persistent
from broker.core.games.game import MAX_ACTIONS
from broker.store.stored import read_row, stored
from broker.tools import agents
from broker.tools.context import Caller, Context, Services
from broker.wire.refusals import Refusal, refuse

RECENT: Final = 10
"""Sessions in a profile."""
MOST: Final = 100
"""Open sessions that are named to their agent, and agents to their owner."""
SUSPENDED: Final = refuse("suspended", "the operators suspended this agent: nobody plays for it")


class OfAgent(Protocol):
    """A session's document, of whatever is played."""

    @property
    def agent_id(self) -> str: ...


RowT = TypeVar("RowT", bound=OfAgent)


class Limits(msgspec.Struct, frozen=True):
    """What one agent may have in the arena."""

    open_sessions: int
    sessions_per_day: int
    actions_per_session: int
    idle_hours: float
    """Without an action a session is over then."""
    keyed_per_hour: int
    """Sessions opened and actions, of one token's subject."""


class Play(msgspec.Struct, frozen=True):
    """What an agent has in the arena. It is shown to the agent and its owner alone."""

    accounts: list[Account]
    """Its persistent account, then those of its recent sessions in simulation that are open."""
    limits: Limits
    next_commit: str
    """The commit to the chance of its next session."""
    games: int
    """Sessions that it has opened."""
    recent_sessions: list[SessionBrief]
    """The latest first."""
    open_sessions: list[str]
    """The ids of those that are open, the latest first, 100 at most: who has lost an id finds it here."""


class Standing(NamedTuple):
    """How many sessions an agent has opened, and the points of its persistent account: where it has none yet, those
    with which that opens."""

    games: int
    balance: int


def limits_of(services: Services, *, claimed: bool) -> Limits:
    """What an agent may have, claimed or not."""
    settings = services.settings.arena
    most = quota(settings, claimed=claimed)
    keyed = services.settings.limits.keyed_per_hour
    return Limits(most.open, most.a_day, MAX_ACTIONS, settings.idle_h, keyed)


def may_play(caller: Caller, agent: AgentRow) -> bool:
    """Whether a caller's agent is this one, or (it speaks for an owner) the agent is its own."""
    if caller.agent is not None:
        return caller.agent == agent.agent_id
    return caller.owner is not None and caller.owner == agent.owner_id


async def agent_for(context: Context, agent_id: str | None, *, listed: str = "") -> str | Refusal:
    """The agent for which a session is opened, if the caller may: the one named, or the one that its token acts for.
    `listed`: where an owner finds the ids, said where none is named."""
    agent_id = agent_id or context.caller.agent
    if agent_id is None:
        return refuse("bad_request", f"say for which of your agents: agent_id{listed}", path="agent_id")
    agent = await agents.find(context.services, agent_id)
    mine = agent is not None and may_play(context.caller, agent)
    if agent is None or (agent.suspended is not None and not mine):
        return NO_AGENT
    if not mine:
        return refuse("FORBIDDEN", "this agent is not yours", path="agent_id")
    # Not NOT_FOUND, which would be kept under the key, and be the answer when it is lifted.
    return agent_id if agent.suspended is None else SUSPENDED


async def visible(
    context: Context, session_id: str, row: RowT | None, missing: Refusal, *, acting: bool
) -> RowT | Refusal:
    """The session of this id, where the caller may see it; one of others is as one that never was (`missing`), also in
    what it costs. Owners see those of an agent that is suspended; nobody acts in them."""
    caller = context.caller
    if caller.agent is not None:
        return row if row is not None and row.agent_id == caller.agent else missing
    agent = await agents.find(context.services, session_id if row is None else row.agent_id)
    if row is None or agent is None or not may_play(caller, agent):
        return missing
    return SUSPENDED if acting and agent.suspended is not None else row


async def plays_for(services: Services, caller: Caller) -> list[str]:
    """The ids of the agents for which a caller may open sessions, 100 at most. Raises Unavailable."""
    if caller.agent is not None:
        return [caller.agent]
    if caller.owner is None:
        return []
    rows = [
        stored(AgentRow, each.doc, "agent", each.id)
        for each in await services.store.find("agent", "owner", caller.owner, limit=MOST)
    ]
    return [
        row.agent_id for row in rows if row.suspended is None and not is_over(row, services.clock.now_ms())
    ]


async def standing_of(services: Services, agent_id: str) -> Standing:
    """What an agent has done and has. Raises Unavailable."""
    player = await read_row(services.store, PlayerRow, "player", agent_id)
    account = await read_account(services.store, agent_id)
    balance = services.settings.arena.points if account is None else account[0].balance
    return Standing(0 if player is None else player.games, balance)


async def play_of(services: Services, agent: AgentRow) -> Play:
    """What an agent has in the arena. Raises Unavailable."""
    store, agent_id = services.store, agent.agent_id
    games, balance = await standing_of(services, agent_id)
    rows = [
        stored(SessionRow, each.doc, "session", each.id)
        for each in await store.find("arena", "agent", agent_id, limit=RECENT, newest=True)
    ]
    isolated = [account_of(row, row.balance) for row in rows if row.mode == "simulation" and row.over is None]
    return Play(
        accounts=[persistent(agent_id, balance), *isolated],
        limits=limits_of(services, claimed=allowance(agent).publishes),
        next_commit=await next_commit(store, services.vault, agent_id, games),
        games=games,
        recent_sessions=[brief(row, balance) for row in rows],
        open_sessions=[
            each.id for each in await store.find("arena", "open", agent_id, limit=MOST, newest=True)
        ],
    )
