"""The grammar alone, read by Lark's own lexer, takes what our reader takes: what the page prints is the language."""

import pytest
from hypothesis import given, settings
from lark.exceptions import UnexpectedInput

from broker.core.plan import tree
from broker.core.plan.grammar import GRAMMAR, STATEMENTS, parser, terminals
from broker.core.plan.kinds import KINDS
from broker.core.plan.printer import to_text
from broker.core.plan.statements import COMPARISONS, FUNCTIONS, QUANTITIES
from tests.support.plans import FADE, plans


@pytest.mark.requirement("plan.grammar")
@settings(max_examples=20)
@given(plans())
def test_every_plan_is_of_the_grammar(plan: tree.Plan) -> None:
    found = parser().parse(to_text(plan), start="plan")
    assert [type(each).__name__ for each in found.children[:3]] == ["Head", "On", "Bound"]
    assert len(found.children) == 3 + len(plan.let) + len(plan.rules)


@pytest.mark.requirement("plan.grammar")
@pytest.mark.parametrize(
    ("old", "new"), [("on EURUSD\n", ""), (": ", " "), ("bound ", ""), (" at ", " "), ("when ", "")]
)
def test_what_is_not_of_the_grammar_is_not_taken(old: str, new: str) -> None:
    with pytest.raises(UnexpectedInput):
        parser().parse(FADE.replace(old, new, 1), start="plan")


@pytest.mark.requirement("plan.grammar")
def test_the_tables_beside_the_grammar_say_what_it_says() -> None:
    words = set(terminals())
    assert words >= {*KINDS, *FUNCTIONS, *COMPARISONS, *STATEMENTS}
    assert set(QUANTITIES) == set(KINDS)
    assert all(f"\n{rule}: " in GRAMMAR for rule in STATEMENTS.values())
