"""`turret check`: what it prints, how it exits."""

import json
from pathlib import Path
from typing import Any

import pytest

from broker.store import sqlite_file
from broker.store.port import Fault
from gateways.commands import check
from tests.broker.actors.test_check import DOCUMENT, ROW
from tests.gateways.commands.conftest import Turret
from tests.support.stores import dealt, spoiled


@pytest.mark.requirement("cli.check")
async def test_a_store_that_holds_exits_0(turret: Turret, tmp_path: Path, autojump_clock: Any) -> None:
    await dealt(tmp_path / "data")
    ran = turret.run("check", "--data", str(tmp_path / "data"))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("holds: 11 conversations, 29 envelopes, 58 events in ")
    found = turret.run("check", "--data", str(tmp_path / "data" / sqlite_file.FILE), "--json").json
    assert (found["ok"], found["faults"], found["count"]) == (True, [], 0)
    assert (found["conversations"], found["envelopes"], found["events"]) == (11, 29, 58)


@pytest.mark.requirement("cli.check")
async def test_each_fault_is_a_line_and_the_exit_code_is_1(
    turret: Turret, tmp_path: Path, autojump_clock: Any
) -> None:
    convs = await dealt(tmp_path / "data")
    path = spoiled(tmp_path / "data", ROW, values=("1.0842", "1.0843", f"conv:{convs['open']}"))
    spoil = spoiled(path.parent, DOCUMENT, values=('"done"', '"gone"', convs["ended"]))
    ran = turret.run("check", "--data", str(spoil.parent))
    assert (ran.code, ran.err) == (1, "")
    first, second, last = ran.out.splitlines()
    assert first.startswith(f"conversation {convs['open']}, 2: bad_signature: ")
    assert second.startswith(f"document {convs['ended']}: end is ")
    assert last.startswith("2 faults: 11 conversations")
    found = turret.run("--json", "check", "--data", str(spoil.parent))
    assert (found.code, found.json["ok"], found.json["count"]) == (1, False, 2)
    assert [fault["where"] for fault in found.json["faults"]] == ["conversation", "document"]


@pytest.mark.requirement("cli.check")
async def test_a_fault_of_the_schema_counts(turret: Turret, tmp_path: Path, autojump_clock: Any) -> None:
    await dealt(tmp_path / "data")
    path = spoiled(tmp_path / "data", "PRAGMA user_version = 2")
    ran = turret.run("check", "--data", str(path))
    assert ran.code == 1
    assert ran.out.startswith("schema version: schema 2 is older")


@pytest.mark.requirement("cli.check")
async def test_what_is_no_store_exits_2(turret: Turret, tmp_path: Path, autojump_clock: Any) -> None:
    assert turret.run("check", "--data", str(tmp_path)).code == 2
    assert turret.run("check", "--data", str(tmp_path / "nothing")).code == 2
    await dealt(tmp_path / "data")
    ran = turret.run("check", "--data", str(spoiled(tmp_path / "data", "PRAGMA application_id = 7")))
    assert ran.code == 2
    assert ran.err.startswith("turret: store: ")


@pytest.mark.requirement("cli.check")
async def test_of_very_many_faults_the_first_are_listed_and_all_are_counted(
    turret: Turret, tmp_path: Path, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "SHOWN", 3)
    await dealt(tmp_path / "data")
    path = spoiled(tmp_path / "data", "UPDATE document SET data = x'00' WHERE kind = 'conv'")
    ran = turret.run("check", "--data", str(path))
    *lines, more, last = ran.out.splitlines()
    assert (len(lines), more, last.split(":")[0]) == (3, "… and 8 more", "11 faults")
    assert json.loads(turret.run("check", "--data", str(path), "--json").out)["count"] == 11


def test_a_fault_cannot_steer_the_terminal() -> None:
    found = check.Found(False, "f", 0, 0, 0, 0.0, 1, [Fault("log", "\x1b[2J", "a\nb")])
    assert "\x1b" not in check.report(found)
    assert len(check.report(found).splitlines()) == 2
