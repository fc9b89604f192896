"""Suspended desks and agents, put together."""

import pytest

from broker.actors.suspended import Suspended


@pytest.mark.requirement("identity.suspended-keys")
def test_a_key_is_suspended_until_neither_cause_is_left() -> None:
    both = Suspended(["aa"])
    both.agent("ag_1", frozenset({"aa", "bb"}))
    assert both == {"aa", "bb"}
    both.desk("aa", False)
    assert both == {"aa", "bb"}
    both.agent("ag_1", frozenset())
    assert both == set()
    both.agent("ag_1", frozenset({"aa"}))
    both.desk("aa", True)
    both.agent("ag_1", frozenset())
    assert both == {"aa"}


def test_it_knows_which_key_its_desk_is_suspended() -> None:
    both = Suspended(["aa"])
    both.agent("ag_1", frozenset({"bb"}))
    assert [both.is_desk(pk) for pk in ("aa", "bb", "cc")] == [True, False, False]
    both.agent("ag_2", frozenset())
    assert both == {"aa", "bb"}


def test_an_agent_with_other_keys_is_suspended_by_those() -> None:
    both = Suspended()
    both.agent("ag_1", frozenset({"aa", "bb"}))
    both.agent("ag_1", frozenset({"cc"}))
    assert both == {"cc"}
