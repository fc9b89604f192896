"""A session of the arena: its events, its state, what an action leads to (docs/reference/arena.md, Sessions).

1. The log is the truth: the state is what `fold` makes of its events, without a secret, on any machine.
2. A version names a state: each accepted action makes it one more. Who acts says which one it saw.
3. Points move by double entry: the entries of an event sum to 0, and stand in it.
4. Nothing here knows when: the log's rows have their times.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from broker.core.chance import Draws, Secret, commit_of, domain_of
from broker.core.games.game import MAX_ACTIONS, STOP, Common, Game, No, Over
from broker.wire.canonical import canonicalize
from broker.wire.refusals import Refusal, refuse

Mode = Literal["simulation", "persistent"]
Account = Literal["player", "house", "mint"]
Entry = tuple[Account, int]
"""Points that come to an account (or, negative, go from it)."""
MAX_WHY: Final = 300
"""Characters of why an action is illegal: it may quote what was sent."""
REJECTED_KEPT: Final = 1_000
"""Rejected attempts that are kept of one session: the first ones."""
NO_SESSION: Final = refuse("NOT_FOUND", "there is no such session", path="session_id")
OPENED: Final = "opened"


class Opened(msgspec.Struct, frozen=True, tag_field="type", tag=OPENED):
    """The first event: all that the session is made of, but the secret."""

    game: str
    game_version: int
    mode: Mode
    config: dict[str, Any]
    agent_id: str
    games: int
    """Which of the agent's sessions it is, from 0: the commit is bound to it."""
    commit: str
    client_seed: str
    facts: Any
    entries: tuple[Entry, ...]
    balance: int
    """Of the player's account, then."""


class Ended(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a session is over, and its secret where that is shown."""

    over: Over
    seed: str | None = None
    salt: str | None = None


class Acted(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="acted"):
    """An action that was accepted, and what it led to."""

    action: dict[str, Any]
    balance: int
    facts: Any = None
    entries: tuple[Entry, ...] = ()
    ended: Ended | None = None


class Closed(msgspec.Struct, frozen=True, tag_field="type", tag="closed"):
    """The session was ended by no action: its time was over."""

    ended: Ended


Event = Opened | Acted | Closed


class SessionRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session as stored (kind "arena", id = session_id); times are wall milliseconds. Its events are `session_log`,
    event n being what made version n."""

    session_id: str
    agent_id: str
    game: str
    game_version: int
    mode: Mode
    sealed: str
    """Seed and salt, sealed."""
    balance: int
    """Of the player's account after the last event."""
    net: int
    """Points won and lost in this session."""
    opened_at: int
    changed_at: int
    due: int | None = None
    """When somebody looks whether its time is over."""
    version: int = 0
    over: Over | None = None
    ref: str | None = None
    """Of its artifact, once it is over."""


class PlayerRow(msgspec.Struct, frozen=True):
    """What an agent has opened (kind "player", id = agent_id): how many in all, and how many on a day."""

    agent_id: str
    games: int = 0
    day: int = 0
    """Days since 1970."""
    opened: int = 0
    """On that day."""


class AccountRow(msgspec.Struct, frozen=True):
    """An agent's persistent account (kind "account", id = agent_id), with its share of the mint's and the house's: the
    three sum to 0."""

    balance: int
    house: int
    mint: int


def transfer(other: Account, points: int) -> tuple[Entry, ...]:
    """The entries by which points come from another account to the player's (negative: go there); none for 0."""
    return ((other, -points), ("player", points)) if points else ()


def change_of(entries: Iterable[tuple[str, int]]) -> int:
    """Points that these entries bring to the player's account; negative: take from it."""
    return sum(points for account, points in entries if account == "player")


def added(account: AccountRow, entries: Iterable[Entry]) -> AccountRow:
    """An account with these entries, whatever they are."""
    sums = {"player": account.balance, "house": account.house, "mint": account.mint}
    for name, points in entries:
        sums[name] += points
    return AccountRow(sums["player"], sums["house"], sums["mint"])


def posted(account: AccountRow, entries: Sequence[Entry]) -> AccountRow:
    """An account after these entries. Raises ValueError where they are not balanced, or the player owes points."""
    after = added(account, entries)
    if after.balance + after.house + after.mint or after.balance < 0:
        raise ValueError("entries sum to 0, and leave no account of a player's below it")
    return after


class Live(msgspec.Struct, frozen=True):
    """A session's state after its events."""

    opened: Opened
    config: Common
    state: Any
    version: int
    balance: int
    net: int
    ended: Ended | None = None


def session_log(session_id: str) -> str:
    """The log of a session's events: row n is event n."""
    return f"session:{session_id}"


def rejected_log(session_id: str) -> str:
    """The log of what was rejected in a session."""
    return f"rejected:{session_id}"


def index_of(row: SessionRow) -> tuple[tuple[str, str | int], ...]:
    """What a session is found by: its agent's, those that are open, and what falls due."""
    found: tuple[tuple[str, str | int], ...] = (("agent", row.agent_id),)
    if row.over is None:
        found = (*found, ("open", row.agent_id))
    return found if row.due is None else (*found, ("due", row.due))


def open_session(
    game: Game,
    config: Common,
    mode: Mode,
    *,
    secret: Secret,
    agent_id: str,
    number: int,
    client_seed: str,
    balance: int,
    opening: int,
) -> Opened:
    """The first event of the agent's session `number`. `balance`: what the account has; `opening`: what the mint gives
    it for that, 0 where it had it before."""
    draws = Draws(secret.seed, domain_of(game.NAME, game.VERSION), client_seed)
    return Opened(
        game=game.NAME,
        game_version=game.VERSION,
        mode=mode,
        config=msgspec.to_builtins(config),
        agent_id=agent_id,
        games=number,
        commit=commit_of(secret, agent_id, number),
        client_seed=client_seed,
        facts=msgspec.to_builtins(game.first(config, game.deal(config, draws))),
        entries=transfer("mint", opening),
        balance=balance,
    )


def deal_again(game: Game, opened: Opened, config: Common, seed: str) -> Any:
    """All that chance decided in a session."""
    return game.deal(config, Draws(seed, domain_of(game.NAME, game.VERSION), opened.client_seed))


def replay(game: Game, events: Iterable[Event]) -> Live:
    """The state after these events, the first of them Opened. Raises ValueError where they are no session's."""
    live: Live | None = None
    for event in events:
        if isinstance(event, Opened):
            if live is not None:
                raise ValueError("a session is opened once")
            config = msgspec.convert(event.config, game.Config)
            state = game.begin(config, msgspec.convert(event.facts, game.Facts))
            live = Live(event, config, state, 0, event.balance, 0)
        elif live is None:
            raise ValueError("a session begins by being opened")
        else:
            live = fold(game, live, event)
    if live is None:
        raise ValueError("a session has one event at least")
    return live


def fold(game: Game, live: Live, event: Acted | Closed) -> Live:
    """The state after one more event."""
    if live.ended is not None:
        raise ValueError("nothing follows the end of a session")
    if isinstance(event, Closed):
        return replace(live, version=live.version + 1, ended=event.ended)
    state = live.state
    if event.facts is not None:
        state = game.fold(state, msgspec.convert(event.facts, game.Facts))
    return replace(
        live,
        state=state,
        version=live.version + 1,
        balance=event.balance,
        net=live.net + change_of(event.entries),
        ended=event.ended,
    )


def act(
    game: Game, live: Live, hidden: Any, secret: Secret, expected: int, action: dict[str, Any], points: int
) -> Acted | Refusal:
    """What an action leads to that was decided on at version `expected`, with `points` on the account now."""
    if live.ended is not None:
        return refuse("SESSION_OVER", "the session is over", version=live.version, over=live.ended.over)
    if expected != live.version:
        said = f"the session is at version {live.version}; look at it, and decide again"
        return refuse("CONFLICT", said, version=live.version)
    if action == {"type": STOP}:
        return Acted(action, points, ended=ended(live, secret, "stopped"))
    try:
        read = msgspec.convert(action, game.Action)
    except (msgspec.ValidationError, RecursionError) as error:
        return illegal(game, live, points, str(error))
    step = game.apply(live.state, hidden, read, points)
    if isinstance(step, No):
        if step.short is not None:
            return refuse("INSUFFICIENT_POINTS", step.message, balance=points, needed=step.short)
        return illegal(game, live, points, step.message)
    change = max(step.change, -points)
    over = step.over or ("actions" if live.version + 1 >= MAX_ACTIONS else None)
    return Acted(
        action=msgspec.to_builtins(read),
        balance=points + change,
        facts=msgspec.to_builtins(step.facts),
        entries=transfer("house", change),
        ended=None if over is None else ended(live, secret, over),
    )


def ended(live: Live, secret: Secret, over: Over) -> Ended:
    """How a session ends: with its secret, where its config has that shown."""
    return Ended(over, secret.seed, secret.salt) if live.config.reveal == "on_end" else Ended(over)


def expired(events: Sequence[Event], secret: Secret) -> Closed:
    """How a session ends whose time is over, by its events. A `secret` that is lost is empty, and not shown."""
    opened = events[0]
    assert isinstance(opened, Opened)
    shown = secret.seed and opened.config.get("reveal") == "on_end"
    return Closed(Ended("expired", secret.seed, secret.salt) if shown else Ended("expired"))


def end_of(events: Sequence[Event]) -> Ended:
    """How a session that is over has ended."""
    last = events[-1]
    assert not isinstance(last, Opened)
    assert last.ended is not None
    return last.ended


def legal_actions(game: Game, live: Live, points: int) -> list[dict[str, Any]]:
    """What may be done now: the game's, and to stop."""
    if live.ended is not None:
        return []
    return [*game.legal_actions(live.state, points), {"type": STOP}]


def illegal(game: Game, live: Live, points: int, why: str) -> Refusal:
    """ILLEGAL_ACTION, with the legal ones."""
    return refuse(
        "ILLEGAL_ACTION", why[:MAX_WHY], path="action", legal_actions=legal_actions(game, live, points)
    )


def artifact_of(events: Sequence[Event]) -> bytes:
    """A finished session as it is published: canonical JSON of its events and its result, without a time or a session's
    id (docs/reference/arena.md, Artifacts)."""
    opened, rest = events[0], events[1:]
    assert isinstance(opened, Opened)
    acted = [each for each in rest if isinstance(each, Acted)]
    result = {
        "over": end_of(events).over,
        "actions": len(acted),
        "net": sum(change_of(each.entries) for each in acted),
        "balance": acted[-1].balance if acted else opened.balance,
    }
    text = msgspec.json.encode({"kind": KIND, "format": 1, "events": events, "result": result})
    content = canonicalize(text)
    if isinstance(content, Refusal):
        raise ValueError(f"a game's facts have no canonical form: {content.message}")
    return content


KIND: Final = "turret.arena.session"
"""The `kind` of such an artifact."""
