"""Seeds of the simulation, each a whole broker under faults (world.py); more of them by `make soak`."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from broker.core import conversation as core
from tests.simulation import __main__ as program
from tests.simulation.plan import PLAYED
from tests.simulation.run import command, plan_of, play

ROOT = Path(__file__).parent.parent.parent
ONCE_FAILED = (8, 44, 53, 96, 105, 5088, 5099, 50206, 51264, 51337, 51338, 60002, 60076, 90463, 90593, 91195)
"""Seeds that found something once, in the broker or here."""
BATCHES = tuple(range(start, start + 10) for start in range(3001, 3091, 10))
"""With those above about half a minute of one core."""


def run(seeds: Any) -> None:
    for seed in seeds:
        outcome = play(plan_of(seed))
        assert outcome.fault is None, f"{outcome.fault}: {command(seed)}"


@pytest.mark.requirement("faults.simulated")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("seeds", [ONCE_FAILED, *BATCHES], ids=lambda seeds: str(seeds[0]))
def test_what_must_be_true_is_true_whatever_breaks(seeds: Any) -> None:
    run(seeds)


@pytest.mark.requirement("arena.simulated")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", [PLAYED + 1, PLAYED + 4, PLAYED + 7])
def test_players_are_told_what_is_so_whatever_breaks(seed: int) -> None:
    assert plan_of(seed).players == 3
    run([seed])


@pytest.mark.requirement("faults.one-seed-one-run")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", [PLAYED])
def test_a_seed_is_the_same_run_in_each_process(seed: int) -> None:
    traces = set()
    for salt in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-m", "tests.simulation", "--seed", str(seed)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": salt},
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        )
        traces.add(ran.stdout.splitlines()[-1])
    once, again = play(plan_of(seed)), play(plan_of(seed))
    assert once.trace == again.trace
    assert traces == {f"trace {once.digest}, {len(once.trace)} lines"}
    assert len({play(plan_of(each)).digest for each in (seed, seed + 1)}) == 2


@pytest.mark.requirement("faults.shrunk")
@pytest.mark.timeout(120)
def test_a_failing_seed_is_shrunk_and_replayed_by_the_command_that_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(core, "wait_ms", lambda *_: 0)
    assert program.main(["--from-seed", "1", "--seeds", "1"]) == 1
    printed = capsys.readouterr().out
    commands = [line.split("simulation ")[1] for line in printed.splitlines() if "--only" in line]
    assert commands
    for each in commands:
        assert program.main(each.split()) == 1
        shown = capsys.readouterr().out
        assert "FAILED: Broken: 30 in 10 s" in shown
    seed, kept = int(commands[0].split()[1]), [int(each) for each in commands[0].split()[3].split(",")]
    assert len(kept) <= 2
    monkeypatch.undo()
    assert play(plan_of(seed, only=kept)).fault is None


def test_the_first_steps_of_a_plan_are_a_run_of_their_own() -> None:
    assert len(plan_of(8, steps=5).steps) == 5
    assert play(plan_of(8, steps=5)).fault is None
