"""How a judge's checks become a verdict, and that the fixtures are what the dispatcher can serve."""

import json
from datetime import date
from typing import Any

import httpx
import pytest

from gateways.mcp.endpoint import mcp_app
from gateways.mcp.faces import surfaces
from tests.conformance.fixtures import with_fixtures
from tests.conformance.page import page
from tests.conformance.servers import serving
from tests.conformance.suites import judge
from tests.conformance.verdict import Verdict
from tests.gateways.mcp.harness import Door, modern
from tests.support.broker import Bench


def checks(*statuses: str) -> list[dict[str, str]]:
    return [{"id": f"c{at}", "status": status} for at, status in enumerate(statuses)]


def verdict(required: list[str] | None = None, **found: list[dict[str, str]]) -> Verdict:
    return judge("judge@1", ["--x"], {name.replace("_", "-"): each for name, each in found.items()}, required)


def test_all_that_passes_is_good() -> None:
    found = verdict(ping=checks("SUCCESS", "INFO"), tools_list=checks("SUCCESS", "SUCCESS", "SKIPPED"))
    assert (found.passed, found.total, found.checks, found.warnings) == (2, 2, 3, 0)
    assert found.good
    assert found.remarks == ("tools-list: 1 of its checks did not apply",)


@pytest.mark.parametrize("status", ["WARNING", "FAILURE"])
@pytest.mark.parametrize("required", [None, ["ping", "pong"], ["ping"]])
def test_a_warning_is_as_bad_as_a_failure_wherever_it_stands(status: str, required: list[str] | None) -> None:
    found = verdict(required, ping=checks("SUCCESS"), pong=checks("SUCCESS", status))
    assert not found.good
    assert len(found.faults) == 1
    assert "pong" in found.faults[0]


def test_a_required_scenario_that_did_not_run_or_judged_nothing_is_not_passed() -> None:
    missing = verdict(["ping", "pong"], ping=checks("SUCCESS"))
    vacuous = verdict(["ping", "pong"], ping=checks("SUCCESS"), pong=checks("INFO"))
    assert not missing.good
    assert (vacuous.passed, vacuous.total, vacuous.good) == (1, 2, False)
    assert not verdict().good


def test_extensions_are_told_of_and_not_scored() -> None:
    found = verdict(ping=checks("SUCCESS"), tasks_a=checks("FAILURE"), tasks_b=checks("WARNING"))
    assert found.good
    assert found.remarks == ("2 scenarios of the tasks extension: not offered, not scored",)


def test_the_page_shows_what_failed() -> None:
    good = verdict(ping=checks("SUCCESS"))
    bad = verdict(pong=checks("FAILURE"))
    text = page([good, bad], date(2026, 1, 2))
    assert "| judge@1 | --x | 1 of 1 scenarios | 1 | 0 |" in text
    assert "Last run on 2026-01-02" in text
    assert "- judge@1, --x: pong: FAILURE c0" in text
    assert "Not passed" not in page([good], date(2026, 1, 2))


async def test_the_fixtures_stand_beside_the_brokers_own_tools(bench: Bench) -> None:
    faces = {name: with_fixtures(surface) for name, surface in surfaces(bench.broker).items()}
    door = Door(mcp_app(bench.broker, faces=faces), bench.broker)
    names: set[str] = set()
    params: dict[str, Any] = {}
    while True:
        result = (await door.modern("tools/list", **params)).result
        names |= {tool["name"] for tool in result["tools"]}
        if "nextCursor" not in result:
            break
        params = {"cursor": result["nextCursor"]}
    assert {"send_call", "test_simple_text", "test_input_required_result_multi_round"} <= names
    assert (await door.modern("resources/read", uri="test://template/7/data")).result["contents"]
    assert (await door.modern("resources/read", uri="test://none")).error["code"] == -32602
    assert (await door.modern("tools/call", name="test_missing_capability")).error["code"] == -32021
    for kind in ("tool", "prompt"):
        assert (await door.modern("tools/call", name=f"test_trigger_{kind}_change")).result


def test_the_broker_that_is_judged_has_the_fixtures() -> None:
    body, named = modern("resources/read", uri="test://template/7/data")
    headers = {name.replace("_", "-"): value for name, value in named.items()}
    headers |= {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    with serving("tests.conformance.server") as ready:
        answer = httpx.post(
            f"{ready['http']}/mcp/wire", content=json.dumps(body), headers=headers, timeout=10
        )
    assert answer.json()["result"]["contents"]
