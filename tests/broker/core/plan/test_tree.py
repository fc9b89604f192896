"""The tree's JSON, and the schema that says what it is."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given

from broker.core.plan import tree
from broker.core.plan.read import Checked, read_plan
from tests.support.plans import FADE, plans

SCHEMA = tree.json_schema()


@pytest.mark.requirement("plan.json")
@given(plans())
def test_every_plan_is_what_the_schema_says(plan: tree.Plan) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(tree.to_value(plan))


@pytest.mark.requirement("plan.json")
@pytest.mark.parametrize(
    "change",
    [
        {"rules": []},
        {"let": [{"name": "1x", "value": 1}]},
        {"version": 1.5},
        {"rules": [{"when": {"op": "and", "of": []}, "do": [{"op": "cancel"}]}]},
        {"rules": [{"when": {"op": "nand"}, "do": [{"op": "cancel"}]}]},
    ],
)
def test_what_the_schema_refuses_is_no_tree(change: dict[str, Any]) -> None:
    checked = read_plan(FADE)
    assert isinstance(checked, Checked)
    value = {**tree.to_value(checked.plan), **change}
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(value)
    with pytest.raises(ValueError, match=r"\$|length"):
        tree.from_value(value)


@pytest.mark.requirement("plan.json")
def test_money_is_millionths_and_what_is_usual_is_left_out() -> None:
    checked = read_plan(FADE.replace("loss 2500,", "loss 2500.5,"))
    assert isinstance(checked, Checked)
    value = tree.to_value(checked.plan)
    assert value["bound"]["loss"] == 2_500_500_000
    assert "let" not in value
    assert "tif" not in value["rules"][0]["do"][0]
    assert value["rules"][1]["when"]["right"] == {"op": "money", "micros": -1_500_000_000}
