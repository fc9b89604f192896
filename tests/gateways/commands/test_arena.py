"""`turret arena verify`: what a session left, checked in a file or a pipe, without a broker."""

import hashlib
import io
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from broker.core.arena import artifact_of
from broker.core.games import hilo, rfq
from broker.wire.canonical import encode
from tests.gateways.commands.conftest import Turret
from tests.support.games import AGENT, played


@pytest.fixture
def session(turret: Turret) -> Path:
    """The artifact of a session, in a file."""
    file = turret.directory / "session.json"
    file.write_bytes(artifact_of(played(rfq)))
    return file


@pytest.mark.requirement("games.verify")
def test_a_session_that_holds_is_told_in_three_lines(turret: Turret, session: Path) -> None:
    ref = hashlib.sha256(session.read_bytes()).hexdigest()
    ran = turret.run("arena", "verify", str(session), "--ref", ref)
    assert (ran.code, ran.err) == (0, "")
    first, over, last = ran.out.splitlines()
    assert first == f"rfq 1, of {AGENT} (simulation): 51 events hold"
    assert over.startswith("over: tape_over; net ")
    assert last == f"ref: {ref}"


@pytest.mark.requirement("games.verify")
def test_a_session_that_does_not_hold_exits_1_and_names_the_event(turret: Turret, session: Path) -> None:
    value = msgspec.json.decode(session.read_bytes())
    value["events"][4]["balance"] += 1
    session.write_bytes(encode(value))
    ran = turret.run("arena", "verify", str(session))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"turret: points: {session} does not hold at event 4: ")
    assert ran.err.endswith("; 4 events hold before it\n")
    ran = turret.run("arena", "verify", "session.json", "--json")
    assert (ran.code, ran.json["ok"], ran.json["events"]) == (1, False, 4)
    assert ran.json["fault"].keys() == {"what", "message", "event"}
    assert ran.err.startswith("turret: points: ")


@pytest.mark.requirement("games.verify")
def test_what_can_not_be_checked_is_said(turret: Turret) -> None:
    (turret.directory / "kept.json").write_bytes(artifact_of(played(hilo, reveal="never", actions=2)))
    ran = turret.run("arena", "verify", "kept.json")
    assert ran.code == 0
    assert ran.out.splitlines()[-1].startswith("not to be checked: the commit, the deal")


@pytest.mark.requirement("games.verify")
def test_it_reads_a_pipe(turret: Turret, session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(session.read_bytes())))
    ran = turret.run("--json", "arena", "verify", "-")
    assert (ran.code, ran.json["ok"], ran.json["game"]) == (0, True, "rfq")


def test_what_is_no_artifact_or_another_one_is_one_line(turret: Turret, session: Path) -> None:
    ran = turret.run("arena", "verify", str(session), "--ref", "ab")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert ran.err.startswith(f"turret: ref: {session} does not hold: ")
    session.write_text("junk")
    ran = turret.run("arena", "verify", str(session))
    assert (ran.code, ran.err) == (1, f"turret: form: {session} does not hold: this is not JSON\n")
    ran = turret.run("arena", "verify", "missing.json")
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_a_game_of_ones_own_is_named_by_its_module(
    turret: Turret, monkeypatch: pytest.MonkeyPatch, session: Path
) -> None:
    monkeypatch.syspath_prepend(str(turret.directory))
    (turret.directory / "hilo2.py").write_text("from broker.core.games.hilo import *\nVERSION = 2\n")
    import_ = turret.run(
        "arena", "verify", str(session), "--game", "hilo2", "--game", "broker.core.games.hilo"
    )
    assert import_.code == 0
    ran = turret.run("arena", "verify", str(session), "--game", "nonesuch")
    assert (ran.code, ran.err.split(" (")[0]) == (2, "turret: game: there is no module nonesuch")


def test_who_takes_the_wrong_command_or_none_is_told_the_right_one(turret: Turret, session: Path) -> None:
    ran = turret.run("verify", str(session))
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert ran.err.endswith("a session of the arena is checked by `turret arena verify`\n")
    trial = session.with_name("trial.json")
    trial.write_bytes(b'{"format":1,"kind":"turret.trial"}')
    assert turret.run("arena", "verify", str(trial)).err.endswith(" (turret grade checks a trial)\n")
    session.write_bytes(session.read_bytes().replace(b'"game_version":1', b'"game_version":7', 1))
    ran = turret.run("arena", "verify", str(session))
    assert ran.err.startswith("turret: game: ")
    assert "(--game MODULE names one)" in ran.err
    for group in ("arena", "plan", "admin", "audit"):
        ran = turret.run(group)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == f"turret: usage: Missing command (see `turret {group} --help`)\n"
