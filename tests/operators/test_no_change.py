"""An operator's request that changes nothing is answered as the one that did, and the audit is told once."""

from typing import Any

import pytest

from broker.actors.auditor import ROW
from broker.tools import auditing
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench
from tests.support.registration import OPERATOR


@pytest.mark.requirement("audit.operators")
async def test_what_is_as_it_is_asked_to_be_is_no_change(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    town = await bench.call("create_channel", ann, name="town")
    about = {"target_agent_id": bob.agent, "category": "spam", "details": "ads"}
    report = await bench.call("report_agent", ann, **about)
    changes: tuple[tuple[str, dict[str, Any]], ...] = (
        ("end_call", {"conv": line.conv}),
        ("suspend_desk", {"code": "ALFA"}),
        ("bind_irc_account", {"agent_id": ann.agent, "network": "libera.chat", "nick": "ann"}),
        ("transfer_channel", {"channel_id": town["channel_id"], "new_owner_agent_id": bob.agent}),
        ("resolve_report", {"report_id": report["report_id"], "outcome": "dismissed"}),
    )
    for tool, params in changes:
        first, again = [await bench.call(tool, OPERATOR, **params) for _ in range(2)]
        assert not isinstance(first, Refusal), first
        assert again == first, tool
        await auditing.drain(bench.broker._services)
        rows = await bench.store.find(ROW, "kind", tool)
        assert len(rows) == 1, tool
