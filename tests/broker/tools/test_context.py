"""Callers: who is exempt from the limits that count by address, and whose their sessions are."""

import pytest

from broker.tools.context import Caller
from broker.wire.ids import Pk
from tests.support.broker import Bench

PK = Pk("ab" * 32)


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


@pytest.mark.requirement("oauth.session")
def test_a_token_says_whose_the_sessions_are_else_a_key_does() -> None:
    assert Caller().identity is None
    assert Caller(pk=PK).identity == PK
    assert Caller(pk=PK, principal="p").identity == "p"


async def test_secrets_are_chance_as_text(bench: Bench) -> None:
    services = bench.broker._services
    assert len(services.new_secret()) == 43
    assert services.new_secret(16) != services.new_secret(16)
