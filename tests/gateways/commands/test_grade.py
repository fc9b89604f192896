"""`turret grade`: a trial run again from its artifact, of a broker or of a file."""

import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from broker.core.artifact import ref_of
from broker.core.tapes.csvfile import read_csv
from broker.core.tapes.tape import Tape
from broker.core.trials.review import Graded, read_trial, review
from broker.core.trials.script import Artifact, Entry
from gateways.web import web_app
from tests.gateways.commands.conftest import Turret
from tests.support import artifacts
from tests.support.agents import make_agent
from tests.support.broker import Bench
from tests.support.network import serving
from tests.support.trials import changed, market, publish, trial

TAPE, ENTRY = market(ticks=300)
CONTENT = trial(TAPE, ENTRY)
CSV = "time,bid,ask\n" + "".join(
    f"2026-01-01T00:{n // 60:02}:{n % 60:02}Z,{0.9 + n % 7 / 1000:.3f},{0.902 + n % 7 / 1000:.3f}\n"
    for n in range(300)
)


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    """A file with the artifact of a trial on a tape that is made by rule."""
    path = tmp_path / "trial.json"
    path.write_bytes(CONTENT)
    return path


@pytest.mark.requirement("trial.grade-command")
def test_a_file_is_graded_offline_for_people_and_for_programs(turret: Turret, artifact: Path) -> None:
    read = read_trial(CONTENT)
    assert isinstance(read, Artifact)
    found = review(CONTENT, read, TAPE)
    assert isinstance(found, Graded)
    ran = turret.run("grade", str(artifact), "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["ref"] == ref_of(CONTENT)
    for name in ("grades", "aside", "naive"):
        assert ran.json[name] == msgspec.json.decode(msgspec.json.encode(getattr(found, name)))
    ran = turret.run("grade", str(artifact))
    assert ran.code == 0
    assert (
        "EURCHF (mean-revert, seed 5): 300 of 300 ticks, run again: it holds\ndone: the tape’s end\n"
        in ran.out
    )
    row = next(line for line in ran.out.splitlines() if line.startswith("Turnover"))
    assert row.split() == ["Turnover", f"{found.grades.turnover:,}", f"{found.naive.turnover:,}", "0"]
    assert len({len(line) for line in ran.out.splitlines()[4:]}) == 1


@pytest.mark.requirement("trial.grade-command", "trial.picture")
def test_it_is_drawn_as_a_picture_or_as_a_page(turret: Turret, artifact: Path) -> None:
    ran = turret.run("grade", str(artifact), "--plot", "trial.svg")
    assert (ran.code, ran.err) == (0, "drawn: trial.svg\n")
    assert ET.fromstring(Path("trial.svg").read_text()).tag.endswith("svg")
    assert turret.run("grade", str(artifact), "--plot", "trial.HTML").code == 0
    page = Path("trial.HTML").read_text()
    assert page.startswith("<!doctype html>")
    assert ref_of(CONTENT) in page
    ran = turret.run("grade", str(artifact), "--plot", "trial.png")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("turret: plot: trial.png: a plot is a file whose name ends with")


@pytest.mark.requirement("trial.grade-command", "trial.grade-replay")
def test_what_does_not_hold_is_named_with_exit_1_and_nothing_is_drawn(turret: Turret, artifact: Path) -> None:
    for content, words in (
        (changed(CONTENT, "fills", 1, "price", to=7), "fills: {} does not hold at fill 1: it says "),
        (changed(CONTENT, "result", "pnl", to=7), "result: {} does not hold: pnl is 7, "),
        (changed(CONTENT, "entry", "ref", to="0" * 64), "tape: {} does not hold: the tape is another"),
        (changed(CONTENT, "entry", "kind", to="none"), "tape: {} does not hold: there is no tape of kind"),
        (b'{"kind":"turret.session"}', "kind: {} does not hold: this is no trial"),
        (b"nonsense", "form: {} does not hold: "),
    ):
        artifact.write_bytes(content)
        ran = turret.run("grade", str(artifact), "--plot", "trial.svg")
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith("turret: " + words.format(artifact))
        ran = turret.run("grade", str(artifact), "--json")
        assert (ran.code, ran.json["ref"]) == (1, ref_of(content))
        assert ran.json["fault"]["what"] == words.partition(":")[0]
    assert turret.files("*.svg") == []


@pytest.mark.requirement("trial.grade-command", "trial.grade-tape")
def test_an_imported_tape_is_given_as_a_file_and_must_be_the_one(turret: Turret, artifact: Path) -> None:
    tape = read_csv(CSV.encode(), instrument="EURCHF", tick="0.001", fee="0.000002")
    assert isinstance(tape, Tape)
    artifact.write_bytes(trial(tape, Entry(tape.ref(), tape.about, len(tape))))
    ran = turret.run("grade", str(artifact))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"turret: tape: its tape was imported: give it with --tape FILE ({tape.ref()})")
    given = {"tape.csv": CSV.encode(), "tape": tape.content()}
    for name, content in given.items():
        Path(name).write_bytes(content)
        ran = turret.run("grade", str(artifact), "--tape", name)
        assert ran.code == 0, ran.err
        assert "EURCHF (imported): 300 of 300 ticks, run again: it holds" in ran.out
    for content, code, words in (
        (CSV.replace("0.906,", "0.905,", 1), 1, "turret: tape: "),
        (CSV.replace("0.906,", "0.999,", 1), 2, "turret: tape: tape.csv, line 8: "),
        (
            "\ufeff\u00e9".encode("latin-1", "ignore").decode("latin-1") + "x",
            2,
            "turret: tape: tape.csv, line 1",
        ),
    ):
        Path("tape.csv").write_text(content)
        ran = turret.run("grade", str(artifact), "--tape", "tape.csv")
        assert (ran.code, ran.out) == (code, "")
        assert ran.err.startswith(words)


@pytest.mark.requirement("trial.grade-command")
def test_what_is_no_file_and_no_ref_is_said(turret: Turret) -> None:
    for given in ("missing.json", "8b43…", "0" * 63, "kestrel://artifact/nothing"):
        ran = turret.run("grade", given)
        assert (ran.code, ran.out) == (2, "")
        assert "64 lowercase hex characters" in ran.err


@pytest.fixture
async def url(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A broker that TURRET_URL names."""
    async with serving(web_app(bench.broker, None)) as server:
        monkeypatch.setenv("TURRET_URL", server.url)
        yield server.url


@pytest.mark.requirement("trial.grade-command")
async def test_of_a_broker_it_is_fetched_by_its_ref_and_the_grades_are_the_brokers(
    turret: Turret, bench: Bench, url: str
) -> None:
    ref, arena = await publish(bench, CONTENT), (await artifacts.publish_one(bench))[0]
    ran = await turret("grade", f"kestrel://artifact/{ref}", "--json")
    assert ran.code == 0, ran.err
    answer = await bench.call("kestrel.grade", await make_agent(bench, "Eve"), ref=ref)
    assert ran.json == {name: answer[name] for name in ran.json}
    ran = await turret("grade", arena)
    assert (ran.code, ran.err.partition(": this is no")[0]) == (1, f"turret: kind: {arena} does not hold")
    assert ran.err.endswith(" (turret arena verify checks a session of the arena)\n")
    ran = await turret("grade", "0" * 64)
    assert (ran.code, ran.err) == (1, "turret: NOT_FOUND: there is no such artifact (path ref)\n")
