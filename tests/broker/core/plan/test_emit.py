"""The Python of a plan holds fixed words and numbers, whatever its author wrote."""

import io
import keyword
import tokenize

import pytest
from hypothesis import given, settings

from broker.core.plan import tree
from broker.core.plan.emit import SEEN, emit
from broker.core.plan.program import View
from tests.support.plans import plans

WORDS = {
    *SEEN, *View.__struct_fields__, "make", "step", "warm", "seen", "view", "out", "append", "size_", "price_", "Send",
    "Command", "abs",
}  # fmt: skip
STRINGS = {"buy", "sell", "ioc", "gtc", "cancel", "flatten", "stand_down"}


@pytest.mark.requirement("plan.no-text-runs")
@settings(max_examples=30)
@given(plans())
def test_nothing_of_the_authors_gets_into_the_program(plan: tree.Plan) -> None:
    for token in tokenize.generate_tokens(io.StringIO(emit(plan)).readline):
        match token.type:
            case tokenize.NAME:
                plain = token.string.rstrip("0123456789")
                assert plain in WORDS | {"past", "look", "ago"} or keyword.iskeyword(token.string)
            case tokenize.STRING:
                assert token.string.strip("'") in STRINGS
            case tokenize.NUMBER:
                assert token.string.isdigit()
            case tokenize.OP:
                assert token.string in {*"()[]:,.+-*/%=<>", "//", "==", "!=", "<=", ">=", "+="}


@pytest.mark.requirement("plan.no-text-runs")
def test_a_names_author_can_not_reach_a_word_of_pythons() -> None:
    """Names of lets that are words of Python, or of the program: they are numbers in there."""
    from broker.core.plan.read import Checked, read_plan
    from tests.support.plans import HEAD

    checked = read_plan(
        f"{HEAD}let import = 5\nlet seen = 7\nlet __builtins__ = 9\nwhen tick > import + seen + __builtins__: cancel"
    )
    assert isinstance(checked, Checked), checked
    source = emit(checked.plan)
    assert "import" not in source
    assert "builtins" not in source
    assert "(tick > 42)" in source
