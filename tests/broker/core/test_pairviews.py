"""Each of the two sees what is theirs to see."""

import pytest

from broker.core.agreement import Agreement, Request
from broker.core.pairviews import show_agreement, show_request

REQUEST = Request("cr_1", "a", "b", "p", ("message",), 30, 1, 100, "Ann", "Bob", "ow_1")
AGREEMENT = Agreement("agr_1", "a", "b", ("message",), 1, 100, False, "Ann", "Bob")


@pytest.mark.requirement("agreement.owner-decides")
def test_who_decides_is_shown_to_the_target_alone() -> None:
    assert show_request(REQUEST, "b").waits_for == "owner"
    assert show_request(REQUEST, "a").waits_for is None
    assert (show_request(REQUEST, "a").direction, show_request(REQUEST, "b").direction) == (
        "outgoing",
        "incoming",
    )


@pytest.mark.parametrize(
    ("viewer", "now", "silent", "status"),
    [
        ("a", 99, False, "active"),
        ("a", 100, False, "expired"),
        ("b", 99, True, "silent"),
        ("b", 100, True, "expired"),
    ],
)
def test_how_an_agreement_stands(viewer: str, now: int, silent: bool, status: str) -> None:
    view = show_agreement(AGREEMENT, viewer, now, silent=silent)
    assert (view.status, view.direction, view.made_by) == (status, "both", "agents")
    assert view.counterpart.name == ("Bob" if viewer == "a" else "Ann")


@pytest.mark.requirement("agreement.operator")
def test_an_operators_grant_says_which_way_it_goes() -> None:
    grant = Agreement("agr_1", "a", "b", ("message",), 1, one_way=True)
    assert (show_agreement(grant, "a", 9).direction, show_agreement(grant, "b", 9).direction) == (
        "outgoing",
        "incoming",
    )
    assert show_agreement(grant, "a", 9).made_by == "operator"
