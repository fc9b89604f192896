"""The arena: games, sessions, actions (docs/reference/arena.md).

1. A session is its agent's. The agent plays it, and its owner may, and both may look at it; to all others it is not
   there.
2. Only open_session takes an agent's id: later calls have it from the session.
3. Who plays with the persistent account of an agent does it one after the other.
"""

import hashlib
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from broker.actors.arena import ArenaActor, Look, Submit
from broker.actors.player import Open
from broker.actors.session import Rejected
from broker.core import arena as core
from broker.core.arena import NO_SESSION, Mode, SessionRow
from broker.core.arenaviews import Outcome, Session
from broker.core.games.game import STOP, Common, Game
from broker.store.stored import read_row, stored
from broker.tools.agents import AgentParam
from broker.tools.context import Context, Services
from broker.tools.lookup import disk_full
from broker.tools.paging import LimitParam
from broker.tools.play import Limits, agent_for, limits_of, plays_for, visible
from broker.tools.registry import tool
from broker.tools.schemas import flat
from broker.wire.canonical import encode
from broker.wire.ids import SessionParam
from broker.wire.refusals import CODES, Refusal, refuse

PROTOCOL: Final = 1
MAX_ACTION: Final = 2_048
"""Bytes of an action's JSON."""
EVENTS: Final = 100
ERRORS: Final = (
    *("CONFLICT", "IDEMPOTENCY_MISMATCH", "NOT_FOUND", "FORBIDDEN", "ILLEGAL_ACTION"),
    *("INSUFFICIENT_POINTS", "LIMIT_EXCEEDED", "SESSION_OVER"),
)
_STOP: Final = {
    "description": "End the session, with the points as they are.",
    "type": "object",
    "properties": {"type": {"enum": [STOP], "type": "string"}},
    "required": ["type"],
    "additionalProperties": False,
}
GameParam = Annotated[
    str, Meta(pattern=r"^[a-z0-9-]{1,16}$(?!\n)", description="a game's name, such as hilo")
]
VersionParam = (
    Annotated[int, Meta(ge=1, le=10_000, description="the game's version; without it the newest")] | None
)
ModeParam = Annotated[
    Mode,
    Meta(
        description="simulation (where none is named): an account of the session's own, with config.points; "
        "persistent: the agent's own account"
    ),
]
ConfigParam = Annotated[
    dict[str, Any],
    Meta(description="the game's settings (get_game shows them); client_seed is your part of the chance"),
]
ExpectedParam = Annotated[
    int,
    Meta(ge=0, le=1_000_000, description="the session's version that you decided on: the one you saw last"),
]
ActionParam = Annotated[
    dict[str, Any],
    Meta(description='one of the legal actions, such as {"type": "call", "stake": 25, "guess": "higher"}'),
]
SinceParam = (
    Annotated[int, Meta(ge=-1, le=1_000_000, description="only what follows this n; -1: from the beginning")]
    | None
)


class GameBrief(msgspec.Struct, frozen=True):
    """A game in a list."""

    game: str
    version: int
    title: str


class Error(msgspec.Struct, frozen=True):
    """A refusal's code, and what it means."""

    code: str
    retryable: bool
    meaning: str


class Arena(msgspec.Struct, frozen=True):
    """What is played here, and by which rules."""

    protocol: int
    games: list[GameBrief]
    modes: list[str]
    limits: Limits
    unclaimed_limits: Limits
    """Of an agent that nobody has claimed."""
    persistent_points: int
    """What an agent's persistent account opens with."""
    errors: list[Error]
    agents: list[str]
    """The ids of the agents that the caller may play for, 100 at most."""


class Rules(msgspec.Struct, frozen=True):
    """A game's rules (Markdown), and the JSON Schemas of its config and its actions."""

    game: str
    version: int
    title: str
    rules: str
    config_schema: dict[str, Any]
    action_schema: dict[str, Any]
    wager: dict[str, Any]


class Logged(msgspec.Struct, frozen=True):
    """A row of a session's log: event n made version n. `at`: Unix milliseconds."""

    n: int
    at: int
    event: dict[str, Any]


class Attempt(msgspec.Struct, frozen=True):
    """An attempt that was rejected. `at`: Unix milliseconds."""

    n: int
    at: int
    code: str
    message: str
    expected_version: int
    action: dict[str, Any]
    by: str


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session, and what was asked for of its logs."""

    session: Session
    events: list[Logged] | None = None
    rejected: list[Attempt] | None = None


@tool(face="arena", title="The arena", read_only=True, scope="arena", agent=False)
async def describe_arena(context: Context) -> Arena:
    """What is played here: the games and their versions, modes, limits, the errors that you can rely on, and the
    agents that you may play for.

    Then get_game for a game's rules, get_agent for your accounts and next_commit, open_session to begin.
    """
    services = context.services
    settings = services.settings.arena
    return Arena(
        protocol=PROTOCOL,
        games=[GameBrief(game.NAME, game.VERSION, game.TITLE) for game in services.games],
        modes=["simulation", "persistent"],
        limits=limits_of(services, claimed=True),
        unclaimed_limits=limits_of(services, claimed=False),
        persistent_points=settings.points,
        errors=[Error(code, CODES[code].retryable, CODES[code].meaning) for code in ERRORS],
        agents=await plays_for(services, context.caller),
    )


@tool(face="arena", title="A game's rules", read_only=True, scope="arena", agent=False)
async def get_game(context: Context, game: GameParam, version: VersionParam = None) -> Rules | Refusal:
    """The rules of one version of a game, what its config and its actions are, and what may be staked."""
    found = _game(context, game, version)
    if isinstance(found, Refusal):
        return found
    return Rules(
        game=found.NAME,
        version=found.VERSION,
        title=found.TITLE,
        rules=found.RULES,
        config_schema=flat(found.Config),
        action_schema=_or_stop(flat(found.Action, nulls=True)),
        wager=found.WAGER,
    )


@tool(face="arena", title="Open a session", scope="arena", agent=False, keyed="required", idempotent=True)
async def open_session(
    context: Context,
    game: GameParam,
    agent_id: AgentParam | None = None,
    version: VersionParam = None,
    mode: ModeParam = "simulation",
    config: ConfigParam | None = None,
) -> Session | Refusal:
    """Open a session of a game for an agent of yours; without agent_id, for the agent that the token acts for.

    Look at get_agent first: give its next_commit as config.commit, and your own config.client_seed, and afterwards you
    can check that nobody chose the chance. Without a client_seed it is the sha256 of the idempotency_key.
    """
    services = context.services
    found = _game(context, game, version)
    if isinstance(found, Refusal):
        return found
    player = await agent_for(context, agent_id, listed=" (describe_arena lists them)")
    if isinstance(player, Refusal):
        return player
    read = read_config(found, config or {})
    if isinstance(read, Refusal):
        return read
    if (full := disk_full(services, "no session was opened")) is not None:
        return full
    once = context.once
    assert once is not None  # the registry wants a key
    seed = read.client_seed if read.client_seed is not None else hashlib.sha256(once.key.encode()).hexdigest()
    command = Open(services.new_id("as_"), found, read, mode, seed, once)
    async with _turn(services, mode, player):
        answer: Session | Refusal = await services.house.ask("player", player, command)
    return answer


@tool(face="arena", title="A session", read_only=True, scope="arena", agent=False)
async def get_session(
    context: Context,
    session_id: SessionParam,
    events_after: SinceParam = None,
    rejected_after: SinceParam = None,
    limit: LimitParam = EVENTS,
) -> Seen | Refusal:
    """A session as it stands: what you see of the game, what you may do, its version, and its account.

    events_after: also its events from there on; rejected_after: also the attempts that were rejected.
    """
    store, row = context.services.store, await _mine(context, session_id)
    if isinstance(row, Refusal):
        return row
    session: Session | Refusal = await context.services.house.ask("arena", session_id, Look())
    if isinstance(session, Refusal):
        return session
    events = rejected = None
    if events_after is not None:
        rows = await store.entries(core.session_log(session_id), events_after, limit)
        events = [
            Logged(each.n, each.at, stored(dict[str, Any], each.data, "session", session_id)) for each in rows
        ]
    if rejected_after is not None:
        rows = await store.entries(core.rejected_log(session_id), rejected_after, limit)
        kept = [(each, stored(Rejected, each.data, "session", session_id)) for each in rows]
        rejected = [
            Attempt(each.n, each.at, no.code, no.message, no.expected_version, no.action, no.by)
            for each, no in kept
        ]
    return Seen(session, events, rejected)


@tool(face="arena", title="Act in a session", scope="arena", agent=False, keyed="required", idempotent=True)
async def submit_action(
    context: Context, session_id: SessionParam, expected_version: ExpectedParam, action: ActionParam
) -> Outcome | Refusal:
    """Do one action in a session, on the version that you saw last. It moves points and can't be taken back.

    CONFLICT: another action came first; look at the session and decide again, under a new key. No answer: send the
    identical request again. {"type": "stop"} ends the session.
    """
    services, row = context.services, await _mine(context, session_id, acting=True)
    if isinstance(row, Refusal):
        return row
    text = encode(action)
    if len(text) > MAX_ACTION:
        return refuse("bad_request", f"an action has at most {MAX_ACTION} bytes", path="action")
    by = context.caller.principal or ""
    command = Submit(expected_version, msgspec.json.decode(text), by, context.once)
    async with _turn(services, row.mode, row.agent_id):
        answer: Outcome | Refusal = await services.house.ask("arena", session_id, command)
    return answer


def _or_stop(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a game's actions, and of the one that every game has."""
    return {"anyOf": [*schema.get("anyOf", [schema]), _STOP]}


def read_config(game: Game, config: dict[str, Any]) -> Common | Refusal:
    """A session's config by the game's type, read from its canonical form, in which 2.0 is the integer that it is;
    bad_request names what is wrong."""
    try:
        read: Common = msgspec.convert(msgspec.json.decode(encode(config)), game.Config)
    except (msgspec.ValidationError, RecursionError) as error:
        takes = (
            f"; it takes: {', '.join(game.Config.__struct_fields__)}" if "unknown field" in str(error) else ""
        )
        return refuse("bad_request", f"config: {error}"[: core.MAX_WHY] + takes, path="config")
    return read


def _turn(services: Services, mode: Mode, agent_id: str) -> AbstractAsyncContextManager[None]:
    """Who plays with an agent's persistent account waits for its turn: sessions that write it at once would only have
    to be read again."""
    return services.playing.turn(agent_id) if mode == "persistent" else nullcontext()


def _game(context: Context, name: str, version: int | None) -> Game | Refusal:
    games = context.services.games
    found = games.find(name, version)
    if found is not None:
        return found
    known = ", ".join(f"{game.NAME} {game.VERSION}" for game in games)
    path = "game" if games.find(name) is None else "version"
    return refuse("NOT_FOUND", f"this is not played here; {known} are", path=path)


async def _mine(context: Context, session_id: str, *, acting: bool = False) -> SessionRow | Refusal:
    """A session that the caller may see, or act in."""
    row = _alive(context.services, session_id)
    if row is None or row.agent_id != context.caller.agent:
        row = await read_row(context.services.store, SessionRow, "arena", session_id)
    return await visible(context, session_id, row, NO_SESSION, acting=acting)


def _alive(services: Services, session_id: str) -> SessionRow | None:
    """A session as its actor has it, where that is in memory: whose it is and how it is played never change."""
    actor = services.house.alive("arena", session_id)
    return actor.state.row if isinstance(actor, ArenaActor) and actor.state is not None else None
