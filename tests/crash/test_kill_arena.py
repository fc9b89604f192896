"""SIGKILL under agents that play: no action is lost or done twice, and no point comes or goes (arena.md).

KILL_ROUNDS sets the rounds (2 here, more in soak). In every other one the broker dies between a commit and its answer.
"""

import os
import random
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from broker.config import Arena
from broker.core.arenaverify import verify
from broker.core.games.table import load
from broker.store import sqlite_file
from gateways.commands.check import beside_of, look_through
from tests.crash.dealers import kill
from tests.crash.players import LIMITS, Player
from tests.crash.talkers import Asked, call, code_of, make_talkers, settle
from tests.support.process import served

ROUNDS = int(os.environ.get("KILL_ROUNDS", "2"))
AGENTS = 2
PASSING = {"CONFLICT", "LIMIT_EXCEEDED"}
"""Refusals that are not kept: the next try may have another answer."""
Links = dict[Player, httpx.AsyncClient]


@pytest.mark.requirement("arena.killed")
@pytest.mark.timeout(60 + 12 * ROUNDS)
async def test_what_players_were_told_is_so_when_the_broker_is_killed_under_them(tmp_path: Path) -> None:
    chance, data = random.Random(20_261_201), tmp_path / "data"
    players = await make_players(data, chance)
    for number in range(ROUNDS):
        dying = number % 2 == 0
        environment = {**LIMITS, **({"DIE_AT": str(chance.randint(15, 30))} if dying else {})}
        async with (
            served(data, environment=environment, program="tests.crash.dying") as broker,
            trio.open_nursery() as nursery,
        ):
            for player in players:
                nursery.start_soon(player.run, broker)
            goal = answered(players) + chance.randint(15, 40)
            with trio.fail_after(30):
                # Other tasks' lists, and another process.
                while broker.process.returncode is None and (dying or answered(players) < goal):  # noqa: ASYNC110
                    await trio.sleep(0.005)
            kill(broker, nursery)
    async with served(data, environment=LIMITS) as broker:
        async with AsyncExitStack() as stack:
            links = {each: await stack.enter_async_context(each.connected(broker)) for each in players}
            await settle_all(links)
            done = await stop_all(links)
            await replay(links)
            await compare_sessions(links, done)
            await compare_accounts(links, done)
        assert await broker.stop() == 0
    found = look_through(data / sqlite_file.FILE, True, beside_of(data))
    assert (found.ok, found.sessions) == (True, len([each for each in done if each.tool == "open_session"]))
    assert len(done) > 8 * ROUNDS, "too little load to tell anything"


async def make_players(data: Path, chance: random.Random) -> list[Player]:
    """Two players for each agent."""
    players: list[Player] = []
    for talker in await make_talkers(data, chance, AGENTS):
        table: list[str] = []
        for hand in ("left", "right"):
            first = f"{talker.first}-{hand}"
            players.append(Player(first, talker.key, chance, talker.agent_id, table))
    return players


def answered(players: list[Player]) -> int:
    """How much was answered for good."""
    return sum(len(player.asked) for player in players)


async def settle_all(links: Links) -> None:
    """What was under way at the last end is asked again."""
    for player, http in links.items():
        if player.pending is not None:
            await settle(http, player.pending)
            player.asked.append(player.pending)
            player.pending = None


async def stop_all(links: Links) -> list[Asked]:
    """End each session by the player that opened it; all that was accepted from the beginning."""
    for player, http in links.items():
        for opened in [each for each in player.asked if each.done and each.tool == "open_session"]:
            session_id = opened.answer["session_id"]
            session = (await call(http, "get_session", session_id=session_id)).json()["session"]
            if session["status"] == "open":
                await player.stop(http, session)
    return [each for player in links for each in player.asked if each.done]


async def replay(links: Links) -> None:
    """The identical request gets the very same bytes, also where it was refused for good."""
    for player, http in links.items():
        for asked in player.asked:
            if asked.done or code_of(asked.body) not in PASSING:
                before = asked.status, asked.body
                await settle(http, asked)
                assert (asked.status, asked.body) == before, asked.tool


async def compare_sessions(links: Links, done: list[Asked]) -> None:
    """Each accepted action made one version, without a gap, and is an event of the log; its artifact verifies."""
    versions: dict[str, list[int]] = defaultdict(list)
    for each in done:
        session = each.answer if each.tool == "open_session" else each.answer["session"]
        versions[session["session_id"]].append(session["version"])
    by_agent = {each.agent_id: http for each, http in links.items()}
    owner = {
        each.answer["session_id"]: each.answer["agent_id"] for each in done if each.tool == "open_session"
    }
    games = load(Arena().games)
    for session_id, made in versions.items():
        http = by_agent[owner[session_id]]
        shown, events = await read(http, session_id)
        assert sorted(made) == list(range(shown["version"] + 1))
        assert [each["n"] for each in events] == sorted(made)
        for each in events:
            assert sum(points for _, points in each["event"].get("entries", [])) == 0
        ref = shown["artifact"]["ref"]
        content = (await http.get(f"/artifact/{ref}")).content
        assert verify(content, games, ref).fault is None


async def read(http: httpx.AsyncClient, session_id: str) -> tuple[Any, list[Any]]:
    """A session, and all of its events."""
    events: list[Any] = []
    while True:
        answer = (await call(http, "get_session", session_id=session_id, events_after=len(events) - 1)).json()
        events += answer["events"]
        if not answer["events"]:
            return answer["session"], events


async def compare_accounts(links: Links, done: list[Asked]) -> None:
    """A persistent account has what it opened with and what each accepted action changed, once."""
    for player, http in links.items():
        mine = [each for each in done if each.agent.agent_id == player.agent_id]
        changes = [
            each.answer["change"]
            for each in mine
            if each.tool == "submit_action" and each.answer["session"]["mode"] == "persistent"
        ]
        shown = (await call(http, "get_agent", agent_id=player.agent_id)).json()["arena"]
        assert shown["accounts"][0]["balance"] == Arena().points + sum(changes)
        assert shown["games"] == len([each for each in mine if each.tool == "open_session"])
