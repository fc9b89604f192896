"""`python -m gateways.demo`: its options."""

from pathlib import Path
from typing import Any

import pytest

from gateways.demo import __main__ as program


def test_options_are_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def run_demo(keep: Path | None, seed: int | None) -> int:
        seen.append((keep, seed))
        return 3

    monkeypatch.setattr(program, "run_demo", run_demo)
    assert program.main([]) == 3
    assert program.main(["--keep", "k", "--seed", "5"]) == 3
    assert seen == [(None, None), (Path("k"), 5)]
