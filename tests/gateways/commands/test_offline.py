"""keygen, verify, canonicalize: without any broker."""

import io
import json
import sys
from pathlib import Path

import pytest

from gateways.keyfile import load_key
from tests.gateways.client.test_transcript import DEAL, VALID, WIRE
from tests.gateways.client.test_verify import write
from tests.gateways.commands.conftest import Turret


@pytest.mark.requirement("cli.keyfile")
def test_keygen_writes_a_key_and_prints_its_pk(turret: Turret) -> None:
    ran = turret.run("keygen", "--out", "alfa.key")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.strip() == load_key(Path("alfa.key")).pk
    again = turret.run("keygen", "--out", "alfa.key")
    assert (again.code, again.out) == (2, "")
    assert again.err == "turret: key_file: alfa.key exists: a key file is never overwritten\n"


@pytest.mark.requirement("cli.json")
def test_keygen_as_json(turret: Turret) -> None:
    made = turret.run("--json", "keygen").json
    assert made == {"pk": load_key(Path("turret.key")).pk, "file": "turret.key"}


@pytest.mark.requirement("cli.verify")
def test_verify_says_that_a_whole_file_holds(turret: Turret, tmp_path: Path) -> None:
    path = str(write(tmp_path / "deal.jsonl", DEAL))
    ran = turret.run("verify", path)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("holds: 8 envelopes")
    assert turret.run("verify", path, "--json").json["ok"] is True


@pytest.mark.requirement("cli.verify", "cli.errors")
def test_verify_exits_1_and_names_the_first_broken_step(turret: Turret, tmp_path: Path) -> None:
    path = write(tmp_path / "deal.jsonl", DEAL)
    path.write_text(path.read_text().replace("5000000", "5000001"))
    ran = turret.run("verify", str(path))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"turret: bad_signature: {path} breaks at n = 2 (line 3): ")
    assert ran.err.count("\n") == 1
    as_json = turret.run("--json", "verify", str(path))
    assert as_json.code == 1
    assert as_json.json["broken"]["n"] == 2


def test_verify_takes_the_wires_key(turret: Turret, tmp_path: Path) -> None:
    rows = [dict(row) for row in VALID["ended_by_the_wire"]["rows"]]
    path = str(write(tmp_path / "ended.jsonl", rows))
    assert turret.run("verify", path, "--wire", WIRE).code == 0
    assert turret.run("--wire", WIRE, "verify", path).code == 0
    assert turret.run("verify", path, "--wire", "short").code == 2
    missing = turret.run("verify", "none.jsonl")
    assert (missing.code, missing.err) == (2, "turret: file: none.jsonl: No such file or directory\n")


def test_canonicalize_prints_the_bytes_to_sign(
    turret: Turret, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(DEAL[3]["envelope"], indent=3))
    assert turret.run("canonicalize", "a.json").out == DEAL[3]["canonical"] + "\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"b": 1.0, "a": 1e2}')))
    ran = turret.run("canonicalize", "--json")
    assert ran.json["canonical"] == '{"a":100,"b":1}'
    assert len(ran.json["sha256"]) == 64


@pytest.mark.requirement("cli.errors")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("no", "turret: bad_request: "),
        ('{"a":1,"a":2}', "turret: bad_envelope: "),
        ('{"prev_sig":"x"}', "turret: bad_envelope: "),
    ],
)
def test_canonicalize_refuses_what_the_wire_refuses(
    turret: Turret, tmp_path: Path, text: str, line: str
) -> None:
    (tmp_path / "a.json").write_text(text)
    ran = turret.run("canonicalize", "a.json")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(line)
