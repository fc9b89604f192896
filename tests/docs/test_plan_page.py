"""The page of the plan language: what it prints is so, what it shows is a plan, and each of the ten does something."""

import re
from pathlib import Path

import msgspec
import pytest

from broker.core.plan import tree
from broker.core.plan.program import Send, View, compile_plan
from broker.core.plan.read import Checked, read_plan
from broker.core.tapes.synthetic import KINDS, make
from tests.sizes import ROOT

PLANS = sorted((ROOT / "docs" / "examples" / "plans").glob("*.plan"))
PAGE = (ROOT / "docs" / "reference" / "plan.md").read_text()


@pytest.mark.requirement("plan.page")
def test_there_are_ten_and_the_page_shows_each() -> None:
    assert len(PLANS) == 10
    shown = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert [each for each in shown if "plan" in each] == [
        (ROOT / "docs/examples/plans/fade.plan").read_text(),
        *(path.read_text() for path in PLANS),
    ]


@pytest.mark.requirement("plan.page")
@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_each_is_written_canonically_and_does_something(path: Path) -> None:
    """Filled at once at their prices, on a tape of the catalog: enough to see its rules fire."""
    text = path.read_text()
    checked = read_plan(text)
    assert isinstance(checked, Checked), checked
    assert checked.text == text
    tape, program = make(KINDS["thin" if "size" in text else "trend"], 7, 2_000), compile_plan(checked.plan)
    view, sides = View(0, 0, 0, orders_left=99), set()
    for tick, (bid, ask) in enumerate(zip(tape.bids, tape.asks, strict=True)):
        view.tick, view.bid, view.ask = tick, bid, ask
        view.size = tape.sizes[tick] if tape.about.sized else None
        for action in program.step(view):
            if isinstance(action, Send):
                sides.add(action.side)
                view.position += action.size if action.side == "buy" else -action.size
                view.fill, view.fill_age = action.price, 0
            elif action.word == "flatten":
                view.position = 0
    assert sides >= {"buy"}


@pytest.mark.requirement("plan.page")
def test_the_json_of_the_page_is_what_it_says() -> None:
    (text,) = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    checked = read_plan((ROOT / "docs/examples/plans/fade.plan").read_text())
    assert isinstance(checked, Checked)
    assert tree.to_value(checked.plan)["rules"][1]["when"] == msgspec.json.decode(text)


@pytest.mark.requirement("plan.page")
def test_the_program_of_the_page_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT / "docs" / "examples" / "plans")
    (text,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(text, {})
    assert capsys.readouterr().out == "[Send(side='buy', size=1000000, price=100, tif='ioc', rule=0)]\n"
