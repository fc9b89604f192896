"""The benchmark of the tape, for a moment. No time is asserted."""

import json

import pytest

from bench import tape
from broker.actors.tape import WATCHERS


def test_a_tiny_run_has_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert tape.main(["--rounds", "1", "--count", "4", "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    cases = [each["case"] for each in report["figures"]]
    assert cases == ["nobody watches", "1 watching", f"{WATCHERS} watching", "a glance"]
    assert next(each["us"] for each in report["figures"] if each["case"] == "a glance") > 0
