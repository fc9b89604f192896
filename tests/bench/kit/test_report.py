"""What a bench says."""

import json
from typing import Any

import pytest

from bench.kit.report import Lag, finish, percentile, spread, table


@pytest.mark.parametrize(
    ("values", "share", "expect"),
    [([], 0.5, 0.0), ([7.0], 0.99, 7.0), ([1.0, 2.0, 3.0, 4.0], 0.5, 2.0), ([1.0, 2.0, 3.0, 4.0], 1.0, 4.0)],
)
def test_a_percentile_is_a_value_that_was_measured(values: list[float], share: float, expect: float) -> None:
    assert percentile(values, share) == expect


def scrape(**counts: int) -> str:
    edges = {"a": "0.001", "b": "0.002", "c": "+Inf"}
    lines = [f'turret_loop_lag_seconds_bucket{{le="{edges[name]}"}} {n}.0' for name, n in counts.items()]
    return "\n".join(["# TYPE turret_loop_lag_seconds histogram", *lines, ""])


def test_lag_is_what_came_between_two_scrapes() -> None:
    lag = Lag()
    lag.add(scrape(a=100, b=100, c=100), scrape(a=150, b=199, c=200))
    assert lag.ms(0.5) == 1.0
    assert lag.ms(0.99) == 2.0
    assert lag.ms(0.25) == 0.5
    assert lag.ms(1.0) == 2.0  # beyond the last edge nothing is known
    assert Lag().ms(0.5) == 0.0


def test_a_table_has_the_columns_that_are_asked_for() -> None:
    rows: list[dict[str, Any]] = [
        {"what": "a", "per_s": 12345.6},
        {"what": "b", "per_s": spread([1.0, 3.0, 2.0])},
    ]
    lines = table(rows, ["what", "per_s"]).splitlines()
    assert lines[2] == "|    a |     12,346 |"
    assert lines[3] == "|    b | 2 (1 to 3) |"


def test_the_last_line_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    finish({"a": 1}, as_json=False)
    assert capsys.readouterr().out == ""
    finish({"a": 1}, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"a": 1}
