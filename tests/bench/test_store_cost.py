"""The store's cost: each kind runs, checks its answers and names its parts."""

import json

import pytest

from bench import store_cost


def test_each_kind_is_measured_in_both_batches(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_cost, "WARM", 64)
    assert store_cost.main(["--units", "128", "--json"]) == 0
    costs = json.loads(capsys.readouterr().out.splitlines()[-1])["costs"]
    assert [(cost["what"], cost["batch"]) for cost in costs] == [
        (what, batch) for batch in store_cost.BATCHES for what in ("layout", "writer", "store")
    ]
    assert all(cost["ratio_to_verify"] > 0 for cost in costs)
