"""serve and demo: imported when they run; without the server extra they say what to install."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from gateways.commands import serving
from tests.gateways.commands.conftest import Turret

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


WITHOUT_THE_SERVER = """
import sys
from importlib.abc import MetaPathFinder
from gateways.cli import main

class Missing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {libraries}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
main([{command!r}])
"""


def imported_by_the_server_alone() -> set[str]:
    """The top-level names that the server extra's packages are imported by."""
    extra = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]["server"]
    wanted = {re.match(r"[\w-]+", each)[0].lower() for each in extra}  # type: ignore[index]  # each has a name
    found = packages_distributions()
    return {name for name, owners in found.items() if wanted & {each.lower() for each in owners}}


@pytest.mark.requirement("cli.errors", "cli.base-install")
@pytest.mark.parametrize("command", ["serve", "demo"])
def test_without_the_server_the_line_says_what_to_install(command: str) -> None:
    script = WITHOUT_THE_SERVER.format(libraries=imported_by_the_server_alone(), command=command)
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "turret: not_installed: this needs the server: pip install 'turret[server]'\n"


@pytest.mark.requirement("cli.base-install")
def test_every_library_of_the_server_extra_is_known_by_the_name_it_is_imported_by() -> None:
    ours = {name for name in imported_by_the_server_alone() if not name.startswith("_")}
    assert ours <= serving.SERVER_LIBRARIES


def test_another_missing_module_is_a_fault() -> None:
    fault = serving.without_server(ModuleNotFoundError("No module named 'x'", name="x"))
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
