"""Programs of chance against two processes of one player: whatever breaks, each decision is done once or not at all."""

import random
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from broker.wire.keys import SigningKey
from broker.wire.refusals import refuse
from gateways.client.arena import Conflict, Outcome, Session
from tests.gateways.client.real_network import RealNetwork, real_network
from tests.support.agents import make_agent

STEPS = 25
FAULTS = ("none", "none", "none", "lost", "silent", "unavailable", "cut")


@pytest.fixture
async def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RealNetwork]:
    async with real_network(tmp_path, monkeypatch) as network:
        yield network


class Trouble:
    """What happens to the actions on their way."""

    def __init__(self, net: RealNetwork, chance: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calm = False
        self._net = net
        self._chance = chance
        self._call = net.bench.broker.call
        monkeypatch.setattr(net.bench.broker, "call", self._act)

    async def _act(self, caller: Any, name: str, params: bytes, *rest: Any, **more: Any) -> Any:
        fault = "none" if self.calm or name != "submit_action" else self._chance.choice(FAULTS)
        if fault == "cut":
            await self._net.cut()
        if fault == "unavailable":
            return refuse("unavailable", "not now")
        await trio.sleep(self._chance.choice((0, 0.01, 0.5)))
        answer = await self._call(caller, name, params, *rest, **more)
        if fault == "lost":
            await self._net.cut()
        if fault == "silent":
            await trio.sleep_forever()
        return answer


class Player:
    """Plays a session beside others. Each decision has a stake that no other has."""

    def __init__(self, session: Session, chance: random.Random, stakes: "count[int]") -> None:
        self.session = session
        self.outcomes: dict[int, tuple[int, Outcome]] = {}
        """By version: the stake, and what came of it."""
        self.left: list[int] = []
        """Stakes of decisions of which nothing was heard."""
        self._chance = chance
        self._stakes = stakes

    async def play(self) -> None:
        for _ in range(STEPS):
            calls = [each for each in self.session.legal_actions if each["type"] == "call"]
            action = {
                "type": "call",
                "guess": self._chance.choice(calls)["guess"],
                "stake": next(self._stakes),
            }
            await self._decide(action)

    async def _decide(self, action: dict[str, Any]) -> None:
        """Do one action; where it was cancelled sometimes look again, and sometimes ask the same again."""
        while True:
            try:
                with trio.move_on_after(self._chance.choice((0, 0.3, 5, 60))):
                    outcome = await self.session.act(action)
                    self.outcomes[outcome.session.version] = (action["stake"], outcome)
                    return
            except Conflict:
                return
            if self._chance.random() < 0.3:
                self.left.append(action["stake"])
                await self.session.refresh()
                return


@pytest.mark.requirement("client.arena-once", "client.arena-conflict")
@pytest.mark.parametrize("seed", range(4))
async def test_each_decision_is_done_once_or_not_at_all(
    autojump_clock: MockClock, net: RealNetwork, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance, stakes = random.Random(seed), count(1)  # programs that can be played again
    key = SigningKey.generate()
    caller = await make_agent(net.bench, "alfa", key=key)
    trouble = Trouble(net, chance, monkeypatch)
    config = {"decks": 8, "points": 1_000_000}
    async with net.agent(key, caller.agent) as me, net.agent(key, caller.agent) as again:
        async with me.arena("hilo", config=config) as session:
            other = await again.session(session.session_id)
            players = [Player(each, chance, stakes) for each in (session, other)]
            with trio.fail_after(36_000):
                async with trio.open_nursery() as nursery:
                    for player in players:
                        nursery.start_soon(player.play)
            trouble.calm = True
        assert session.over == "stopped"
        seen = await me.call("get_session", session_id=session.session_id, events_after=-1, limit=100)
        assert (await session.verify()).foreseen
        assert not (await other.verify()).foreseen
    done = {each["n"]: each["event"] for each in seen["events"]}
    done_stakes = [event["action"]["stake"] for event in done.values() if "stake" in event.get("action", {})]
    assert len(done_stakes) == len(set(done_stakes))
    heard = [(version, *said) for player in players for version, said in player.outcomes.items()]
    for version, stake, outcome in heard:
        assert done[version]["action"]["stake"] == stake
        assert done[version]["facts"] == outcome.facts
    silent = set(done_stakes) - {stake for _, stake, _ in heard}
    assert silent <= {stake for player in players for stake in player.left}
    assert len(heard) > STEPS / 2
