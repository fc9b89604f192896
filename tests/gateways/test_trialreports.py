"""`GET /artifact/<ref>/report`."""

import httpx
import pytest

from broker.wire.refusals import Refusal, refuse
from gateways.openapi import document
from gateways.pages import trialreport
from gateways.trialreports import told
from gateways.web import web_app
from tests.support import artifacts
from tests.support.asgi import asked
from tests.support.broker import Bench
from tests.support.broker_fake import FakeBroker
from tests.support.network import serving
from tests.support.trials import changed, market, publish, trial

TAPE, ENTRY = market(ticks=200)
CONTENT = trial(TAPE, ENTRY)


@pytest.mark.requirement("trial.report-door")
async def test_a_report_is_a_page_by_the_ref_alone(bench: Bench) -> None:
    ref = await publish(bench, CONTENT)
    async with (
        serving(web_app(bench.broker, None)) as server,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        answer = await client.get(f"/artifact/{ref}/report")
        assert answer.status_code == 200
        headers = answer.headers
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert headers["content-security-policy"] == trialreport.policy()
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "public, max-age=3600"
        assert "set-cookie" not in headers
        assert ref in answer.text
        assert (await client.head(f"/artifact/{ref}/report")).status_code == 200
        raw = await client.get(f"/artifact/{ref}")
        assert raw.content == CONTENT


@pytest.mark.requirement("trial.report-door")
async def test_what_can_not_be_shown_is_a_page_that_says_why(bench: Bench) -> None:
    arena, _ = await artifacts.publish_one(bench)
    app = web_app(bench.broker, None)
    for ref, status, words in (
        ("0" * 64, 404, b"No artifact has this ref"),
        ("../x", 404, b""),
        (arena, 422, b"This is no trial"),
        (await publish(bench, changed(CONTENT, "result", "pnl", to=5)), 422, b"Pnl is 5"),
    ):
        answer = await asked(app, f"/artifact/{ref}/report")
        assert (answer.status, answer.headers["cache-control"]) == (status, "no-store")
        assert words in answer.body
    assert (await asked(app, f"/artifact/{arena}/report", method="POST", body=b"{}")).status == 405


@pytest.mark.requirement("trial.report-door")
async def test_who_has_to_wait_is_told_how_long_and_a_fault_tells_nothing() -> None:
    broker = FakeBroker()
    app = web_app(broker, None)  # type: ignore[arg-type]  # a fake
    broker.reports["0" * 64] = refuse("overloaded", "too many", retry_after_ms=4001)
    answer = await asked(app, f"/artifact/{'0' * 64}/report")
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert b"5 seconds" in answer.body
    broker.reports["1" * 64] = RuntimeError("a secret")
    answer = await asked(app, f"/artifact/{'1' * 64}/report")
    assert (answer.status, b"number" in answer.body, b"secret" in answer.body) == (500, True, False)


def test_a_refusal_that_nobody_thought_of_has_its_own_words() -> None:
    assert told(Refusal("bad_request", "no")) == ("This can’t be shown", "No.")


@pytest.mark.requirement("trial.report-door")
def test_the_door_is_described_for_programs() -> None:
    described = document([], "0.1.0")["paths"]["/artifact/{ref}/report"]["get"]
    assert described["security"] == [{}]
    assert "text/html" in described["responses"]["200"]["content"]
    assert {"404", "422", "429", "503"} <= set(described["responses"])
