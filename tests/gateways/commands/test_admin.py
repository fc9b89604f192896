"""`turret admin`: the operators' tools as commands, on their port."""

from collections.abc import AsyncIterator

import pytest
import trio

from gateways.commands.admin import command_for, tools
from gateways.commands.params import option_name
from gateways.operator.server import operator_app
from gateways.operator.token import OperatorToken
from tests.gateways.client.live import Live
from tests.gateways.commands.conftest import Turret
from tests.support.broker import Bench, open_bench
from tests.support.network import refused_port, serving
from tests.support.operators import TOKEN

EMPTY = {"agents": [], "untrusted": True}


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with open_bench() as found:
        yield found


@pytest.fixture
def token(turret: Turret, monkeypatch: pytest.MonkeyPatch) -> str:
    """The token's file; nothing in the environment tells of it."""
    for name in ("URL", "TOKEN", "TOKEN_FILE"):
        monkeypatch.delenv(f"TURRET_OPERATOR_{name}", raising=False)
    file = turret.directory / "operators.token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o600)
    return str(file)


@pytest.fixture
async def url(bench: Bench, token: str) -> AsyncIterator[str]:
    """The operators' port of a live broker."""
    async with serving(operator_app(bench.broker, OperatorToken(TOKEN))) as served:
        yield served.url


@pytest.mark.requirement("operator.admin")
def test_every_tool_of_the_operators_is_a_command_and_its_params_are_options(turret: Turret) -> None:
    listed = turret.run("admin", "--help")
    assert listed.code == 0
    for name, tool in tools().items():
        command = name.replace("_", "-")
        assert f"  {command} " in listed.out
        assert tool.title in listed.out
        options = {option for param in command_for(tool).params for option in param.opts}
        assert {option_name(param) for param in tool.params} <= options
        shown = turret.run("admin", command, "--help")
        assert (shown.code, f"turret admin {command}" in shown.out) == (0, True)
    assert not any("token" in param and "file" not in param for param in options), "never as an argument"


@pytest.mark.requirement("operator.admin")
async def test_an_operator_acts_and_an_agent_feels_it(
    turret: Turret, bench: Bench, url: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURRET_OPERATOR_URL", url)
    monkeypatch.setenv("TURRET_OPERATOR_TOKEN_FILE", token)
    made = await turret("admin", "register-agent", "--name", "Ann", "--capabilities", "cocoa", "--json")
    assert (made.code, made.err) == (0, "")
    agent = made.json["agent_id"]
    assert made.json["credential"]
    listed = await turret("admin", "--json", "list-agents", "--limit", "5")
    assert [each["agent_id"] for each in listed.json["agents"]] == [agent]
    suspended = await turret("admin", "suspend-agent", "--agent-id", agent, "--reason", "spam")
    assert (suspended.code, "\n" in suspended.out.strip()) == (0, True)
    shown = await turret("--json", "admin", "list-suspended-agents")
    assert [(each["agent_id"], each["suspended"]["reason"]) for each in shown.json["agents"]] == [
        (agent, "spam")
    ]
    assert (await turret("admin", "unsuspend-agent", "--agent-id", agent)).code == 0
    refused = await turret("admin", "suspend-agent", "--agent-id", "ag_" + "0" * 26, "--reason", "x")
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert refused.err.startswith("turret: not_found: ")


@pytest.mark.requirement("operator.admin")
async def test_where_the_port_and_its_token_are_is_said_in_one_of_four_places(
    turret: Turret, url: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = ("list-agents", "--json")
    before = await turret("admin", "--operator-url", url, "--operator-token-file", token, *ask)
    after = await turret("admin", *ask, "--operator-url", url, "--operator-token-file", token)
    assert before.json == after.json == EMPTY
    config = turret.directory / "turret.toml"
    config.write_text(f'[serve]\noperator_url = "{url}"\noperator_token_file = "{token}"\n')
    assert (await turret("admin", "--config", str(config), *ask)).json == EMPTY
    bind = url.removeprefix("http://")
    config.write_text(f'[serve]\noperator_bind = "{bind}"\noperator_token_file = "gone"\n')
    monkeypatch.setenv("TURRET_OPERATOR_TOKEN", TOKEN)
    monkeypatch.setenv("TURRET_CONFIG", str(config))
    assert (await turret("admin", *ask)).json == EMPTY


@pytest.mark.requirement("operator.admin")
async def test_what_stands_in_the_way_is_one_line(
    turret: Turret, url: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = ("--operator-url", url)
    config, wrong = turret.directory / "turret.toml", turret.directory / "wrong"
    config.write_text('[serve]\noperator_bind = "10.0.0.1:1"\nbehind_proxy = ["10.0.0.2"]\n')
    wrong.write_text("x" * 40)
    wrong.chmod(0o600)
    nobody = f"http://127.0.0.1:{refused_port()}"
    cases = [
        (here, 1, "unauthenticated: this needs the operators' token"),
        (
            (*here, "--operator-token-file", str(wrong)),
            1,
            "unauthenticated: that is not the operators' token",
        ),
        (
            ("--operator-url", nobody, "--operator-token-file", token),
            3,
            f"no operators' port answers at {nobody}",
        ),
        (("--operator-url", "http://ops.example"), 2, "no_tls: "),
        ((*here, "--operator-token-file", "gone"), 2, "gone: No such file"),
        (("--config", str(config)), 2, "give --operator-url"),
        (("--config", "gone.toml"), 2, "config: gone.toml: No such file"),
    ]
    for arguments, code, words in cases:
        ran = await turret("admin", "list-agents", *arguments)
        assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1), arguments
        assert words in ran.err
        assert TOKEN not in ran.err
    await trio.Path(token).chmod(0o604)
    open_to_all = await turret("admin", "list-agents", *here, "--operator-token-file", token)
    assert (open_to_all.code, "chmod o-rwx" in open_to_all.err) == (2, True)
    unknown = await turret("admin", "send-call")
    assert (unknown.code, "No such command" in unknown.err) == (2, True)


@pytest.mark.requirement("operator.admin")
async def test_the_public_port_is_said_to_be_no_operators_port(
    turret: Turret, live: Live, token: str
) -> None:
    ran = await turret("admin", "--operator-url", live.http, "--operator-token-file", token, "list-agents")
    assert (
        ran.code,
        ran.err.startswith(f"turret: unauthenticated: {live.http} is not an operators' port"),
    ) == (1, True)
