"""The programs and commands of docs/how-to/answer-a2a-tasks.md, run beside a broker."""

import json
import shlex
from types import ModuleType
from typing import Any

import httpx
import pytest
import trio

from gateways.client.agent import open_agent
from tests.docs.pages import blocks
from tests.docs.test_share_page import owned_agent
from tests.gateways.client.live import Live
from tests.gateways.commands.conftest import Turret, live, turret

PAGE = "answer-a2a-tasks.md"
ADDRESS = '"http://127.0.0.1:8766"'
__all__ = ["live", "turret"]


def program(number: int, live: Live) -> Any:
    """A program of the page as a module."""
    text = blocks(PAGE, "python")[number]
    assert text.count(ADDRESS) == 1
    module = ModuleType(f"program{number}")
    exec(compile(text.replace(ADDRESS, repr(live.http)), PAGE, "exec"), module.__dict__)
    return module


def by_hand(agent_id: str, token: str) -> tuple[dict[str, str], Any]:
    """The headers and the body of the page's curl."""
    made, _, curl = blocks(PAGE, "sh")[1].partition("\n")
    assert made == "TOKEN=$(turret agent-token --key ann.key)"
    words = shlex.split(curl.replace("$AGENT", agent_id).replace("$TOKEN", token))
    headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
    assert words[1].endswith(f"/a2a/{agent_id}")
    return headers, json.loads(words[words.index("-d") + 1])


@pytest.mark.requirement("client.agent-tasks")
async def test_the_programs_ask_answer_and_give(live: Live, turret: Turret) -> None:
    for name in ("ann", "bob"):
        await owned_agent(live, turret, name)
    answering, giving = program(0, live), program(1, live)
    async with open_agent(live.http, "ann.key") as ann, open_agent(live.http, "bob.key") as bob:
        ids = {"ag_…": str(bob.agent_id)}
        for line in blocks(PAGE, "sh")[0].splitlines():
            words = [ids.get(each, each) for each in shlex.split(line)[1:]]
            agreed = await turret(*words, "--wire", live.wire)
            assert agreed.code == 0, agreed.err
            ids["cr_…"] = agreed.json.get("requests", [agreed.json])[0]["request_id"]
        to, token = str(bob.agent_id), await ann.token()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(answering.serve, 3)
        assert await giving.give(to, "?", "one two three four") == "completed: 4 words"
        headers, body = by_hand(to, token)
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.post(f"{live.http}/a2a/{to}", headers=headers, json=body, timeout=30)
    task = answer.json()["result"]["task"]
    assert task["artifacts"][0]["parts"] == [{"text": "3 words"}]
    waiting, given = (line.split() for line in blocks(PAGE, "sh")[2].splitlines())
    listed = await turret(*waiting[1:], "--wire", live.wire)
    assert listed.json["tasks"] == [], listed.err
    listed = await turret(*given[1:], "--wire", live.wire)
    assert [each["task"]["state"] for each in listed.json["tasks"]] == ["completed", "completed"]
