"""What operators changed passes one place."""

import logging

import pytest

from broker.tools.auditing import audited
from broker.tools.context import Context
from broker.wire.refusals import refuse
from tests.support.agents import make_agent
from tests.support.broker import ANYONE, Bench
from tests.support.registration import OPERATOR


async def test_a_change_is_noted_and_a_refusal_is_not(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    context = Context(ANYONE, bench.broker._services)
    refusal = refuse("not_found", "x")
    with caplog.at_level(logging.INFO, "turret.operators"):
        assert audited(context, "Suspend", "ag_1", {"credential": "secret"}) == {"credential": "secret"}
        assert audited(context, "Suspend", "ag_2", refusal) is refusal
    assert [each.getMessage() for each in caplog.records] == ["Suspend ag_1"]


async def test_what_operators_change_of_desks_grants_and_channels_is_noted_too(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    ann, bob = str((await make_agent(bench, "Ann")).agent), str((await make_agent(bench, "Bob")).agent)
    await bench.open("ALFA")
    with caplog.at_level(logging.INFO, "turret.operators"):
        for tool, params in (
            ("suspend_desk", {"code": "ALFA"}),
            ("release_desk", {"code": "ALFA"}),
            ("release_desk", {"code": "ZZZZ"}),
            ("grant_send_permission", {"from_agent_id": ann, "to_agent_id": bob}),
            ("revoke_send_permission", {"from_agent_id": ann, "to_agent_id": bob}),
            ("create_channel", {"name": "square", "owner_agent_id": ann}),
        ):
            await bench.call(tool, OPERATOR, **params)
    assert [each.getMessage() for each in caplog.records] == [
        "SuspendDesk ALFA",
        "ReleaseDesk ALFA",
        f"Grant {ann} {bob}",
        f"Ungrant {ann} {bob}",
        f"CreateChannel {ann}",
    ]
