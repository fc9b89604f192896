"""`turret backup`: one line or JSON, the key only when asked for, a bar on a terminal."""

import sys
from pathlib import Path
from typing import Any

import pytest

from broker.store import sqlite_backup
from broker.wire.keys import SigningKey
from gateways.commands import backup
from gateways.wirekeys import rotate
from tests.gateways.commands.conftest import Turret
from tests.support.stores import dealt, spoiled


def put_key(directory: Path) -> str:
    key = SigningKey.generate()
    path = directory / "wire.key"
    path.touch(mode=0o600)
    path.write_text(f'{{"seed":"{key.seed}","since":1}}\n')
    return key.seed


@pytest.mark.requirement("cli.backup")
async def test_a_backup_says_what_it_made(turret: Turret, tmp_path: Path, autojump_clock: Any) -> None:
    await dealt(tmp_path / "data")
    ran = turret.run("backup", "--data", str(tmp_path / "data"), "one.backup")
    assert ran.code == 0
    assert ran.out.startswith("one.backup: ")
    assert "key is not in it" in ran.err
    found = turret.run("backup", "--data", str(tmp_path / "data"), "two.backup", "--json").json
    assert (found["file"], found["with_key"]) == ("two.backup", False)
    assert found["bytes"] == (tmp_path / "two.backup").stat().st_size
    assert sqlite_backup.contents(tmp_path / "two.backup").at == found["at"]
    assert turret.run("check", "--data", "two.backup").code == 0


@pytest.mark.requirement("cli.backup")
async def test_a_file_is_never_overwritten(turret: Turret, tmp_path: Path, autojump_clock: Any) -> None:
    await dealt(tmp_path / "data")
    (tmp_path / "one.backup").write_text("mine")
    ran = turret.run("backup", "--data", str(tmp_path / "data"), "one.backup")
    assert (ran.code, ran.err) == (2, "turret: file: one.backup: a backup replaces no file\n")
    assert (tmp_path / "one.backup").read_text() == "mine"


@pytest.mark.requirement("cli.backup-key")
async def test_the_wires_key_is_in_it_only_when_asked_for(
    turret: Turret, tmp_path: Path, autojump_clock: Any
) -> None:
    await dealt(tmp_path / "data")
    seed = put_key(tmp_path / "data").encode()
    assert turret.run("backup", "--data", str(tmp_path / "data"), "one.backup").code == 0
    assert seed not in (tmp_path / "one.backup").read_bytes()
    ran = turret.run("backup", "--data", str(tmp_path / "data"), "two.backup", "--with-key")
    assert (ran.code, ran.err) == (0, "")
    assert seed in (tmp_path / "two.backup").read_bytes()
    assert seed.decode() not in ran.out
    rotate(tmp_path / "data", 2)
    assert turret.run("backup", "--data", str(tmp_path / "data"), "three.backup", "--with-key").code == 0


@pytest.mark.requirement("cli.backup-key")
async def test_without_a_key_that_can_be_read_there_is_no_backup_with_it(
    turret: Turret, tmp_path: Path, autojump_clock: Any
) -> None:
    await dealt(tmp_path / "data")
    arguments = ("backup", "--data", str(tmp_path / "data"), "one.backup", "--with-key")
    assert turret.run(*arguments).code == 2
    put_key(tmp_path / "data")
    (tmp_path / "data" / "wire.key").chmod(0o644)
    assert "chmod 600" in turret.run(*arguments).err
    assert turret.files("*.backup*") == []


@pytest.mark.requirement("cli.backup")
async def test_where_there_is_no_store_one_line_says_so(
    turret: Turret, tmp_path: Path, autojump_clock: Any
) -> None:
    ran = turret.run("backup", "--data", str(tmp_path), "one.backup")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    await dealt(tmp_path / "data")
    path = spoiled(tmp_path / "data", "PRAGMA application_id = 7")
    ran = turret.run("backup", "--data", str(path.parent), "one.backup")
    assert (ran.code, ran.err) == (2, f"turret: store: {path} is not a Turret store\n")
    path.write_bytes((tmp_path / "data" / path.name).read_bytes()[:5000])
    ran = turret.run("backup", "--data", str(path.parent), "one.backup")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert turret.files("*.backup*") == []


@pytest.mark.requirement("cli.progress")
def test_the_bar_is_shown_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(quiet: bool) -> str:
        with backup.progress("backup", quiet) as told:
            told(1, 4)
            told(4, 4)
            told(9, 4)
        return capsys.readouterr().err

    assert shown(False) == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "backup" in (bar := shown(False))
    assert "100%" in bar
    assert shown(True) == ""
