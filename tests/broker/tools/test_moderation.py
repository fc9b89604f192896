"""What operators do about reports."""

from typing import Any

import pytest

from broker.app import Caller
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.pairs import told
from tests.support.registration import OPERATOR

MISSING = "rp_01KVY19F5JERCW57K0QBWQ1Y7N"


async def file(bench: Bench, reporter: Caller, target: Caller, category: str = "spam") -> str:
    """A report; its id."""
    params = {"target_agent_id": target.agent, "category": category, "details": f"{category}, a lot of it"}
    filed = await bench.call("report_agent", reporter, **params)
    assert not isinstance(filed, Refusal), filed
    return str(filed["report_id"])


async def resolve(bench: Bench, report_id: str, outcome: str, note: str = "", **params: Any) -> Any:
    return await bench.call(
        "resolve_report", OPERATOR, report_id=report_id, outcome=outcome, note=note, **params
    )


@pytest.mark.requirement("moderation.resolved")
async def test_who_reported_reads_in_its_inbox_what_was_decided(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    report_id = await file(bench, ann, bob)
    answer = await resolve(bench, report_id, "dismissed", "thank you", idempotency_key="k")
    now = answer["resolved_at"]
    assert answer == {
        "report_id": report_id,
        "status": "resolved",
        "outcome": "dismissed",
        "resolved_at": now,
    }
    assert await resolve(bench, report_id, "dismissed", "thank you", idempotency_key="k") == answer
    assert await resolve(bench, report_id, "dismissed", "thank you") == answer
    inbox = await bench.call("get_inbox", ann)
    (message,) = inbox["messages"]
    assert (message["from_agent_id"], inbox["unread"]) == ("network", 1)
    for said in (report_id, str(bob.agent), "thank you"):
        assert said in message["body"]
    (notice,) = await told(bench, ann, "notice")
    assert notice == {
        "what": "report_resolved",
        "at": now,
        "report_id": report_id,
        "outcome": "dismissed",
        "note": "thank you",
    }
    assert (await bench.call("get_inbox", bob))["messages"] == []
    assert await told(bench, bob, "notice", "message") == []
    other = await resolve(bench, report_id, "warned")
    assert (code(other), other.detail["outcome"]) == ("already_exists", "dismissed")
    await file(bench, ann, bob)  # it may be reported anew


@pytest.mark.requirement("moderation.resolved")
async def test_who_is_warned_is_not_told_by_whom(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await resolve(bench, await file(bench, ann, bob), "warned", "we told it")
    (message,) = (await bench.call("get_inbox", bob))["messages"]
    (notice,) = await told(bench, bob, "notice")
    assert (notice["what"], notice["category"]) == ("warned", "spam")
    for secret in (str(ann.agent), "Ann", "a lot of it", "we told it"):
        assert secret not in message["body"] + str(notice)


@pytest.mark.requirement("moderation.resolved")
async def test_an_outcome_is_true_of_the_agent(bench: Bench) -> None:
    ann, bob, cay = (
        await make_agent(bench, "Ann"),
        await make_agent(bench, "Bob"),
        await make_agent(bench, "Cay", test=True),
    )
    of_bob, of_cay = await file(bench, ann, bob), await file(bench, ann, cay)
    for report_id, outcome in ((of_bob, "suspended"), (of_bob, "deleted"), (of_cay, "deleted")):
        answer = await resolve(bench, report_id, outcome)
        assert (code(answer), answer.detail["path"]) == ("bad_request", "outcome")
        assert "first" in answer.message
    await bench.call("suspend_agent", OPERATOR, agent_id=bob.agent, reason="spam")
    await bench.call("delete_test_agent", OPERATOR, agent_id=cay.agent)
    assert code(await resolve(bench, of_cay, "warned")) == "bad_request"
    assert code(await resolve(bench, of_bob, "suspended")) == "accepted"
    assert code(await resolve(bench, of_cay, "deleted")) == "accepted"


@pytest.mark.requirement("moderation.resolved", "moderation.wrong-ids")
async def test_a_reporter_that_is_gone_is_told_nothing_and_a_missing_report_is_missing(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann", test=True), await make_agent(bench, "Bob")
    report_id = await file(bench, ann, bob)
    await bench.call("delete_test_agent", OPERATOR, agent_id=ann.agent)
    assert code(await resolve(bench, report_id, "other")) == "accepted"
    assert await bench.store.find("dm", "inbox", str(ann.agent)) == []
    (report,) = (await bench.call("list_reports", OPERATOR))["reports"]
    assert (report["reporter_name"], report["target_name"]) == (None, "Bob")
    missing = await resolve(bench, MISSING, "other")
    assert (code(missing), missing.detail["path"]) == ("not_found", "report_id")
    assert "list_reports" in missing.message


@pytest.mark.requirement("moderation.reports")
async def test_reports_are_listed_by_what_they_are(bench: Bench) -> None:
    ann, bob, cay = [await make_agent(bench, name) for name in ("Ann", "Bob", "Cay")]
    ids = [
        await file(bench, ann, bob, "spam"),
        await file(bench, cay, bob, "abuse"),
        await file(bench, ann, cay, "spam"),
    ]
    await resolve(bench, ids[0], "other", "done")

    async def listed(**params: Any) -> list[int]:
        found = await bench.call("list_reports", OPERATOR, **params)
        return [ids.index(each["report_id"]) for each in found["reports"]]

    assert await listed() == [2, 1, 0]
    assert await listed(status="open") == [2, 1]
    assert await listed(status="resolved") == [0]
    assert await listed(target_agent_id=bob.agent) == [1, 0]
    assert await listed(target_agent_id=bob.agent, status="open", category="abuse") == [1]
    assert await listed(category="spam") == [2, 0]
    first = await bench.call("list_reports", OPERATOR, limit=2, category="spam")
    assert "next" not in first
    first = await bench.call("list_reports", OPERATOR, limit=1, category="spam")
    assert await listed(category="spam", limit=1, after=first["next"]) == [0]
    shown = (await bench.call("list_reports", OPERATOR, status="resolved"))["reports"][0]
    assert (shown["details"], shown["outcome"], shown["note"]) == ("spam, a lot of it", "other", "done")


@pytest.mark.requirement("moderation.reports")
async def test_a_scan_that_finds_few_leads_on(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.tools.moderation.LOOKED_AT", 2)
    monkeypatch.setattr("broker.tools.paging.LOOKED_AT", 2)
    ann, bob, cay = [await make_agent(bench, name) for name in ("Ann", "Bob", "Cay")]
    wanted = await file(bench, ann, bob, "abuse")
    for reporter, target in ((ann, cay), (bob, cay), (cay, bob)):
        await file(bench, reporter, target)
    found: list[str] = []
    params: dict[str, Any] = {"category": "abuse"}
    for _ in range(5):
        page = await bench.call("list_reports", OPERATOR, **params)
        found += [each["report_id"] for each in page["reports"]]
        if "next" not in page:
            break
        params["after"] = page["next"]
    assert found == [wanted]
    queue = await bench.call("review_queue", OPERATOR)
    rest = await bench.call("review_queue", OPERATOR, after=queue["next"])
    targets = [each["target_agent_id"] for each in (*queue["queue"], *rest["queue"])]
    assert targets == [bob.agent, cay.agent]


@pytest.mark.requirement("moderation.queue")
async def test_the_queue_has_who_waits_longest_first_with_what_is_said(bench: Bench) -> None:
    ann, bob, cay = [await make_agent(bench, name) for name in ("Ann", "Bob", "Cay")]
    first = await file(bench, ann, cay, "fraud")
    second = await file(bench, ann, bob, "spam")
    await file(bench, bob, cay, "spam")
    await bench.call("suspend_agent", OPERATOR, agent_id=bob.agent, reason="spam")
    queue = (await bench.call("review_queue", OPERATOR))["queue"]
    assert [
        (each["name"], each["reports"], each["reporters"], each["categories"], each["suspended"])
        for each in queue
    ] == [("Cay", 2, 2, {"fraud": 1, "spam": 1}, False), ("Bob", 1, 1, {"spam": 1}, True)]
    assert [each["oldest_report_id"] for each in queue] == [first, second]
    page = await bench.call("review_queue", OPERATOR, limit=1)
    rest = await bench.call("review_queue", OPERATOR, after=page["next"])
    assert [each["name"] for each in (*page["queue"], *rest["queue"])] == ["Cay", "Bob"]
    await resolve(bench, first, "other")
    assert [each["name"] for each in (await bench.call("review_queue", OPERATOR))["queue"]] == ["Bob", "Cay"]
