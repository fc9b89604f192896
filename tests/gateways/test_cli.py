"""The command line as a whole: help, the base install, no tracebacks."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from gateways import cli
from gateways.commands.common import INTERRUPTED

PROGRAM = "import sys; from gateways import cli; code = cli.run(sys.argv[1:]); "
SERVER = {"quart", "quart_trio", "hypercorn", "prometheus_client", "sqlite3"}
LOADED = f"print(*sorted({SERVER} & set(sys.modules)), code, file=sys.stderr)"


@pytest.mark.requirement("cli.base-install")
@pytest.mark.parametrize(
    "arguments",
    [
        ["keygen", "--out", "a.key"],
        ["verify", "none"],
        ["dial", "--help"],
        ["tail", "--help"],
        ["canonicalize", "--help"],
        ["grade", "none"],
        ["admin", "--help"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_dealers_commands_load_no_server(arguments: list[str], tmp_path: object) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM + LOADED, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=str(tmp_path),
    )
    assert ran.stderr.splitlines()[-1] in ("0", "2")


@pytest.mark.parametrize("name", list(cli._COMMANDS))
def test_every_command_explains_itself_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Example:" in shown
    assert f"turret {name}" in shown


def test_help_lists_the_commands_and_the_tools_that_are_no_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.run(["--help"]) == 0
    shown = capsys.readouterr().out
    for name in cli._COMMANDS:
        assert f"\n  {name} " in shown
    assert "presence," not in shown, "it stands among the commands"
    assert shown.index("Tools of the wire") < shown.index("send-env,") < shown.index("Tools of the network")
    assert shown.index("\n  messages ") < shown.index(" get-inbox,") < shown.index("\n  reports ")
    assert len(shown.splitlines()) < 100, "what nobody reads is no list"
    assert cli.run(["--version"]) == 0


@pytest.mark.requirement("cli.errors")
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "turret: usage: "),
        (["--nothing"], "turret: usage: No such option"),
        (["verify"], "turret: usage: Missing argument 'FILE' (see `turret verify --help`)"),
        (["get_inbx"], "turret: usage: No such command 'get_inbx'; did you mean get-inbox"),
        (["zzzz"], "turret: usage: No such command 'zzzz' (see `turret --help`)"),
        (
            ["suspend-agent"],
            "turret: usage: No such command 'suspend-agent'; it is an operators' one: turret admin",
        ),
        (["admin", "list-agnts"], "turret: usage: No such command 'list-agnts'; did you mean list-agents"),
        (["dial", "BRAV", "--from", "ALFA", "--say", "rfq"], "turret: usage: a line is TYPE {json}"),
        (["open-desk", "ALFA", "--key", "none.key"], "turret: key_file: none.key: No such file"),
        (["open-desk", "ALFA"], "turret: usage: this needs a key"),
        (["resolve", "ALFA", "--url", "ftp://x"], "turret: usage: 'ftp://x' is not a ws"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURRET_KEY", raising=False)
    assert cli.run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(line)
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_the_console_script_exits_with_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["turret", "verify", "none"])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("fault", "code"),
    [(KeyboardInterrupt(), INTERRUPTED), (BrokenPipeError(), 0)],
    ids=["Ctrl-C", "closed pipe"],
)
def test_leaving_early_is_no_traceback(
    fault: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(*_: object) -> None:
        raise fault

    monkeypatch.setattr("gateways.commands.offline.verify_file", leave)
    assert cli.run(["verify", "x"]) == code


def test_a_fault_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise KeyError("oh")

    monkeypatch.setattr("gateways.commands.offline.verify_file", crash)
    with pytest.raises(KeyError):
        cli.run(["verify", "x"])


def test_it_is_a_click_group_for_those_who_embed_it() -> None:
    ran = CliRunner().invoke(cli.cli, ["keygen", "--help"])
    assert ran.exit_code == 0
