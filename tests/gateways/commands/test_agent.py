"""`turret agent` on the command line: what it takes, and what stops it before it starts."""

import json
from pathlib import Path

import pytest

from gateways.agent import run as agent_run
from gateways.agent.line import Line
from gateways.agent.rails import Rails
from tests.gateways.commands.conftest import Turret


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Line]:
    """The lines of the agents that would have been started."""
    lines: list[Line] = []

    async def run(line: Line) -> int:
        lines.append(line)
        return 0

    monkeypatch.setattr(agent_run, "run", run)
    return lines


@pytest.mark.requirement("agent.settings")
def test_options_and_file_make_the_rails(turret: Turret, started: list[Line], tmp_path: Path) -> None:
    rules = tmp_path / "agent.toml"
    rules.write_text('types = ["RFQ"]\ncode = "ALFA"\n[caps]\nqty = 5\n')
    flags = ["--rules", str(rules), "--counterparty", "BRAV,ECHO", "--counterparty", "ZULU", "--cap", "px=2"]
    ran = turret.run("agent", "--key", turret.key("alfa"), *flags, "--ask-before", "HIT, CONFIRM")
    assert (ran.code, ran.out) == (0, "")
    rails = started[0].rails
    assert rails.counterparties == {"BRAV", "ECHO", "ZULU"}
    assert (rails.types, rails.ask_before, rails.code) == ({"RFQ"}, {"HIT", "CONFIRM"}, "ALFA")
    assert {name: int(cap) for name, cap in rails.caps.items()} == {"qty": 5, "px": 2}


def test_the_configuration_of_the_how_to_starts_it(
    turret: Turret, started: list[Line], tmp_path: Path
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "let-a-model-deal.md").read_text()
    configured = json.loads(page.split("```json\n")[1].split("```")[0])["mcpServers"]["turret"]
    assert (configured["type"], configured["command"]) == ("stdio", "turret")
    turret.key("alfa")
    (tmp_path / "alfa.toml").write_text(page.split("```toml\n")[1].split("```")[0])
    ran = turret.run(*(each.replace("/srv/desk", str(tmp_path)) for each in configured["args"]))
    assert (ran.code, ran.err) == (0, "")
    assert started[0].rails.code == "ALFA"


def test_without_options_there_are_no_rails(turret: Turret, started: list[Line]) -> None:
    assert turret.run("agent", "--key", turret.key("alfa")).code == 0
    assert started[0].rails == Rails()


@pytest.mark.requirement("agent.settings")
@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--cap", "qty"], "MEMBER=AMOUNT"),
        (["--cap", "qty=5M"], "number from 0"),
        (["--counterparty", "brav"], "counterparty"),
        (["--counterparty", ""], "names nothing"),
        (["--counterparty", "BRAV,,ECHO"], "names nothing"),
        (["--ask-before", "END"], "END"),
        (["--type", "rfq"], "capitals"),
        (["--code", "ALF"], "four capital letters"),
        (["--rules", "missing.toml"], "missing.toml"),
        (["--url", "ftp://x"], "URL"),
        (["--wire", "00"], "64 lowercase hex"),
        (["--key", "missing.key"], "missing.key"),
    ],
)
def test_what_can_not_be_read_stops_it_with_one_line(
    turret: Turret, started: list[Line], flags: list[str], says: str
) -> None:
    ran = turret.run("agent", "--key", turret.key("alfa"), *flags)
    assert (ran.code, ran.out, started) == (2, "", [])
    assert ran.err.startswith("turret: ")
    assert len(ran.err.splitlines()) == 1
    assert says in ran.err


def test_it_needs_a_key(turret: Turret, started: list[Line]) -> None:
    ran = turret.run("agent")
    assert (ran.code, started) == (2, [])
    assert "--key" in ran.err
