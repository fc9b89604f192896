"""The game of docs/how-to/add-a-game.md: made from the page, played through the tools, its artifact verified."""

import importlib
import os
import sys
import tomllib
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import msgspec
import pytest

from broker.actors.artifacts import read_artifact
from broker.config import Arena
from broker.core.games.game import Step
from broker.wire.refusals import Refusal
from tests.docs.pages import blocks, command_lines
from tests.gateways.commands.conftest import Turret, turret
from tests.gateways.test_serve import refused_to_serve
from tests.support.agents import make_agent
from tests.support.arena import open_session, submit
from tests.support.broker import open_bench, tuned

PAGE = "add-a-game.md"
__all__ = ["turret"]


@pytest.fixture
def settings(turret: Turret, monkeypatch: pytest.MonkeyPatch) -> Iterator[Arena]:
    """The page's module where it can be imported, and the page's setting."""
    (turret.directory / "dice.py").write_text(blocks(PAGE, "python")[0])
    monkeypatch.syspath_prepend(str(turret.directory))
    yield msgspec.convert(tomllib.loads(blocks(PAGE, "toml")[0])["arena"], Arena)
    sys.modules.pop("dice", None)


@pytest.mark.requirement("games.page")
def test_it_has_less_than_a_hundred_lines() -> None:
    assert 50 < len(blocks(PAGE, "python")[0].splitlines()) < 100


@pytest.mark.requirement("games.page")
async def test_it_is_played_through_the_tools_and_its_artifact_verified(
    settings: Arena, turret: Turret, autojump_clock: Any
) -> None:
    async with open_bench(tuned(arena=settings)) as bench:
        ann = await make_agent(bench, "Ann")
        listed: Any = msgspec.to_builtins(await bench.call("describe_arena", ann))
        assert [each["game"] for each in listed["games"]] == ["dice", "hilo", "rfq"]
        rules: Any = msgspec.to_builtins(await bench.call("get_game", ann, game="dice"))
        assert rules["config_schema"]["properties"]["rolls"]["maximum"] == 100
        assert rules["action_schema"]["anyOf"][0]["properties"]["at_least"]["minimum"] == 2
        session = await open_session(bench, ann, "dice", config={"rolls": 5, "points": 300})
        assert session["observation"] == {"left": 5, "last": None}
        short = await submit(bench, ann, session, {"type": "bet", "stake": 100, "at_least": 7})
        assert isinstance(short, Refusal)
        assert short.code == "ILLEGAL_ACTION"
        change = 0
        for at_least in (2, 3, 4, 5, 6):
            bet = {"type": "bet", "stake": 60, "at_least": at_least}
            done = await submit(bench, ann, session, bet)
            assert not isinstance(done, Refusal), done
            change, session = change + done["change"], done["session"]
            assert done["facts"] == {"rolled": session["observation"]["last"]}
            if session["status"] == "over":
                break
        assert session["over"] in ("rolled", "bust")
        assert session["account"]["balance"] == 300 + change
        content = await read_artifact(bench.broker._services.store, session["artifact"]["ref"])
    assert content is not None
    (turret.directory / "session.json").write_bytes(content)
    path, command, *words = command_lines(PAGE)[1]
    assert (path, command, words[:2]) == ("PYTHONPATH=/srv/games", "turret", ["arena", "verify"])
    ran = turret.run(*words, "--ref", session["artifact"]["ref"])
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("dice 1, of ")
    without = turret.run("arena", "verify", "session.json")
    assert (without.code, without.err.split(": ")[1]) == (1, "game")


@pytest.mark.requirement("games.page")
def test_its_edge_is_the_one_that_its_rules_say(settings: Arena) -> None:
    dice: Any = importlib.import_module("dice")
    for at_least in range(2, 7):
        for stake in (1, 7, 100):
            bet = dice.Action(stake=stake, at_least=at_least)
            steps = [dice.apply(dice.State(1, None), [rolled], bet, 100) for rolled in range(1, 7)]
            assert all(isinstance(step, Step) for step in steps)
            lost = -Fraction(sum(step.change for step in steps), 6)
            assert Fraction(stake, 50) <= lost < Fraction(stake, 50) + Fraction(7 - at_least, 6)


@pytest.mark.requirement("games.named")
def test_without_a_function_the_start_says_what_the_page_says(
    settings: Arena, turret: Turret, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = turret.directory / "dice.py"
    module.write_text(module.read_text().replace("def observe(", "def _observe("))
    (turret.directory / "turret.toml").write_text(blocks(PAGE, "toml")[0])
    monkeypatch.setenv("PYTHONPATH", str(turret.directory), prepend=os.pathsep)
    flags = ("--data", "data", "--bind", "127.0.0.1:0", "--dealing-bind", "127.0.0.1:0")
    assert refused_to_serve("--config", "turret.toml", *flags) == blocks(PAGE, "text")[0]
