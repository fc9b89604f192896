"""The commands of docs/how-to/operate.md, run in their order beside a broker's operators' port."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from gateways.cli import cli
from gateways.configure import load
from gateways.operator.server import operator_app
from gateways.operator.token import OperatorToken, find_token
from tests.docs.pages import blocks, command_lines, servers
from tests.gateways.commands.conftest import Turret, turret
from tests.support.agents import make_agent
from tests.support.broker import Bench, open_bench
from tests.support.network import Served, serving
from tests.support.operators import TOKEN

PAGE = "operate.md"
__all__ = ["turret"]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with open_bench() as found:
        yield found


@pytest.fixture
async def port(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    """The operators' port, entered by the token that the page makes; a report of one agent about another waits."""
    monkeypatch.delenv("TURRET_OPERATOR_TOKEN", raising=False)
    ann, bob = await make_agent(bench, "ann"), await make_agent(bench, "bob")
    reported = await bench.call(
        "report_agent", ann, target_agent_id=bob.agent, category="spam", details="again"
    )
    assert reported["report_id"]
    async with serving(lambda *exchange: app(*exchange)) as served:
        monkeypatch.setenv("TURRET_OPERATOR_URL", served.url)
        app = operator_app(bench.broker, OperatorToken(TOKEN))
        yield served


@pytest.mark.requirement("operator.admin")
async def test_each_command_of_the_page_does_what_it_says(
    bench: Bench, turret: Turret, port: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, ids = [], dict[str, str]()
    for program, *rest in command_lines(PAGE):
        if program == "export":
            monkeypatch.setenv(*rest[0].split("=", 1))
            await trio.Path("operators.token").write_text(TOKEN)
        elif program == "turret" and rest[0] == "serve":
            takes_options("serve", rest)
            assert find_token(rest[rest.index("--operator-token-file") + 1], {}) is not None
        elif program == "turret":
            made = await turret(
                *(ids.get(each[:3], each) if each.endswith("…") else each for each in rest), "--json"
            )
            assert (made.code, made.err) == (0, ""), rest
            ids |= {each[:3]: each for each in re.findall(r"(?:ag|rp)_[0-9A-Z]{26}", made.out)}
            ran.append(rest[1])
        else:
            assert program == "ssh"
    assert ran == [
        *("--out", "register-agent", "list-agents", "list-agents", "review-queue"),
        *("suspend-agent", "list-suspended-agents", "unsuspend-agent"),
        *("list-reports", "resolve-report"),
        *("create-owner", "list-owners", "list-calls"),
    ]


def takes_options(command: str, arguments: list[str]) -> None:
    """Whether the command has these options."""
    found = cli.get_command(None, command)  # type: ignore[arg-type]  # it looks at the name alone
    assert found is not None
    options = {option for param in found.params for option in param.opts}
    assert {each for each in arguments if each.startswith("--")} <= options


def test_the_settings_of_the_page_are_taken(tmp_path: Path) -> None:
    (text,) = blocks(PAGE, "toml")
    (tmp_path / "turret.toml").write_text(text)
    serve = load(tmp_path / "turret.toml", {}).serve
    assert (serve.operator_bind, serve.operator_url) == ("10.0.0.5:8768", "https://ops.example:8768")


def test_the_client_of_the_page_asks_the_port_with_the_token_of_its_environment() -> None:
    (server,) = servers(PAGE)
    assert server["url"] == "http://127.0.0.1:8768/mcp"
    assert json.dumps(server["headers"]) == '{"Authorization": "Bearer ${TURRET_OPERATOR_TOKEN}"}'
