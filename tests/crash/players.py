"""Agents that play while the broker is killed: each action is asked for until it is answered for good.

Two players of one agent play with its persistent account, and in each other's sessions.
"""

import random
from typing import Any, Final

import httpx

from broker.wire.keys import SigningKey
from tests.crash.talkers import Asked, Talker, call, settle
from tests.support.games import plain

LIMITS: Final = {"TURRET_LIMITS_KEYED_PER_HOUR": "1000000"}
MOST: Final = 4
"""Sessions of one agent that are open at once."""


class Player(Talker):
    """One of those who play for an agent. `table`: the sessions that they know of, in the order in which they came."""

    def __init__(
        self, first: str, key: SigningKey, chance: random.Random, agent_id: str, table: list[str]
    ) -> None:
        super().__init__(first, key, chance)
        self.agent_id = agent_id
        self.table = table

    async def _next(self, http: httpx.AsyncClient) -> Asked | None:
        if not self.table or (len(self.table) < MOST and self.chance.random() < 0.1):
            shown = (await call(http, "get_agent", agent_id=self.agent_id)).json()
            game, mode = self.chance.choice(("hilo", "rfq")), self.chance.choice(("persistent", "simulation"))
            config = {"commit": shown["arena"]["next_commit"], "client_seed": self.first}
            return self._ask("open_session", game=game, mode=mode, config=config)
        session_id = self.chance.choice(self.table)
        session = (await call(http, "get_session", session_id=session_id)).json()["session"]
        if session["status"] == "over":
            if session_id in self.table:
                self.table.remove(session_id)
            return None
        action, version = self._action(session["legal_actions"]), session["version"]
        if self.chance.random() < 0.05:
            version = max(0, version - 1)
        return self._ask("submit_action", session_id=session_id, expected_version=version, action=action)

    def _action(self, legal: list[dict[str, Any]]) -> dict[str, Any]:
        if self.chance.random() < 0.05:
            return {"type": "stop"}
        action = plain(legal)
        if action["type"] == "call":
            action["stake"] = self.chance.randint(1, 2_000)
        return action

    async def stop(self, http: httpx.AsyncClient, session: dict[str, Any]) -> None:
        """End a session as it was seen."""
        asked = self._ask(
            "submit_action",
            session_id=session["session_id"],
            expected_version=session["version"],
            action={"type": "stop"},
        )
        await settle(http, asked)
        self.asked.append(asked)

    def heard(self, asked: Asked) -> None:
        if asked.done and asked.tool == "open_session":
            self.table.append(asked.answer["session_id"])
