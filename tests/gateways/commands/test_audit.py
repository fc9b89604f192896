"""`turret audit`: all rows in a file, and the verdict on it with nothing but the wire's key."""

import json
from pathlib import Path
from typing import Any

import pytest

from broker.wire.auditlog import SHOWN
from broker.wire.keys import SigningKey
from gateways.commands.audit import FORM, verify_lines
from gateways.commands.common import Failure
from gateways.headfile import FILE
from tests.gateways.commands.conftest import Turret
from tests.support.audited import put_on_disk, serve, served
from tests.support.audits import AT, DAMAGES, WIRE, Kept, made


def lines_of(kept: Kept) -> list[bytes]:
    """The lines that an export of this log has."""
    first: dict[str, Any] = {"turret_audit": FORM, "exported_at": AT, "wires": [WIRE.pk], "apart": True}
    if kept.head is not None:
        first["head"] = kept.head.decode()
    if kept.beside is not None:
        first["beside"] = kept.beside.decode()
    rows = [b'{"n":%d,"row":%s}' % (n, text) for n, text in sorted(kept.rows.items())]
    return [json.dumps(first).encode(), *rows]


@pytest.mark.requirement("audit.export")
@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_is_found_in_an_export(name: str) -> None:
    kept = made()
    assert verify_lines(lines_of(kept), (WIRE.pk,)).ok
    damage, first, words = DAMAGES[name]
    damage(kept)
    verdict = verify_lines(lines_of(kept), (WIRE.pk,))
    assert verdict.first == first
    assert any(words in fault.message for fault in verdict.faults)
    assert not any("another key" in remark for remark in verdict.remarks)


@pytest.mark.requirement("audit.export")
def test_a_file_that_was_changed_afterwards_is_found() -> None:
    lines = lines_of(made())
    assert verify_lines(lines[:-2], (WIRE.pk,)).first == 5
    assert verify_lines([*lines[:3], *lines[4:]], (WIRE.pk,)).first == 3
    assert verify_lines([*lines[:3], b"junk", *lines[4:]], (WIRE.pk,)).first == 3
    assert (
        verify_lines([*lines[:3], lines[3].replace(b"reason 3", b"reason X"), *lines[4:]], (WIRE.pk,)).first
        == 3
    )
    assert verify_lines([*lines, b"\n"], (WIRE.pk,)).ok
    assert verify_lines(lines, (SigningKey.generate().pk,)).first == 1
    assert verify_lines(lines, (SigningKey.generate().pk, WIRE.pk)).ok


@pytest.mark.parametrize("lines", [[], [b"junk"], [b"{}"], [b"\xff"], [b'{"turret_audit":2}']])
def test_what_is_no_export_is_said_so(lines: list[bytes]) -> None:
    with pytest.raises(Failure, match=r"export|first line"):
        verify_lines(lines, (WIRE.pk,))


def test_another_form_is_said_so() -> None:
    first = lines_of(made())[0].replace(b'"turret_audit": 1', b'"turret_audit": 2')
    with pytest.raises(Failure, match="form 2"):
        verify_lines([first], (WIRE.pk,))


@pytest.mark.requirement("audit.export")
async def test_a_directory_is_exported_and_the_file_verified_apart(
    turret: Turret, tmp_path: Path, autojump_clock: Any
) -> None:
    await served(tmp_path / "data")
    ran = turret.run("audit", "export", "--data", str(tmp_path / "data"), "one.jsonl")
    assert (ran.code, ran.out, ran.err) == (0, "one.jsonl: 6 rows\n", "")
    assert (tmp_path / "one.jsonl").stat().st_mode & 0o777 == 0o600
    rows = [json.loads(line) for line in (tmp_path / "one.jsonl").read_text().splitlines()]
    assert [row["n"] for row in rows[1:]] == [1, 2, 3, 4, 5, 6]
    assert rows[1]["row"]["kind"] == "suspend_agent"
    assert rows[0]["wires"] == [WIRE.pk]
    assert WIRE.seed not in (tmp_path / "one.jsonl").read_text()
    ran = turret.run("audit", "verify", "one.jsonl", "--wire", WIRE.pk)
    assert (ran.code, ran.out) == (0, f"holds: 6 rows, sealed by {WIRE.pk} up to row 6\n")
    assert turret.run("audit", "verify", "one.jsonl", "--wire", WIRE.pk, "--json").json["ok"] is True
    assert turret.run("audit", "export", "--data", str(tmp_path / "data"), "one.jsonl").code == 2
    other = turret.run("audit", "verify", "one.jsonl", "--wire", "0" * 64)
    assert (other.code, other.out.splitlines()[-1]) == (1, "8 faults, the first at row 1: 6 rows")
    assert "of a wire with another key than was given" in other.out.splitlines()[-2]
    assert other.out.splitlines()[-2].endswith(WIRE.pk)
    short = turret.run("audit", "verify", "one.jsonl", "--wire", WIRE.pk[:8])
    assert (short.code, "64 lowercase hex" in short.err) == (2, True)
    printed = turret.run("audit", "export", "--data", str(tmp_path / "data"))
    assert printed.out.splitlines()[1:] == (tmp_path / "one.jsonl").read_text().splitlines()[1:]


@pytest.mark.requirement("audit.export")
async def test_a_log_with_damages_is_exported_all_the_same_and_said_to_have_them(
    turret: Turret, tmp_path: Path, autojump_clock: Any
) -> None:
    kept = await served(tmp_path / "data")
    DAMAGES["the text of a row was changed"][0](kept)
    kept.rows[5] = b"no\nrow"
    put_on_disk(kept, tmp_path / "data")
    ran = turret.run("audit", "export", "--data", str(tmp_path / "data"), "one.jsonl")
    assert (ran.code, ran.err.splitlines()[-1]) == (
        1,
        f"turret: 2 faults, the first at row 3: 6 rows, sealed by {WIRE.pk} up to row 6",
    )
    ran = turret.run("audit", "verify", "one.jsonl", "--wire", WIRE.pk)
    assert [line.split(" ")[1] for line in ran.out.splitlines()[:2]] == ["3", "5"]


@pytest.mark.requirement("audit.check")
async def test_a_check_of_a_directory_looks_at_the_audit_log_by_the_directorys_own_key(
    turret: Turret, tmp_path: Path, autojump_clock: Any
) -> None:
    await served(tmp_path / "data")
    ran = turret.run("check", "--data", str(tmp_path / "data"))
    assert (ran.code, "6 rows of the audit log" in ran.out) == (0, True)
    assert turret.run("check", "--data", str(tmp_path / "data"), "--json").json["audited"] == 6
    (tmp_path / "data" / FILE).unlink()
    ran = turret.run("check", "--data", str(tmp_path / "data"))
    assert (ran.code, ran.out.splitlines()[0]) == (1, "audit: the head beside the store is missing")


@pytest.mark.requirement("audit.restored")
async def test_a_restore_is_told_in_the_log_with_the_head_that_was_lost(
    turret: Turret, tmp_path: Path, autojump_clock: Any
) -> None:
    await served(tmp_path / "data")
    assert turret.run("backup", "--data", str(tmp_path / "data"), "one.backup", "--with-key").code == 0
    await serve(tmp_path / "data", 2, "Later")
    head = str(tmp_path / "data" / FILE)
    for name, given, known in (
        ("plain", (), ""),
        ("lost", ("--audit-head", head), "; 8 rows were known before"),
    ):
        assert turret.run("restore", "one.backup", "--data", name, *given).code == 0
        assert turret.run("check", "--data", name).code == 0
        await serve(tmp_path / name, 1, "After")
        assert turret.run("check", "--data", name).code == 0
        assert turret.run("audit", "export", "--data", name, f"{name}.jsonl").code == 0
        ran = turret.run("audit", "verify", f"{name}.jsonl", "--wire", WIRE.pk)
        assert ran.out.splitlines()[0] == f"row 7: the store was made of a backup{known}"
        assert ran.code == 0
    (tmp_path / "other.head").write_text("{}")
    ran = turret.run("restore", "one.backup", "--data", "other", "--audit-head", "other.head")
    assert (ran.code, "no head of this wire" in ran.err) == (2, True)
    assert not (tmp_path / "other").exists()


def test_more_faults_than_are_listed_are_counted() -> None:
    kept = made(30)
    kept.rows = dict.fromkeys(kept.rows, b"{}")
    verdict = verify_lines(lines_of(kept), (WIRE.pk,))
    assert len(verdict.faults) == SHOWN < verdict.count
