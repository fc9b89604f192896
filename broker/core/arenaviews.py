"""What is shown of a session, of an account and of a game (docs/reference/arena.md, Sessions)."""

from typing import Any, Literal

import msgspec

from broker.core.arena import Acted, Live, Mode, SessionRow, change_of, legal_actions
from broker.core.artifact import address
from broker.core.games.game import Game

Status = Literal["open", "over"]


class Account(msgspec.Struct, frozen=True):
    """A balance, and whose: points of one account never move to another."""

    kind: Mode
    account_id: str
    balance: int


class Artifact(msgspec.Struct, frozen=True):
    """A published artifact: sha256 of its bytes, and where it is read."""

    ref: str
    uri: str


class Session(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session as its agent and its owner see it. Times are Unix milliseconds; nothing in it tells what is hidden."""

    session_id: str
    agent_id: str
    game: str
    game_version: int
    mode: Mode
    status: Status
    version: int
    """Give it as expected_version with the next action."""
    observation: dict[str, Any]
    legal_actions: list[dict[str, Any]]
    account: Account
    net: int
    """Points won and lost in this session."""
    config: dict[str, Any]
    commit: str
    client_seed: str
    games: int
    opened_at: int
    changed_at: int
    over: str | None = None
    """Why it is over."""
    seed: str | None = None
    salt: str | None = None
    artifact: Artifact | None = None


class SessionBrief(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session in a list."""

    session_id: str
    game: str
    game_version: int
    mode: Mode
    status: Status
    version: int
    account: Account
    net: int
    opened_at: int
    changed_at: int
    over: str | None = None
    artifact: Artifact | None = None


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an action led to, and the session after it."""

    facts: dict[str, Any] | None
    """What it showed; null where the session was stopped."""
    change: int
    """Points that the account gained or lost by it."""
    session: Session


def account_of(row: SessionRow, balance: int) -> Account:
    """The account that a session plays with."""
    if row.mode == "persistent":
        return persistent(row.agent_id, balance)
    return Account("simulation", f"session:{row.session_id}", balance)


def persistent(agent_id: str, balance: int) -> Account:
    """An agent's own account."""
    return Account("persistent", f"agent:{agent_id}", balance)


def show(game: Game, row: SessionRow, live: Live, points: int) -> Session:
    """A session, with `points` on its account now."""
    opened, ended = live.opened, live.ended
    return Session(
        session_id=row.session_id,
        agent_id=row.agent_id,
        game=row.game,
        game_version=row.game_version,
        mode=row.mode,
        status="open" if ended is None else "over",
        version=live.version,
        observation=game.observe(live.state),
        legal_actions=legal_actions(game, live, points),
        account=account_of(row, points),
        net=live.net,
        config=opened.config,
        commit=opened.commit,
        client_seed=opened.client_seed,
        games=opened.games,
        opened_at=row.opened_at,
        changed_at=row.changed_at,
        over=None if ended is None else ended.over,
        seed=None if ended is None else ended.seed,
        salt=None if ended is None else ended.salt,
        artifact=artifact_at(row.ref),
    )


def brief(row: SessionRow, points: int) -> SessionBrief:
    """A session in a list. `points`: what its agent's persistent account has now."""
    return SessionBrief(
        session_id=row.session_id,
        game=row.game,
        game_version=row.game_version,
        mode=row.mode,
        status="open" if row.over is None else "over",
        version=row.version,
        account=account_of(row, row.balance if row.mode == "simulation" else points),
        net=row.net,
        opened_at=row.opened_at,
        changed_at=row.changed_at,
        over=row.over,
        artifact=artifact_at(row.ref),
    )


def outcome(event: Acted, session: Session) -> Outcome:
    """The answer to an action."""
    return Outcome(event.facts, change_of(event.entries), session)


def artifact_at(ref: str | None) -> Artifact | None:
    """Where an artifact is read; None where there is none yet."""
    return None if ref is None else Artifact(ref, address(ref))
