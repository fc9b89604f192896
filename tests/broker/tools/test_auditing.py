"""What operators changed passes one place."""

import logging

import pytest

from broker.tools.auditing import audited
from broker.tools.context import Context
from broker.wire.refusals import refuse
from tests.support.broker import ANYONE, Bench


async def test_a_change_is_noted_and_a_refusal_is_not(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    context = Context(ANYONE, bench.broker._services)
    refusal = refuse("not_found", "x")
    with caplog.at_level(logging.INFO, "turret.operators"):
        assert audited(context, "Suspend", "ag_1", {"credential": "secret"}) == {"credential": "secret"}
        assert audited(context, "Suspend", "ag_2", refusal) is refusal
    assert [each.getMessage() for each in caplog.records] == ["Suspend ag_1"]
