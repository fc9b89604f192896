"""The commands of docs/how-to/register-an-agent.md, run in their order beside a broker."""

import json
from pathlib import Path

import pytest

from gateways.configure import load
from tests.docs.pages import blocks, command_lines
from tests.gateways.client.live import Live
from tests.gateways.commands.conftest import Turret, live, turret

PAGE = "register-an-agent.md"
__all__ = ["live", "turret"]


@pytest.mark.requirement("cli.agent-register")
async def test_each_command_of_the_page_does_what_it_says(live: Live, turret: Turret) -> None:
    ran = []
    for program, *rest in command_lines(PAGE):
        assert program == "turret"
        arguments = [live.http if each.startswith("http://") else each for each in rest]
        if "--url" in arguments and arguments[0] == "agent-register":
            arguments += ["--wire", live.wire]
        made = await turret(*arguments)
        assert (made.code, made.err) == (0, ""), arguments
        ran.append(arguments[0])
    assert ran == [
        *("keygen", "agent-register"),
        *("update-my-profile", "set-directory-visibility", "search-directory"),
    ]
    assert turret.files("ann.key*") == ["ann.key", "ann.key.agent"]
    (found,) = made.json["agents"]
    assert (found["name"], found["capabilities"]) == ("Ann's quotes", ["fx-quotes"])


def test_the_request_of_the_page_has_the_members_that_the_door_takes() -> None:
    (shown,) = (json.loads(each) for each in blocks(PAGE, "json"))
    assert shown.keys() == {"name", "public_jwk", "proof"}
    assert shown["proof"]["statement"].keys() == {"do", "name", "nonce", "pk", "ts", "wire"}


def test_the_setting_of_the_page_is_one(tmp_path: Path) -> None:
    (text,) = blocks(PAGE, "toml")
    (tmp_path / "turret.toml").write_text(text)
    assert load(tmp_path / "turret.toml", {}, {}).settings.agents.register == "operator"
