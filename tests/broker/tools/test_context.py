"""Callers: who is exempt from the limits that count by address."""

import pytest

from broker.tools.context import Caller


@pytest.mark.requirement("limits.guessing-exempt")
@pytest.mark.parametrize(
    ("caller", "exempt"),
    [
        (Caller(), True),
        (Caller(address="203.0.113.9", loopback=False), False),
        (Caller(address="203.0.113.9", loopback=False, authenticated=True), True),
        (Caller(address="203.0.113.9", loopback=False, until=5), False),
    ],
)
def test_loopback_and_authenticated_connections_are_exempt(caller: Caller, exempt: bool) -> None:
    assert caller.exempt is exempt
