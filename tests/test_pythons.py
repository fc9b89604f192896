"""The same trials give the same refs and grades on every Python (`make pythons` gives each what it needs)."""

import hashlib
import sys
from pathlib import Path

import pytest

from tests import pythons
from tests.pythons import Made, differences, found, made_by, make

GOLDEN = "28cc41d459ed4762ea2e467de699ca26e8066ebe2cbc65245f111c3a99891415"
"""Of tapes, artifacts and grades as they were published: it changes with their law, and with nothing else."""


@pytest.mark.requirement("trial.grade-pythons")
def test_this_python_makes_what_was_always_made() -> None:
    made = make()
    law = "".join(made[name] for name in sorted(made) if name.endswith(("tape", "artifact", "grades")))
    assert len(made) == 20
    assert hashlib.sha256(law.encode()).hexdigest() == GOLDEN


@pytest.mark.requirement("trial.grade-pythons")
def test_each_python_that_has_what_is_needed_makes_the_same() -> None:
    made = [made_by(python) for python in found()]
    compared = [each for each in made if each.hashes]
    assert compared[0].python == sys.executable
    assert list(differences(compared)) == []
    if len(compared) < 2:
        others = ", ".join(f"{each.version}: {each.fault}" for each in made[1:]) or "there is no other"
        pytest.skip(f"this Python alone was asked ({others}); make pythons asks all")


def test_what_differs_is_named_and_what_is_missing_too(tmp_path: Path) -> None:
    one = Made("a", "3.11.1", {"trend: tape": "1", "trend: grades": "2"})
    other = Made("b", "3.12.1", {"trend: tape": "1", "trend: grades": "3", "jump: tape": "4"})
    assert list(differences([one, other])) == [
        "jump: tape: Python 3.12.1 makes another than 3.11.1",
        "trend: grades: Python 3.12.1 makes another than 3.11.1",
    ]
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)
    made = made_by(str(bare))
    assert (made.hashes, made.fault) == ({}, "it has no msgspec and lark")


def test_less_than_two_is_no_comparison(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {
        "a": Made("a", "3.11.1", {"x": "1"}),
        "b": Made("b", "3.12.1", {"x": "1"}),
        "c": Made("c", "3.13.1", {"x": "2"}),
    }
    monkeypatch.setattr(pythons, "made_by", lambda python, install: made[python])
    for given, code, words in (
        (["a"], 1, "the same on 1 Python\n"),
        (["a", "b"], 0, "the same on 2 Pythons\n"),
        (["a", "b", "c"], 1, "x: Python 3.13.1 makes another than 3.11.1\n"),
    ):
        monkeypatch.setattr(sys, "argv", ["pythons.py", *given])
        assert pythons.main() == code
        assert words in capsys.readouterr().out
