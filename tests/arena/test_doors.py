"""One answer at every door: the same bytes, however often it is asked for and wherever."""

import json
from itertools import permutations
from typing import Any

import pytest

from tests.arena.doors import DOORS, open_doors
from tests.support.arena import call

EACH_FIRST = pytest.mark.parametrize("order", list(permutations(DOORS))[::2], ids="-".join)


@pytest.mark.requirement("arena.alike", "arena.once")
@EACH_FIRST
async def test_an_answer_has_the_same_bytes_at_every_door(order: tuple[str, ...]) -> None:
    async with open_doors() as doors:
        opening = {
            "game": "rfq",
            "mode": "persistent",
            "config": {"client_seed": "♣"},
            "idempotency_key": "k",
        }
        opened = {await doors.call(door, "open_session", **opening) for door in order}
        assert len(opened) == 1
        session = json.loads(opened.pop()[1])
        acting = {
            "session_id": session["session_id"],
            "expected_version": 0,
            "action": {"type": "quote", "bid": 9_995, "ask": 10_005},
            "idempotency_key": "k",
        }
        acted = {await doors.call(door, "submit_action", **acting) for door in order}
        assert len(acted) == 1
        assert json.loads(acted.pop()[1])["session"]["version"] == 1
        seen = {await doors.call(door, "get_session", session_id=session["session_id"]) for door in order}
        assert len(seen) == 1
        games = {await doors.call(door, "get_game", game="hilo") for door in order}
        assert len(games) == 1


@pytest.mark.requirement("arena.alike", "arena.final")
@EACH_FIRST
async def test_a_final_refusal_says_the_same_at_every_door(order: tuple[str, ...]) -> None:
    async with open_doors() as doors:
        session = await doors.result(order[0], "open_session", game="hilo", idempotency_key="k")
        acting = {
            "session_id": session["session_id"],
            "expected_version": 0,
            "action": {**call("same"), "stake": 0},
            "idempotency_key": "k",
        }
        said: list[Any] = []
        for door in order:
            good, text = await doors.call(door, "submit_action", **acting)
            assert not good
            said.append(members(json.loads(text)))
        assert said[0] == said[1] == said[2]
        assert said[0]["code"] == "ILLEGAL_ACTION"
        assert said[0]["legal_actions"] == session["legal_actions"]


def members(refusal: Any) -> Any:
    """The refusal in what a door made of it."""
    return (
        refusal
        if "code" in refusal
        else next(found for each in refusal.values() if isinstance(each, dict) and (found := members(each)))
    )
