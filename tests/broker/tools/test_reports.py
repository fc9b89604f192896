"""Reports of agents about agents."""

import pytest
import trio

from broker.actors.report import ReportRow
from broker.app import Caller
from broker.store.stored import stored
from broker.tools.reports import MOST_OPEN
from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.registration import OPERATOR

MISSING = "ag_01KVY19F5JERCW57K0QBWQ1Y7N"


@pytest.mark.requirement("identity.reports")
async def test_a_report_is_kept_as_it_was_said_and_once(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    params = {
        "target_agent_id": bob.agent,
        "category": "spam",
        "details": "ads <b>\nfor gold",
        "idempotency_key": "k",
    }
    filed = await bench.call("report_agent", ann, **params)
    assert await bench.call("report_agent", ann, **params) == filed
    (document,) = await bench.store.find("report", "status", "open")
    row = stored(ReportRow, document.doc, "report", document.id)
    assert (row.report_id, row.reporter, row.target) == (filed["report_id"], ann.agent, bob.agent)
    assert (row.category, row.details) == ("spam", "ads <b>\nfor gold")
    again = await bench.call("report_agent", ann, **{**params, "idempotency_key": "other"})
    assert code(again) == "already_exists"


@pytest.mark.requirement("identity.reports")
async def test_what_is_no_report_is_refused(bench: Bench) -> None:
    ann, held = await make_agent(bench, "Ann"), await make_agent(bench, "Held")
    await bench.call("suspend_agent", OPERATOR, agent_id=held.agent, reason="x")
    good = {"target_agent_id": MISSING, "category": "spam", "details": "ads"}
    for change, expected in (
        ({}, "not_found"),
        ({"target_agent_id": held.agent}, "not_found"),
        ({"target_agent_id": ann.agent}, "bad_request"),
        ({"category": "boredom"}, "bad_request"),
        ({"details": " \n"}, "bad_request"),
        ({"details": "x" * 2001}, "bad_request"),
    ):
        assert code(await bench.call("report_agent", ann, **{**good, **change})) == expected, change
    assert await bench.store.find("report", "status", "open") == []


@pytest.mark.requirement("identity.reports")
async def test_so_many_reports_of_one_agent_are_open_at_most(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    answers = []
    for n in range(MOST_OPEN + 1):
        other = await make_agent(bench, f"agent {n}")
        answers.append(
            code(
                await bench.call(
                    "report_agent", ann, target_agent_id=other.agent, category="other", details="x"
                )
            )
        )
    assert answers == ["accepted"] * MOST_OPEN + ["quota_exceeded"]


@pytest.mark.requirement("identity.reports")
async def test_reports_at_once_are_counted_like_those_one_after_the_other(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    others = [await make_agent(bench, f"agent {n}") for n in range(MOST_OPEN + 5)]
    codes: list[str] = []

    async def report(about: Caller) -> None:
        params = {"target_agent_id": about.agent, "category": "other", "details": "x"}
        codes.append(code(await bench.call("report_agent", ann, **params)))

    async with trio.open_nursery() as nursery:
        for about in (*others, *others):
            nursery.start_soon(report, about)
    assert codes.count("accepted") == MOST_OPEN
    assert len(await bench.store.find("report", "status", "open")) == MOST_OPEN
