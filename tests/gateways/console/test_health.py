"""Health: what the statistics say, and refusals by code."""

from collections import Counter

import msgspec
import pytest

from gateways.console.health import groups_of, numbers_of
from tests.gateways.pages.conftest import Browser
from tests.support.broker import Bench


@pytest.mark.requirement("console.health")
async def test_health_shows_the_statistics_and_refusals_by_code(
    bench: Bench, operator: Browser, counts: Counter[tuple[str, str]]
) -> None:
    counts.update(
        {
            ("send_env", "rate_limited"): 7,
            ("send_call", "rate_limited"): 2,
            ("send_env", "ok"): 900,
            ("x", "fault"): 1,
        }
    )
    text = (await operator.get("/health")).text
    assert '<tr><td>rate_limited</td><td class="number">9</td></tr>' in text
    assert '<tr><td>fault</td><td class="number">1</td></tr>' in text
    assert ">ok<" not in text
    assert bench.broker.pk in text
    assert ">Ready<" in text
    bench.broker.stopping = True
    assert ">Not ready<" in (await operator.get("/health")).text


def test_a_part_is_shown_with_its_own_numbers_and_one_without_any_is_not() -> None:
    class Part(msgspec.Struct):
        log_bytes: int = 7
        times: object = None

    class Empty(msgspec.Struct):
        times: object = None

    assert groups_of({"accepted": 1, "store": Part(), "none": Empty()}) == {"store": {"log bytes": 7}}


def test_only_plain_numbers_of_the_store_are_shown() -> None:
    assert numbers_of({"file_bytes": 7, "commits": object()}) == {"file bytes": 7}
