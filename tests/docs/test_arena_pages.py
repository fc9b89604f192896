"""The pages on playing: the tutorial's commands and players, and the how-to's calls, done as they are written."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from broker.wire.keys import SigningKey
from gateways.client.agent import open_agent
from gateways.client.artifacts import fetch_artifact
from gateways.client.mcp_link import ToolCaller
from tests.docs.pages import HOW_TO, blocks, command_lines
from tests.gateways.client.live import Live
from tests.gateways.commands.conftest import Turret, live, turret

TUTORIAL = "../tutorial/arena.md"
PAGE = "play-in-the-arena.md"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
NAMES = ("hilo_player.py", "rfq_dealer.py")
ADDRESS = '"http://127.0.0.1:8766"'
ANY_AGENT = r"ag_\w{26}"
__all__ = ["live", "turret"]


def shaped(text: str) -> str:
    """A text of the page as a pattern: any numbers, hashes, ids and ends of a game."""
    text = re.sub(r"ag_\w{26}|[0-9a-f]{64}|[+-]?[0-9][0-9,]*|shoe_empty|tape_over", "\0", text)
    return re.escape(text).replace("\0", r"[\w+,-]+")


def play(name: str, live: Live) -> None:
    """A player of the page, as the program that it is, in a thread of ours."""
    text = (EXAMPLES / name).read_text()
    assert text.count(ADDRESS) == 1
    exec(compile(text.replace(ADDRESS, repr(live.http)), name, "exec"), {"__name__": "__main__"})


@pytest.mark.requirement("client.arena-tutorial")
def test_the_page_shows_the_players_as_they_are_and_none_is_long() -> None:
    shown = blocks(TUTORIAL, "python")
    for name, text in zip(NAMES, shown, strict=True):
        assert text == (EXAMPLES / name).read_text(), name
        assert len(text.splitlines()) <= 60


@pytest.mark.requirement("client.arena-tutorial")
async def test_the_tutorial_goes_as_it_is_written(
    live: Live, turret: Turret, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line for line in command_lines(TUTORIAL) if line[0] == "turret"]
    assert lines.pop(0)[1] == "serve"
    agent_id = ""
    for _, *arguments in lines[:-1]:
        ran = await turret(*(agent_id if each == "ag_…" else each for each in arguments))
        assert ran.code == 0, ran.err
        if arguments[0] == "agent-register":
            agent_id = re.findall(ANY_AGENT, ran.out)[0]
    assert ran.json["arena"]["accounts"][0]["balance"] == 10_000
    hilo, verified, rfq = blocks(TUTORIAL, "text")
    for name, shown in zip(NAMES, (hilo, rfq), strict=True):
        with trio.fail_after(30):
            await trio.to_thread.run_sync(play, name, live)
        assert re.fullmatch(shaped(shown), out := capsys.readouterr().out), out
    ran = await turret(*lines[-1][1:])
    assert re.fullmatch(shaped(verified), ran.out), ran
    file = turret.directory / "hilo.json"
    content = file.read_bytes()
    ran = await turret("arena", "verify", "rfq.json")
    assert ran.code == 0, ran.err
    file.write_bytes(content.replace(b'"balance":1000', b'"balance":1001', 1))
    assert (await turret(*lines[-1][1:])).code == 1


@pytest.mark.requirement("client.arena-tutorial")
async def test_the_calls_of_the_how_to_play_a_session(live: Live, turret: Turret) -> None:
    look, opening, acting = (json.loads(each) for each in blocks(PAGE, "json"))
    with trio.fail_after(30):
        async with open_agent(live.http, SigningKey.generate(), scopes=["arena"]) as me:
            await me.register("alfa")
            async with ToolCaller(f"{live.http}/mcp/arena") as mcp:
                mcp.token = await me.token()

                async def ask(tool: str, arguments: dict[str, Any]) -> Any:
                    return json.loads(await mcp.call(tool, msgspec.json.encode(arguments), 10))

                look["agent_id"] = me.agent_id
                profile = (await ask("get_agent", look))["arena"]
                assert {"accounts", "limits", "recent_sessions", "next_commit"} <= set(profile)
                opening["config"]["commit"] = profile["next_commit"]
                session = await ask("open_session", opening)
                acting["session_id"] = session["session_id"]
                while session["status"] == "open":
                    call = session["legal_actions"][0]
                    acting["action"]["guess"] = call["guess"]
                    acting["action"]["stake"] = min(25, call["stake"]["max"])
                    acting["expected_version"] = session["version"]
                    acting["idempotency_key"] = f"act-{session['version']}"
                    answer = await ask("submit_action", acting)
                    assert {"facts", "change", "session"} == set(answer)
                    session = answer["session"]
            content = await fetch_artifact(live.http, session["artifact"]["ref"])
    opened = json.loads(content)["events"][0]
    assert (opened["commit"], opened["client_seed"]) == (
        opening["config"]["commit"],
        opening["config"]["client_seed"],
    )
    (turret.directory / "session.json").write_bytes(content)
    assert turret.run("arena", "verify", "session.json").code == 0


def test_the_how_to_names_the_errors_of_the_arena() -> None:
    text = (HOW_TO / PAGE).read_text()
    for code in ("CONFLICT", "IDEMPOTENCY_MISMATCH", "ILLEGAL_ACTION", "SESSION_OVER", "LIMIT_EXCEEDED"):
        assert f"`{code}`" in text
