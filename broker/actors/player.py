"""The actor of one agent's play: it opens sessions, one after the other (docs/reference/arena.md, Chance and Limits).

1. Seed and salt of the next session follow from the broker's secret, the agent and the number of its session, so the
   commit can be shown before without a write. A restored store gives others: its epoch is in them.
2. Opening is one commit: the count, the session's document, its first event, and its persistent account if it is new.
"""

import hmac
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from broker.actors.agentdocs import present
from broker.actors.once import Once
from broker.actors.played import Played
from broker.actors.record import Index, RecordActor
from broker.config import Arena, Trials
from broker.core import arena as core
from broker.core.agent import DAY_MS, allowance
from broker.core.arena import AccountRow, Mode, PlayerRow, SessionRow
from broker.core.arenaviews import show
from broker.core.chance import Secret, commit_of
from broker.core.games.game import Common, Game
from broker.store.port import Append, Put, Store
from broker.store.stored import stored
from broker.wire.refusals import Refusal, refuse

UNCLAIMED_OPEN: Final = 3
UNCLAIMED_A_DAY: Final = 20
"""Sessions of an agent that nobody has claimed: open at once, and opened in a day."""
NO_AGENT: Final = refuse("NOT_FOUND", "there is no such agent", path="agent_id")
_SEED: Final = b"turret/arena/seed/1\0"
_SALT: Final = b"turret/arena/salt/1\0"


class Vault(msgspec.Struct, frozen=True):
    """What hides the secrets of sessions: `root`, the broker's secret of which they all come; `seal` and `unseal` for
    what is stored of one (None: it can't be opened any more)."""

    root: Callable[[], bytes]
    seal: Callable[[str], str]
    unseal: Callable[[str], str | None]


class Open(msgspec.Struct, frozen=True):
    """Open a session. Answer: Opening, or why not."""

    session_id: str
    game: Game
    config: Common
    mode: Mode
    client_seed: str
    once: Once | None = None


class Quota(NamedTuple):
    """Sessions of the arena, or trials, that an agent may have open, and may open in a day."""

    open: int
    a_day: int


def quota(settings: Arena | Trials, *, claimed: bool) -> Quota:
    """What an agent may have, claimed or not."""
    most, a_day = settings.open_sessions, settings.sessions_per_day
    return Quota(most, a_day) if claimed else Quota(min(UNCLAIMED_OPEN, most), min(UNCLAIMED_A_DAY, a_day))


async def next_secret(store: Store, vault: Vault, agent_id: str, number: int) -> Secret:
    """Seed and salt of an agent's session `number`, from 0. Raises Unavailable."""
    head = await store.head(f"player:{agent_id}")
    root, about = vault.root(), f"{head.epoch}{agent_id}".encode() + number.to_bytes(8)
    seed, salt = (hmac.digest(root, tag + about, "sha256").hex() for tag in (_SEED, _SALT))
    return Secret(seed, salt)


async def next_commit(store: Store, vault: Vault, agent_id: str, number: int) -> str:
    """The commit to an agent's session `number`, from 0. Raises Unavailable."""
    return commit_of(await next_secret(store, vault, agent_id, number), agent_id, number)


async def read_account(store: Store, agent_id: str) -> tuple[AccountRow, int] | None:
    """An agent's persistent account with its document's version, or None. Raises Unavailable."""
    document = await store.get("account", agent_id)
    if document is None:
        return None
    return stored(AccountRow, document.doc, "account", agent_id), document.version


class PlayerActor(RecordActor[PlayerRow]):
    """How many sessions an agent has opened; the key is the agent's id."""

    kind = "player"
    type = PlayerRow

    def __init__(self, key: str, *, settings: Arena, vault: Vault, played: Played, **parts: Any) -> None:
        super().__init__(key, **parts)
        self._settings = settings
        self._vault = vault
        self._played = played
        self._most_open: int | None = None
        """Sessions that are open are no more than that: counted once, and one more with each that is opened. Those that
        are over since are noticed before one is refused for it."""

    def index_of(self, row: PlayerRow) -> Index:
        return ()

    async def do(self, command: Any) -> Any:
        if not isinstance(command, Open):
            raise TypeError(type(command))
        now = self.clock.now_ms()
        agent = await present(self.store, self.key, now)
        if agent is None:
            return NO_AGENT
        player, today = self.row or PlayerRow(self.key), now // DAY_MS
        if player.day != today:
            player = replace(player, day=today, opened=0)
        refused = await self._judge_limits(player, claimed=allowance(agent).publishes)
        if refused is not None:
            await self.confirm()
            return refused
        secret = await next_secret(self.store, self._vault, self.key, player.games)
        commit = commit_of(secret, self.key, player.games)
        if command.config.commit not in (None, commit):
            await self.confirm()
            return refuse(
                "CONFLICT",
                "config.commit is not the next commit, or not any more: look at get_agent again",
                commit=commit,
            )
        return await self._open(command, player, secret, now)

    async def _judge_limits(self, player: PlayerRow, *, claimed: bool) -> Refusal | None:
        most, a_day = quota(self._settings, claimed=claimed)
        whom = "an agent" if claimed else "an agent that nobody has claimed"
        if player.opened >= a_day:
            return refuse(
                "LIMIT_EXCEEDED", f"{whom} opens {a_day} sessions a day (UTC)", reason="day", limit=a_day
            )
        if self._most_open is None or self._most_open >= most:
            self._most_open = len(await self.store.find("arena", "open", self.key, limit=most))
        if self._most_open >= most:
            self._most_open = None
            said = f"{whom} has {most} sessions open at once: stop one of get_agent's open_sessions"
            return refuse("LIMIT_EXCEEDED", said, reason="open", limit=most)
        return None

    async def _open(self, command: Open, player: PlayerRow, secret: Secret, now: int) -> Any:
        account = None if command.mode == "simulation" else await read_account(self.store, self.key)
        balance, opening = self._funds(command, account)
        if balance == 0:
            said = "the agent's account is empty: play in mode simulation"
            return refuse("INSUFFICIENT_POINTS", said, balance=0, needed=1)
        event = core.open_session(
            command.game,
            command.config,
            command.mode,
            secret=secret,
            agent_id=self.key,
            number=player.games,
            client_seed=command.client_seed,
            balance=balance,
            opening=opening,
        )
        row = SessionRow(
            session_id=command.session_id,
            agent_id=self.key,
            game=event.game,
            game_version=event.game_version,
            mode=command.mode,
            sealed=self._vault.seal(secret.seed + secret.salt),
            balance=balance,
            net=0,
            opened_at=now,
            changed_at=now,
            due=now + round(self._settings.idle_h * 3_600_000),
        )
        puts = [Put("arena", row.session_id, 0, msgspec.json.encode(row), core.index_of(row))]
        if command.mode == "persistent" and account is None:
            first = core.posted(AccountRow(0, 0, 0), event.entries)
            puts.append(Put("account", self.key, 0, msgspec.json.encode(first)))
        answer = show(command.game, row, core.replay(command.game, [event]), balance)
        self._nudge(row.due or 0)
        told = await self.write(
            replace(player, games=player.games + 1, opened=player.opened + 1),
            answer,
            once=command.once,
            puts=puts,
            append=Append(core.session_log(row.session_id), 0, msgspec.json.encode(event), now),
        )
        if told is answer:
            self._most_open = (self._most_open or 0) + 1
            self._played.began()
        return told

    def _funds(self, command: Open, account: tuple[AccountRow, int] | None) -> tuple[int, int]:
        """What the session's account has, and how much of it the mint gives with the opening."""
        if command.mode == "simulation":
            return command.config.points, command.config.points
        if account is not None:
            return account[0].balance, 0
        return self._settings.points, self._settings.points
