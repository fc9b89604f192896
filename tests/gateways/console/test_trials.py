"""The console's pages of finished trials."""

import pytest

from tests.gateways.console.conftest import document
from tests.gateways.pages.conftest import Browser
from tests.support import artifacts
from tests.support.broker import Bench
from tests.support.trials import market, publish, trial

CONTENT = trial(*market(ticks=200))


@pytest.mark.requirement("trial.report-console")
async def test_a_trial_is_found_by_its_ref_or_its_address(bench: Bench, operator: Browser) -> None:
    ref = await publish(bench, CONTENT)
    assert document((await operator.get("/trials")).text).all("form")
    for given in (ref, f"kestrel://artifact/{ref}", f" {ref} "):
        moved = await operator.client.get("/trials", params={"ref": given})
        assert (moved.status_code, moved.headers["location"]) == (303, f"/trials/{ref}")
    shown = await operator.get(f"/trials/{ref}")
    assert shown.status_code == 200
    page = document(shown.text)
    assert [each.attributes.get("class") for each in page.all("svg")].count("equity") >= 2
    assert "style" not in {name for each in page.all("path") for name in each.attributes}
    assert ref in shown.text


@pytest.mark.requirement("trial.report-console")
async def test_what_is_no_ref_or_no_trial_is_said(bench: Bench, operator: Browser) -> None:
    wrong = await operator.client.get("/trials", params={"ref": "<b>"})
    assert wrong.status_code == 400
    assert "64 characters" in wrong.text
    assert "<b>" not in wrong.text
    missing = await operator.client.get(f"/trials/{'0' * 64}")
    assert missing.status_code == 404
    arena, _ = await artifacts.publish_one(bench)
    other = await operator.client.get(f"/trials/{arena}")
    assert other.status_code == 422
    assert "no trial" in other.text
