"""The commands of docs/how-to/back-up-and-restore.md, run in their order on other paths."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateways import cli
from gateways.commands.check import Found
from tests.docs.pages import HOW_TO, command_lines
from tests.gateways.commands.test_backup import put_key
from tests.support.stores import dealt

PAGE = "back-up-and-restore.md"
PLACES = {"/var/lib/": "", "/backup/": "", "/etc/secrets/": "secrets-"}


def here(argument: str, directory: Path) -> str:
    for place, prefix in PLACES.items():
        if argument.startswith(place):
            return str(directory / (prefix + argument.removeprefix(place)))
    return argument


@pytest.mark.requirement("cli.backup", "cli.check", "cli.restore")
async def test_each_command_of_the_page_does_what_it_says(tmp_path: Path, autojump_clock: Any) -> None:
    await dealt(tmp_path / "turret")
    put_key(tmp_path / "turret")
    ran = []
    for program, *rest in command_lines(PAGE):
        arguments = [here(each, tmp_path) for each in rest]
        if program == "cp":
            assert arguments.pop(0) == "-p"
            shutil.copy2(*arguments)
        elif arguments[0] == "serve":
            assert (tmp_path / "turret-new" / "turret.db").exists()
        else:
            assert cli.run(arguments) == 0
            ran.append(arguments[0])
    assert ran == ["backup", "check", "check", "restore"]


def test_the_page_names_each_member_of_the_json() -> None:
    text = " ".join((HOW_TO / PAGE).read_text().split())
    members = ", ".join(name for name in Found.__struct_fields__ if name != "faults")
    assert f"`check` {{{members}, faults: [{{where, name, n, message}}]}}" in text
    assert msgspec.json.encode(Found(True, "", 0, 0, 0, 0.0, 0, [])).startswith(b'{"ok":true')
