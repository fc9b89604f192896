"""Agents that try plans while the broker is killed: each call is asked for until it is answered for good."""

import random
from typing import Any

import httpx

from broker.wire.keys import SigningKey
from tests.crash.talkers import Asked, Talker, call
from tests.support.rehearsals import DOWN, FADE, HEAVY

PLANS = (FADE, HEAVY, DOWN)


class Trainee(Talker):
    """One agent, with one trial at a time."""

    def __init__(self, first: str, key: SigningKey, chance: random.Random, agent_id: str) -> None:
        super().__init__(first, key, chance)
        self.agent_id = agent_id
        self.session_id: str | None = None

    async def _next(self, http: httpx.AsyncClient) -> Asked | None:
        if self.session_id is None:
            return self._ask("kestrel.session.open", entry="trend", seed=self.chance.randint(1, 3))
        shown = await self.resume(http, self.session_id)
        operation = shown.get("operation")
        if operation is not None:
            await call(
                http, "kestrel.operation.resume", operation_id=operation["operation_id"], wait_ms=5_000
            )
            return None
        if not shown["legal_calls"]:
            self.session_id = None
            return None
        return self._call(shown, self.chance.choice(shown["legal_calls"]))

    def _call(self, shown: dict[str, Any], verb: str) -> Asked:
        if verb == "finalize" and self.chance.random() < 0.7:
            verb = shown["legal_calls"][0]
        chance = self.chance
        more: dict[str, Any] = {
            "start": {"plan": chance.choice(PLANS)},
            "revise": {"plan": chance.choice(PLANS)},
            "advance": {"ticks": chance.choice((3, 80, 3_000))},
            "submit": {"order": {"side": chance.choice(("buy", "sell")), "size": chance.randint(1, 900)}},
            "finalize": {},
        }[verb]
        version = shown["version"] - (chance.random() < 0.1 and shown["version"] > 0)
        return self._ask(
            f"kestrel.session.{verb}", session_id=shown["session_id"], expected_version=version, **more
        )

    async def resume(self, http: httpx.AsyncClient, session_id: str) -> Any:
        """A trial as it is now."""
        return (await call(http, "kestrel.session.resume", session_id=session_id)).json()

    def heard(self, asked: Asked) -> None:
        if asked.done and asked.tool == "kestrel.session.open":
            self.session_id = asked.answer["session_id"]
