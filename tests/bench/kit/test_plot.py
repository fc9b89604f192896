"""Plots are files of the kind that their name says; without matplotlib one line says what to install."""

import builtins
from pathlib import Path
from typing import Any

import pytest

from bench.kit import plot


def test_a_distribution_and_a_sweep_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot.distribution(tmp_path / "a.svg", {"one": [1.0, 2.0, 3.0] * 50, "none": []}, "Latency")
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()
    row = {"offered_per_s": 1.0, "envelopes_per_s": 1.0, "p50_ms": 1.0, "p99_ms": 2.0}
    plot.against_load(tmp_path / "b.png", [row, {**row, "offered_per_s": 2.0}], "Load")
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError(name=name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SystemExit, match=r"turret\[bench\]"):
        plot.need()
