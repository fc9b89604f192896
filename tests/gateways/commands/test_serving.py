"""serve and demo: imported when they run; without the server extra they say what to install."""

import builtins
from typing import Any

import pytest

from gateways.commands import serving
from tests.gateways.commands.conftest import Turret


@pytest.fixture
def base_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the server's libraries were not there."""
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "gateways.serve" or name.partition(".")[0] in serving.SERVER_LIBRARIES:
            raise ModuleNotFoundError(f"No module named '{name}'", name="hypercorn")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)


@pytest.mark.requirement("cli.errors", "cli.base-install")
@pytest.mark.parametrize("command", ["serve", "demo"])
def test_without_the_server_the_line_says_what_to_install(
    turret: Turret, base_install: None, command: str
) -> None:
    ran = turret.run(command)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "turret: not_installed: this needs the server: pip install 'turret[server]'\n"


def test_another_missing_module_is_a_fault() -> None:
    fault = serving._without_server(ModuleNotFoundError("No module named 'x'", name="x"))
    assert isinstance(fault, ModuleNotFoundError)


def test_serve_hands_over_its_options_and_gives_the_exit_code(
    turret: Turret, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def run_serve(config: Any, flags: dict[str, Any], *, as_json: bool) -> int:
        seen.append((config, flags, as_json))
        return 4

    monkeypatch.setattr("gateways.serve.run_serve", run_serve)
    options = (
        "--data",
        "d",
        "--bind",
        "127.0.0.1:0",
        "--behind-proxy",
        "10.0.0.1",
        "--behind-proxy",
        "10.0.0.2",
    )
    assert turret.run("--json", "serve", *options, "--transcripts", "parties").code == 4
    ((config, flags, as_json),) = seen
    assert (config, as_json) == (None, True)
    assert flags == {
        "data": "d",
        "bind": "127.0.0.1:0",
        "dealing_bind": None,
        "tls_cert": None,
        "tls_key": None,
        "behind_proxy": ("10.0.0.1", "10.0.0.2"),
        "public_url": None,
        "dealing_url": None,
        "operator_bind": None,
        "operator_token_file": None,
        "operator_url": None,
        "transcripts": "parties",
        "unsafe_limits": None,
    }


def test_demo_hands_over_its_options(turret: Turret, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "gateways.demo.show.run_demo", lambda keep, seed: 0 if (str(keep), seed) == ("k", 9) else 1
    )
    assert turret.run("demo", "--keep", "k", "--seed", "9").code == 0
