"""Names with dots, and odd ones, at each door: they work, or are refused in that door's words."""

from typing import Any

import pytest

from tests.arena.doors import DOORS, Doors, open_doors
from tests.support.rehearsals import FADE, new_key

ODD = (
    "kestrel",
    "kestrel.",
    "kestrel.session",
    "Kestrel.validate",
    "kestrel..validate",
    "kestrel.validate.",
    "<script>alert(1)</script>",
)
WORDS = {"v1": '"code":"not_found"', "mcp": '"code":-32602,"message":"unknown tool: ', "ws": '"code": -32601'}
"""Of each door, for a tool that is not there."""


async def do(doors: Doors, door: str, seen: dict[str, Any], verb: str, **params: Any) -> Any:
    given = {"session_id": seen["session_id"], "expected_version": seen["version"], **params}
    return await doors.result(door, f"kestrel.session.{verb}", **given, idempotency_key=new_key())


@pytest.mark.requirement("trial.session-doors")
async def test_a_trial_begun_at_one_door_goes_on_at_the_others() -> None:
    async with open_doors() as doors:
        plans = [await doors.result(door, "kestrel.validate", plan=FADE) for door in DOORS]
        assert plans[0]["valid"]
        assert plans == [plans[0]] * 3
        seen = await doors.result("ws", "kestrel.session.open", entry="trend", idempotency_key=new_key())
        seen = await do(doors, "v1", seen, "start", plan=plans[0]["tree"])
        seen = await do(doors, "mcp", seen, "advance", ticks=20)
        seen = await do(doors, "ws", seen, "submit", order={"side": "buy", "size": 1})
        id = {"session_id": seen["session_id"]}
        shown = [await doors.result(door, "kestrel.session.resume", **id) for door in DOORS]
        assert shown == [shown[0]] * 3
        ref = (await do(doors, "v1", seen, "finalize"))["ref"]
        grades = [await doors.result(door, "kestrel.grade", ref=ref) for door in DOORS]
        assert grades == [grades[0]] * 3


@pytest.mark.requirement("trial.session-doors")
@pytest.mark.parametrize("door", DOORS)
async def test_a_name_that_is_no_tools_is_refused_in_the_words_of_each_door(door: str) -> None:
    async with open_doors() as doors:
        for name in ODD:
            good, text = await doors.call(door, name, plan=FADE)
            assert not good, (name, text)
            assert WORDS[door] in doors.said[-1], (name, doors.said[-1])
