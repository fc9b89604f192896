"""The actor of one session of the arena (docs/reference/arena.md, Sessions).

1. An accepted action is one commit: its event, the session's document, the persistent account where that is played
   with, and the answer under the request's key; with the last one the artifact, and a word to the agent's stream.
2. A rejected attempt is a row of a log of its own, with its answer if that is final.
3. The secret is unsealed here, and leaves with an Ended event alone.
4. A session whose game is played here no more, or whose secret can't be unsealed, is neither shown nor played; its time
   ends it all the same, since that takes its events alone.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from broker.actors.actor import NOT_NOW
from broker.actors.artifacts import publish
from broker.actors.calls import agent_stream
from broker.actors.once import Once
from broker.actors.played import Played
from broker.actors.player import Vault, read_account
from broker.actors.record import Index, Record, Told
from broker.actors.session import Rejected, SessionActor
from broker.config import Arena
from broker.core import arena as core
from broker.core.arena import NO_SESSION, Acted, Closed, Live, SessionRow
from broker.core.arenaviews import outcome, show
from broker.core.chance import SECRET_BYTES, Secret
from broker.core.conversation import Due
from broker.core.games.game import MAX_ACTIONS, Game
from broker.core.games.table import Table
from broker.store.port import Append, Put, Store
from broker.store.stored import damaged, stored
from broker.wire.refusals import Refusal

MAX_EVENTS: Final = MAX_ACTIONS + 2
NONE: Final = Secret("", "")
"""Of a session that is over: its secret is needed no more."""
_EVENT: Final[Any] = core.Event


class Look(msgspec.Struct, frozen=True):
    """Answer: the Session as it is now."""


class Submit(msgspec.Struct, frozen=True):
    """An action that was decided on at a version. Answer: Outcome, or why not."""

    expected_version: int
    action: dict[str, Any]
    by: str
    """Who asks: an agent, or an owner."""
    once: Once | None = None


async def read_events(store: Store, session_id: str) -> list[core.Event]:
    """All events of a session. Raises Unavailable."""
    rows = await store.entries(core.session_log(session_id), limit=MAX_EVENTS)
    return [stored(_EVENT, row.data, "session", session_id) for row in rows]


class ArenaActor(SessionActor[SessionRow]):
    """One session; the key is its id."""

    kind = "arena"
    type = SessionRow

    def __init__(
        self, key: str, *, settings: Arena, games: Table, vault: Vault, played: Played, **parts: Any
    ) -> None:
        super().__init__(key, idle_h=settings.idle_h, **parts)
        self._games = games
        self._vault = vault
        self._played = played
        self._game: Game
        self._live: Live
        self._secret = NONE
        self._hidden: Any = None
        self._lost: str | None = None
        """Why it can't be played any more."""
        self._sure = False
        """Whether a command was handled since the session was read."""

    def index_of(self, row: SessionRow) -> Index:
        return core.index_of(row)

    async def load(self) -> Record[SessionRow]:
        record = await super().load()
        row = record.row
        if row is None:
            return record
        if row.over is None:
            self._unseal(row)
        game = self._games.find(row.game, row.game_version)
        if game is None:
            self._lost = f"{row.game} {row.game_version} is not played here any more"
            return record
        events = await read_events(self.store, self.key)
        try:
            self._game, self._live = game, core.replay(game, events)
        except ValueError as error:
            raise damaged("session", self.key, error) from error
        except Exception as error:  # a game is the operator's own code: it may raise anything, at every try
            self._lost = f"{row.game} {row.game_version} can't follow its events: {error!r}"
            return record
        if self._live.version != row.version:
            raise damaged(
                "session", self.key, f"version {row.version}, and {self._live.version} by its events"
            )
        return record

    def decide(self, command: Any) -> Any:
        """An action that is accepted in a simulation, and does not end it, needs nothing but what is known: the hot
        path. Its key is not looked up: no unit is committed under one that is remembered. The actor then reads all
        anew, and its first command is for `handle`, which looks."""
        row = self.row
        if type(command) is not Submit or row is None or row.mode != "simulation" or not self._sure:
            return NOT_NOW
        if self._lost is not None:
            return NOT_NOW
        event = self._act(command, self._live.balance)
        if isinstance(event, Refusal) or event.ended is not None:
            return NOT_NOW
        now, live = self.clock.now_ms(), core.fold(self._game, self._live, event)
        after = self._after(row, live, now)
        answer = outcome(event, show(self._game, after, live, live.balance))
        then, append = partial(self._stands, event, live), self._append(live.version, event, now)
        return self.change(after, answer, then, once=command.once, append=append)

    async def handle(self, command: Any) -> Any:
        answer = await super().handle(command)
        self._sure = True
        return answer

    async def do(self, command: Any) -> Any:
        row = self.row
        if row is None:
            return None if isinstance(command, Due) else NO_SESSION
        if self._lost is not None and not isinstance(command, Due):
            raise damaged("session", self.key, self._lost)
        match command:
            case Look():
                await self.confirm()
                return show(self._game, row, self._live, (await self._points(row))[0])
            case Submit():
                return await self._submit(row, command)
            case Due():
                return await self.look_at_time(row)
        raise TypeError(type(command))

    async def _submit(self, row: SessionRow, command: Submit) -> Any:
        points, put = await self._points(row)
        event = self._act(command, points)
        if isinstance(event, Refusal):
            return await self._reject(command, event)
        puts = () if put is None or not event.entries else (put(event),)
        return await self._record(row, event, command.once, puts)

    def _act(self, command: Submit, points: int) -> Acted | Refusal:
        if self._hidden is None and self._secret is not NONE:  # to look, or to end it, takes no deal
            opened, config = self._live.opened, self._live.config
            self._hidden = core.deal_again(self._game, opened, config, self._secret.seed)
        expected, action = command.expected_version, command.action
        return core.act(self._game, self._live, self._hidden, self._secret, expected, action, points)

    async def _record(self, row: SessionRow, event: Acted, once: Once | None, puts: tuple[Put, ...]) -> Any:
        """Commit an action with all that follows from it; the answer shows the session after it."""
        now, live = self.clock.now_ms(), core.fold(self._game, self._live, event)
        after = self._after(row, live, now)
        told: tuple[Told, ...] = ()
        if live.ended is not None:
            after, published = await self._over(after, [*await read_events(self.store, self.key), event])
            puts = (*puts, *published)
            told = (self._told(after),)
        answer = outcome(event, show(self._game, after, live, live.balance))
        append = self._append(live.version, event, now)
        answer = await self.write(after, answer, once=once, puts=puts, events=told, append=append)
        if not isinstance(answer, Refusal):
            self._stands(event, live)
        return answer

    async def close(self, row: SessionRow) -> Any:
        """End it without an action. That takes no game; and where the secret is lost, none is shown."""
        now, events = self.clock.now_ms(), await read_events(self.store, self.key)
        event = core.expired(events, self._secret)
        after = replace(row, version=row.version + 1, changed_at=now)
        after, puts = await self._over(after, [*events, event])
        append = self._append(after.version, event, now)
        answer = await self.write(after, None, puts=puts, events=(self._told(after),), append=append)
        if not isinstance(answer, Refusal):
            self._stands(event, None if self._lost else core.fold(self._game, self._live, event))
        return answer

    async def _over(self, row: SessionRow, events: list[core.Event]) -> tuple[SessionRow, tuple[Put, ...]]:
        """The document after its last event, and what publishes its artifact."""
        ref, puts = await publish(self.store, core.artifact_of(events))
        return replace(row, over=core.end_of(events).over, ref=ref, due=None), puts

    def _after(self, row: SessionRow, live: Live, now: int) -> SessionRow:
        """The document after an action; `_over` makes it that of a session that has ended."""
        return replace(
            row,
            version=live.version,
            balance=live.balance,
            net=live.net,
            changed_at=now,
            due=self.later(row, now),
        )

    def _append(self, version: int, event: Acted | Closed, now: int) -> Append:
        return Append(core.session_log(self.key), version, msgspec.json.encode(event), now)

    def _stands(self, event: Acted | Closed, live: Live | None) -> None:
        """The state after an event that was committed; None: nobody plays this game here."""
        if live is not None:
            self._live = live
        self._played.accepted += isinstance(event, Acted)
        if event.ended is not None:
            self._played.ended(event.ended.over)
            self._secret, self._hidden = NONE, None

    async def _reject(self, command: Submit, refusal: Refusal) -> Refusal:
        expected, action = command.expected_version, command.action
        attempt = Rejected(refusal.code, refusal.message, expected, action, command.by)
        return await self.reject(attempt, refusal, command.once)

    def rejected(self, code: str) -> None:
        self._played.rejected[code] += 1

    async def _points(self, row: SessionRow) -> tuple[int, Callable[[Acted], Put] | None]:
        """What the account has now; and, of a persistent one, how an event's points are put there."""
        if row.mode == "simulation":
            return self._live.balance, None
        found = await read_account(self.store, row.agent_id)
        if found is None:
            raise damaged("account", row.agent_id, "it is not there")
        account, version = found

        def put(event: Acted) -> Put:
            after = core.posted(account, event.entries)
            return Put("account", row.agent_id, version, msgspec.json.encode(after))

        return account.balance, put

    def _unseal(self, row: SessionRow) -> None:
        text = self._vault.unseal(row.sealed)
        if text is None:
            self._lost = "its secret was sealed with a key that the wire has no more"
            return
        half = SECRET_BYTES * 2
        self._secret = Secret(text[:half], text[half:])

    def _told(self, row: SessionRow) -> Told:
        data = {
            "session_id": row.session_id,
            "game": row.game,
            "over": row.over,
            "net": row.net,
            "ref": row.ref,
        }
        return Told(agent_stream(row.agent_id), "arena", data)
