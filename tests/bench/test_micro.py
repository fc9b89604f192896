"""The benchmark of stages, for a moment. No time is asserted."""

import json
from pathlib import Path

import pytest

from bench import micro, stages, whole
from bench.kit.websocket import Lost
from bench.whole import opened
from broker.wire.chain import row_text

TINY = ["--seconds", "0.002", "--rounds", "1", "--json"]


def test_a_tiny_run_has_every_stage_and_the_whole_way(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(micro, "UNITS", 64)
    assert micro.main(TINY) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["ok"], report["errors"]) == (True, [])
    figures = {each["stage"]: each for each in report["figures"]}
    assert {*micro.SUMMED, *micro.WHOLE, "stages together", "the rest"} <= figures.keys()
    assert all(each["us"] > 0 for name, each in figures.items() if name != "the rest")
    assert 0.5 < figures["verify"]["ratio_to_verify"] < 2
    assert figures["whole, SQLite"]["us"] > figures["frame"]["us"]


def test_a_stage_that_gives_something_else_fails_the_benchmark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages.keys, "verify", lambda *_: False)
    assert micro.main(TINY) == 1
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["errors"] == ["verify gave False"]


def test_what_the_whole_way_lost_is_said_in_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(micro, "measure", lambda *_: None)
    monkeypatch.setattr(whole, "_hold", lambda *_: False)
    assert micro.main(TINY) == 1
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert len(report["errors"]) == 1
    assert "is not what was signed" in report["errors"][0]


def test_each_stage_of_a_real_envelope_is_right() -> None:
    for stage in stages.stages():
        stage.check()
    sample = stages.Sample()
    chain = sample.next_chain
    assert sample.row == row_text(sample.envelope.conv, 2, sample.sig, chain, sample.envelope.canonical)


async def test_a_frame_that_was_lost_ends_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(None) as way:
        monkeypatch.setattr(whole, "ROUND_S", 0.2)
        monkeypatch.setattr(way.parties[3]._outbox, "take", list)
        with pytest.raises(Lost, match="703 frames had come where 704 were due"):
            await way.run(1)


async def test_a_chain_that_is_not_the_signed_one_is_found(tmp_path: Path) -> None:
    async with opened(tmp_path / "data") as way:
        await way.run(1)
        await way.prove()
        way.lines[-1].chains[2] = b"0" * 64
        with pytest.raises(Lost):
            await way.prove()
        with pytest.raises(Lost, match="is not what was signed"):
            way._check(2)


def test_numbers_that_make_no_sense_are_refused() -> None:
    with pytest.raises(SystemExit):
        micro.main(["--rounds", "0"])
