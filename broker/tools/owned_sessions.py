"""An owner's agents in the arena, for the owner's pages: their sessions, and stopping one (arena.md, Sessions).

1. `owner_id` is what the browser's session says, as in broker.tools.owned; another owner's is missing.
2. What is shown is what the agent itself sees: nothing that is hidden from it.
3. An owner stops whatever version the session has by then: the decision hangs on no card and no price.
"""

import hashlib
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from broker.actors.agentdocs import NO_AGENT
from broker.actors.arena import MAX_EVENTS, Look, Submit
from broker.actors.session import Rejected
from broker.core import arena as core
from broker.core.agent import AgentRow
from broker.core.arena import NO_SESSION, Acted, Event, Opened, SessionRow, change_of
from broker.core.arenaviews import Account, Session, SessionBrief, brief, persistent
from broker.core.games.game import STOP
from broker.store.port import Entry, Store
from broker.store.stored import read_row, stored
from broker.tools.agents import find
from broker.tools.context import Context
from broker.tools.idempotency import KeyText, bind, run_once
from broker.tools.paging import read_page
from broker.tools.play import SUSPENDED, standing_of
from broker.tools.registry import tool
from broker.wire.canonical import encode
from broker.wire.refusals import Refusal

Text = Annotated[str, Meta(max_length=1024)]
Before = Annotated[int, Meta(ge=1, le=1_000_000)] | None
Which = Literal["all", "open"]
PAGE: Final = 20
"""Sessions, events or rejected attempts on one page."""
TRIES: Final = 5
"""How often a session is looked at again that moved on between the look and the stop."""
_EVENT: Final[Any] = Event
_INDEX: Final[dict[Which, str]] = {"all": "agent", "open": "open"}


class OwnedSessions(msgspec.Struct, frozen=True):
    """An agent's persistent account, and its sessions, the latest first."""

    agent_id: str
    name: str
    account: Account
    games: int
    """Sessions that it has opened in all."""
    sessions: list[SessionBrief]
    next: str | None
    """Where the next page begins; None: that was all."""


class Happened(msgspec.Struct, frozen=True):
    """An event after the first: number, when (Unix milliseconds), what the account gained, what it won and lost up to
    then in this session, and the event itself."""

    n: int
    at: int
    change: int
    net: int
    event: dict[str, Any]


class Tried(msgspec.Struct, frozen=True):
    """A rejected attempt, as kept; `at` in Unix milliseconds."""

    n: int
    at: int
    tried: Rejected


class Mark(msgspec.Struct, frozen=True):
    """Which state of a session this is: whatever is shown of it changes with its mark. `now`: Unix milliseconds."""

    mark: str
    now: int


class OwnedSession(msgspec.Struct, frozen=True):
    """One session as its agent sees it, with its history, the latest first. `opened`: the first event's facts and
    points; `nets`: points won and lost after each event, from the first (0) on."""

    name: str
    suspended: bool
    session: Session
    mark: Mark
    facts: Any
    points: int
    nets: list[int]
    events: list[Happened]
    attempts: list[Tried]
    kept: int
    """Rejected attempts in all, REJECTED_KEPT at most."""


class Stopped(msgspec.Struct, frozen=True):
    """The session is over."""

    session_id: str
    over: str | None


@tool(face="signin", title="Sessions of my agent", read_only=True)
async def my_sessions(
    context: Context, owner_id: Text, agent_id: Text, which: Which = "all", after: Text | None = None
) -> OwnedSessions | Refusal:
    """An agent's account and sessions, PAGE of them. not_found: the agent is none of this owner's."""
    services = context.services
    store, agent = services.store, await find(services, agent_id, owner_id)
    if agent is None:
        return NO_AGENT
    page = await read_page(store, "arena", _INDEX[which], agent_id, after, PAGE)
    if isinstance(page, Refusal):
        return page
    games, balance = await standing_of(services, agent_id)
    rows = [stored(SessionRow, each.doc, "session", each.id) for each in page.documents]
    return OwnedSessions(
        agent_id=agent_id,
        name=agent.name,
        account=persistent(agent_id, balance),
        games=games,
        sessions=[brief(row, balance) for row in rows],
        next=page.next,
    )


@tool(face="signin", title="A session of my agent", read_only=True)
async def my_session(
    context: Context, owner_id: Text, session_id: Text, before: Before = None, rejected_before: Before = None
) -> OwnedSession | Refusal:
    """A session and its history: of its events and its rejected attempts those before a number, without one the last.
    NOT_FOUND: it is of none of this owner's agents."""
    store, found = context.services.store, await _mine(context, owner_id, session_id)
    if found is None:
        return NO_SESSION
    agent, _ = found
    mark = await _mark(context, session_id)
    session: Session | Refusal = await context.services.house.ask("arena", session_id, Look())
    if isinstance(session, Refusal):
        return session
    rows = await store.entries(core.session_log(session_id), limit=MAX_EVENTS)
    opened = stored(_EVENT, rows[0].data, "session", session_id)
    assert isinstance(opened, Opened)
    happened = _happened(rows[1:], session_id)
    attempts = await store.tail(core.rejected_log(session_id), rejected_before, PAGE)
    return OwnedSession(
        name=agent.name,
        suspended=agent.suspended is not None,
        session=session,
        mark=mark,
        facts=opened.facts,
        points=opened.balance,
        nets=[0, *(each.net for each in happened)],
        events=[each for each in reversed(happened) if before is None or each.n < before][:PAGE],
        attempts=[
            Tried(each.n, each.at, stored(Rejected, each.data, "session", session_id)) for each in attempts
        ],
        kept=await _kept(store, session_id),
    )


@tool(face="signin", title="Whether a session of my agent moved", read_only=True)
async def my_session_mark(context: Context, owner_id: Text, session_id: Text) -> Mark | Refusal:
    """What a page that watches a session asks again and again: it reads no history. NOT_FOUND as in my_session."""
    if await _mine(context, owner_id, session_id) is None:
        return NO_SESSION
    return await _mark(context, session_id)


@tool(face="signin", title="Stop a session of my agent")
async def stop_my_session(
    context: Context, owner_id: Text, session_id: Text, key: KeyText
) -> Stopped | Refusal:
    """Stop a session, once for a `key` of the owner's. SESSION_OVER: it was over; NOT_FOUND as in my_session;
    suspended: nobody plays for the agent; CONFLICT: it moved on each time that it was looked at."""
    context = replace(context, caller=replace(context.caller, principal=owner_id))
    digest = hashlib.sha256(encode([owner_id, session_id])).digest()
    once = bind(context, "stop_my_session", key, digest)
    answer = await run_once(context, once, lambda keyed: _stop(keyed, owner_id, session_id))
    if isinstance(answer, Refusal):
        return answer
    session = msgspec.to_builtins(answer)["session"]
    return Stopped(session_id, session.get("over"))


async def _stop(context: Context, owner_id: str, session_id: str) -> Any:
    found = await _mine(context, owner_id, session_id)
    if found is None:
        return NO_SESSION
    agent, row = found
    if agent.suspended is not None:
        return SUSPENDED
    services = context.services
    answer: Any = NO_SESSION
    async with services.playing.turn(row.agent_id):
        for _ in range(TRIES):
            session: Session | Refusal = await services.house.ask("arena", session_id, Look())
            if isinstance(session, Refusal):
                return session
            command = Submit(session.version, {"type": STOP}, owner_id, context.once)
            answer = await services.house.ask("arena", session_id, command)
            if not (isinstance(answer, Refusal) and answer.code == "CONFLICT"):
                break
    return answer


async def _mine(context: Context, owner_id: str, session_id: str) -> tuple[AgentRow, SessionRow] | None:
    """A session of one of the owner's agents; another's costs what a missing one does."""
    services = context.services
    row = await read_row(services.store, SessionRow, "arena", session_id)
    agent = await find(services, session_id if row is None else row.agent_id, owner_id)
    return None if row is None or agent is None else (agent, row)


async def _mark(context: Context, session_id: str) -> Mark:
    store = context.services.store
    last = await store.tail(core.session_log(session_id), limit=1)
    mark = f"{last[0].n if last else 0}.{await _kept(store, session_id)}"
    return Mark(mark, context.services.clock.now_ms())


async def _kept(store: Store, session_id: str) -> int:
    last = await store.tail(core.rejected_log(session_id), limit=1)
    return last[0].n + 1 if last else 0


def _happened(rows: list[Entry], session_id: str) -> list[Happened]:
    found, net = [], 0
    for row in rows:
        event = stored(_EVENT, row.data, "session", session_id)
        change = change_of(event.entries) if isinstance(event, Acted) else 0
        net += change
        found.append(Happened(row.n, row.at, change, net, msgspec.to_builtins(event)))
    return found
