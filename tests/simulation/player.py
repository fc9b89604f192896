"""An agent that plays in the arena while everything breaks: it alone plays for itself, so it knows what must come.

1. A request that got no answer is repeated, byte for byte, until it has one for good.
2. Nobody else acts in its sessions: none of its actions is ever a conflict, each makes the version one more.
3. What was answered once is answered so again, and at the end the store has each event once and every point.
"""

import random
from typing import TYPE_CHECKING, Any, Final

import msgspec
import trio

from broker.app import Caller
from broker.core.agent import AgentRow
from broker.core.arena import session_log
from broker.store.port import Put, Store, Unit
from tests.simulation.links import DirectLink, Lost, Told
from tests.support.agents import SCOPES
from tests.support.games import plain

if TYPE_CHECKING:
    from tests.simulation.world import World

AGAIN: Final = frozenset({"unavailable", "in_doubt", "overloaded", "rate_limited"})
OPENING: Final = 10_000
MOST: Final = 3
Request = tuple[str, dict[str, Any]]


class Player:
    """One agent, and what it knows of its sessions."""

    def __init__(self, world: "World", number: int) -> None:
        self.agent_id = f"ag_{number:026}"
        self.finished = trio.Event()
        self._world = world
        self._check = world.ledger.check
        self._chance = random.Random(f"player {world.plan.seed} {number}")
        self._views: dict[str, dict[str, Any]] = {}
        """Its sessions, as each was answered last."""
        self._answered: list[tuple[Request, dict[str, Any]]] = []
        self._balance = OPENING

    def unit(self) -> Unit:
        """What makes the agent."""
        row = AgentRow(self.agent_id, self.agent_id, "standard", self._world.clock.now_ms())
        return Unit(puts=(Put("agent", self.agent_id, 0, msgspec.json.encode(row)),))

    async def live(self, seconds: float) -> None:
        """Play for so long, and then until the last request is answered."""
        end = trio.current_time() + seconds
        while trio.current_time() < end:
            await trio.sleep(self._chance.uniform(0, 6))
            await self._play()
        self.finished.set()

    async def _play(self) -> None:
        open = [each for each in self._views.values() if each["status"] == "open"]
        if self._answered and self._chance.random() < 0.2:
            await self._repeat()
        elif not open or (len(open) < MOST and self._chance.random() < 0.2):
            await self._open()
        else:
            await self._act(self._chance.choice(open))

    async def _open(self) -> None:
        shown = await self._settle(("get_agent", {"agent_id": self.agent_id}))
        params: dict[str, Any] = {
            "game": self._chance.choice(("hilo", "rfq")),
            "mode": self._chance.choice(("persistent", "simulation")),
            "config": {"commit": shown.body["arena"]["next_commit"]},
        }
        told = await self._keyed("open_session", params)
        self._check("the only player opens on the commit that it saw", not told.code, told)
        view = told.body
        self._check("sessions are counted", view["games"] == len(self._views), view["games"])
        if view["mode"] == "persistent":
            self._check("a balance is what was left", view["account"]["balance"] == self._balance, told)
        self._views[view["session_id"]] = view

    async def _act(self, view: dict[str, Any]) -> None:
        stop = self._chance.random() < 0.08
        action = {"type": "stop"} if stop else plain(view["legal_actions"])
        params = {
            "session_id": view["session_id"],
            "expected_version": view["version"],
            "action": action,
        }
        told = await self._keyed("submit_action", params)
        self._check("the only player meets no conflict", not told.code, told)
        after, change = told.body["session"], told.body["change"]
        self._check("an action is one version", after["version"] == view["version"] + 1, told)
        before = self._balance if view["mode"] == "persistent" else view["account"]["balance"]
        self._check("points follow", after["account"]["balance"] == before + change, told)
        if view["mode"] == "persistent":
            self._balance += change
        self._views[view["session_id"]] = after

    async def _keyed(self, tool: str, params: dict[str, Any]) -> Told:
        request = (tool, {**params, "idempotency_key": f"key-{len(self._answered)}"})
        told = await self._settle(request)
        self._answered.append((request, told.body))
        return told

    async def _repeat(self) -> None:
        request, body = self._chance.choice(self._answered)
        told = await self._settle(request)
        self._check("the same key, the same answer", told.body == body, request, told)

    async def _settle(self, request: Request) -> Told:
        """Ask until there is an answer for good."""
        while True:
            try:
                told = await self._link().ask(*request)
            except Lost:
                await trio.sleep(0.5)
                continue
            if told.code not in AGAIN:
                return told
            await trio.sleep(0.5)

    def _link(self) -> DirectLink:
        world = self._world
        if world.life is None or world.life.broker is None or not world.up.is_set():
            raise Lost
        caller = Caller(principal=self.agent_id, agent=self.agent_id, issued=world.ts, scopes=SCOPES)
        link = DirectLink(world.life.broker, caller, lambda *_: None)
        world.life.links.append(link)
        return link

    async def judge(self, store: Store) -> None:
        """What the store has at the end: each event once, and every point."""
        won = 0
        for session_id, view in self._views.items():
            rows = await store.entries(session_log(session_id), -1, 10_000)
            self._check("each version is one event", len(rows) == view["version"] + 1, session_id, len(rows))
            entries = [msgspec.json.decode(row.data).get("entries", []) for row in rows]
            for each in entries:
                self._check("entries sum to 0", sum(points for _, points in each) == 0, session_id)
            net = sum(points for each in entries[1:] for account, points in each if account == "player")
            self._check("points are those that were told", net == view["net"], session_id, net)
            won += net if view["mode"] == "persistent" else 0
        document = await store.get("account", self.agent_id)
        if document is not None:
            account = msgspec.json.decode(document.doc)
            self._check("an account is its events", account["balance"] == OPENING + won, account, won)
            self._check("an account sums to 0", sum(account.values()) == 0, account)
