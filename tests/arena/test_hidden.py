"""What is hidden is nowhere before the end: both games are played at all doors, with everything that can be seen kept,
and all of it is searched for secrets and for what comes next."""

import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import cycle
from typing import Any, Final

import pytest

from broker.actors.player import Vault
from broker.core.chance import Draws, Secret
from broker.core.games import hilo, rfq
from tests.arena.doors import DOORS, Doors, open_doors
from tests.support.arena import first_legal, new_key

SECRET: Final = Secret("5eed" * 16, "5a17" * 16)
NEXT: Final = Secret("beef" * 16, "f00d" * 16)
ROOT: Final = b"R00T" * 8
SEALED: Final = "5ea1ed"
FAR: Final = 98_765_431
"""How far each client of RFQ goes, here: it is never shown, whatever is traded."""
MOVES: Final = (1_009, 2_003, 3_001, 4_001, 5_003)
"""Where the reference goes, step by step: none is part of another's sum."""
BOTHERS: Final = ("ILLEGAL_ACTION", "CONFLICT", "NOT_FOUND", "bad_request", "RuntimeError('broken')")
"""What a player was told, or the log, when it was bothered."""
CARD: Final = re.compile(r"\b[2-9TJQKA][CDHS]\b")


@asynccontextmanager
async def watched(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> AsyncIterator["Watched"]:
    """The doors of a broker whose secrets are known, with its log at the loudest."""
    sealing = Vault(
        lambda: ROOT, lambda text: SEALED + text[::-1], lambda text: text.removeprefix(SEALED)[::-1]
    )
    secrets = {0: SECRET}

    async def given(_: Any, __: Any, ___: Any, games: int) -> Secret:
        return secrets.get(games, NEXT)

    def deal(config: rfq.Config, draws: Draws) -> list[rfq.Request]:
        return [rfq.Request(1, move, "sells", FAR) for move in MOVES]

    monkeypatch.setattr("broker.tools.parts._vault", lambda _: sealing)
    monkeypatch.setattr("broker.actors.player.next_secret", given)
    monkeypatch.setattr(rfq, "deal", deal)
    with caplog.at_level(logging.DEBUG):
        async with open_doors() as doors:
            yield Watched(doors, caplog)


class Watched:
    """All that comes out of a broker."""

    def __init__(self, doors: Doors, caplog: pytest.LogCaptureFixture) -> None:
        self.doors = doors
        self._log = caplog
        self._doors = cycle(DOORS)

    async def call(self, name: str, **params: Any) -> tuple[bool, str]:
        """A tool at the next door."""
        return await self.doors.call(next(self._doors), name, **params)

    async def act(self, session: Any, action: dict[str, Any], **params: Any) -> Any:
        """An action, and what the door made of it."""
        params.setdefault("expected_version", session["version"])
        good, text = await self.call(
            "submit_action",
            session_id=session["session_id"],
            action=action,
            idempotency_key=new_key(),
            **params,
        )
        return json.loads(text)["session"] if good else text

    async def news(self, session: Any) -> str:
        """Everything since the last look: what the doors said, the log, figures, the stream, and all that there is to
        ask for."""
        doors = self.doors
        for door in DOORS:
            await doors.call(
                door, "get_session", session_id=session["session_id"], events_after=-1, rejected_after=-1
            )
            await doors.call(door, "get_agent", agent_id=doors.ann.agent)
            await doors.call(door, "wait_for_events")
        for path in ("/metrics", "/healthz", f"/artifact/{session['commit']}"):
            await doors.get(path)
        text = "\n".join([*doors.said, self._log.text, *map(repr, self._log.records)])
        doors.said.clear()
        self._log.clear()
        return text

    async def bother(self, session: Any, monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
        """Every error that a player can have."""
        await self.act(session, {"type": "fold"})
        await self.act(session, {"type": "call", "stake": "all", "guess": {"of": 1}})
        await self.act(session, {"type": "quote", "bid": 1}, expected_version=999)
        await self.act(session, {"type": "call", "stake": 1_000, "guess": "same"})
        await self.call("get_session", session_id="as_" + "0" * 26)
        await self.call(
            "open_session", game=session["game"], config={"decks": 0, "steps": 0}, idempotency_key="no"
        )

        def broken(*_: Any) -> Any:
            raise RuntimeError("broken")

        with monkeypatch.context() as patched:
            patched.setattr(module, "apply", broken)
            for _ in DOORS:
                await self.act(session, first_of(session))


def first_of(session: Any) -> dict[str, Any]:
    """An action that may be done now."""
    if session["game"] == "hilo":
        return first_legal(session)
    return {"type": "quote", "bid": session["observation"]["reference"]}


def secrets_in(text: str) -> list[str]:
    """What of the secrets a text has, in any form in which it is held."""
    held = {
        "seed": SECRET.seed,
        "salt": SECRET.salt,
        "next seed": NEXT.seed,
        "next salt": NEXT.salt,
        "root": ROOT.decode(),
        "root in hex": ROOT.hex(),
        "sealed": SEALED,
        "seed as bytes": repr(bytes.fromhex(SECRET.seed))[2:-1],
        "distance": str(FAR),
    }
    return [name for name, value in held.items() if value in text]


@pytest.mark.requirement("arena.hidden", "arena.reveal-never")
@pytest.mark.parametrize("reveal", ["on_end", "never"])
async def test_nothing_shows_the_shoe_before_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, reveal: str
) -> None:
    async with watched(monkeypatch, caplog) as watch:
        config = {"client_seed": "mine", "reveal": reveal, "points": 500}
        _, text = await watch.call("open_session", game="hilo", config=config, idempotency_key="k")
        session = json.loads(text)
        shoe = hilo.deal(hilo.Config(), Draws(SECRET.seed, b"turret/arena/draw/1\0hilo/1\0", "mine"))
        for turned in range(1, 6):
            await watch.bother(session, monkeypatch, hilo)
            seen = await watch.news(session)
            assert secrets_in(seen) == []
            assert set(CARD.findall(seen)) == set(shoe[:turned])
            assert [each for each in (*BOTHERS, "INSUFFICIENT_POINTS") if each not in seen] == []
            session = await watch.act(session, first_legal(session))
        await watch.act(session, {"type": "stop"})
        seen = await watch.news(session)
        shown = ["seed", "salt"] if reveal == "on_end" else []
        assert secrets_in(seen) == shown, "this search finds what is there"


@pytest.mark.requirement("arena.hidden")
async def test_nothing_shows_the_tape_before_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with watched(monkeypatch, caplog) as watch:
        config = {"steps": 5, "points": 1_000_000}
        _, text = await watch.call("open_session", game="rfq", config=config, idempotency_key="k")
        session = json.loads(text)
        for step in range(len(MOVES)):
            await watch.bother(session, monkeypatch, rfq)
            seen = await watch.news(session)
            assert secrets_in(seen) == []
            assert [each for each in BOTHERS if each not in seen] == []
            to_come = [str(move) for move in MOVES[step:]]
            sums = [str(rfq.START + sum(MOVES[: at + 1])) for at in range(step, len(MOVES))]
            assert [each for each in (*to_come, *sums) if re.search(rf"\b{each}\b", seen)] == []
            session = await watch.act(session, first_of(session))
        assert session["over"] == "tape_over"
        seen = await watch.news(session)
        assert secrets_in(seen) == ["seed", "salt"]
        assert str(rfq.START + sum(MOVES)) in seen
