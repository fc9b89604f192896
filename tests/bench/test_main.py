"""All benches in their short form: each is there, runs, and what failed is named."""

import argparse
import importlib.util
import json

import pytest

from bench import __main__ as everything


def test_one_can_be_chosen_and_its_object_is_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert everything.main(["ring", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    report = json.loads(lines[-1])
    assert report["ring"]["ok"] is True
    assert any(line.startswith("|  ring |") for line in lines)


def test_a_bench_that_fails_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURRET_LIMITS_RINGZ", "1")
    assert everything.main(["ring"]) == 1
    assert capsys.readouterr().out.endswith("FAILED: ring\n")
    with pytest.raises(SystemExit):
        everything.main(["rong"])


@pytest.mark.parametrize("name", everything.SHORT)
def test_each_takes_the_options_of_its_short_form(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, *flags = everything.SHORT[name].split()
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"there is no {module}")

    class Parsed(Exception):
        pass

    real = argparse.ArgumentParser.parse_args

    def parse(self: argparse.ArgumentParser, arguments: list[str]) -> None:
        real(self, arguments)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    with pytest.raises(Parsed):
        importlib.import_module(module).main([*flags, "--json"])
