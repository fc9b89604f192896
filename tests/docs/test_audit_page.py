"""The commands of docs/how-to/audit.md: what runs on files is run, what asks a broker is what its tools take."""

from pathlib import Path
from typing import Any

import pytest

from broker.tools.registry import collect
from gateways import cli
from gateways.headfile import FILE
from tests.docs.pages import HOW_TO, command_lines
from tests.support.audited import served
from tests.support.audits import DAMAGES, WIRE

PAGE = "audit.md"


def here(argument: str, directory: Path) -> str:
    """The page's paths and its wire's key, here."""
    for place in ("/var/lib/", "/backup/", "/etc/secrets/"):
        if argument.startswith(place):
            return str(directory / argument.removeprefix(place))
    return WIRE.pk if len(argument) == 64 else argument


@pytest.mark.requirement("audit.export", "audit.restored")
async def test_each_command_of_the_page_does_what_it_says(
    tmp_path: Path, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await served(tmp_path / "turret")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "turret-wire.key").write_bytes((tmp_path / "turret" / "wire.key").read_bytes())
    (tmp_path / "turret-wire.key").chmod(0o600)
    assert cli.run(["backup", "--data", "turret", "turret.backup"]) == 0
    ran = []
    for program, name, *rest in command_lines(PAGE):
        assert program == "turret"
        if name == "admin":
            tool = collect("operator")[rest[0].replace("-", "_")]
            assert {each.removeprefix("--") for each in rest[1::2]} <= tool.params.keys()
        else:
            assert cli.run([name, *(here(each, tmp_path) for each in rest)]) == 0
            ran.append(name)
    assert ran == ["audit", "audit", "restore"]
    assert (tmp_path / "turret-new" / FILE).exists()


def test_the_page_explains_what_a_verdict_says() -> None:
    text = (HOW_TO / PAGE).read_text()
    said = {words for _, _, words in DAMAGES.values()}
    for words in ("was changed", "has no seal", "are gone", "is missing", "says that it is row"):
        assert words in text
        assert any(words in each for each in said)
