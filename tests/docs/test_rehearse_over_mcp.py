"""The how-to's calls, one after the other, by the official client; each answer is what the page shows of it."""

import gc
import json
from collections.abc import Iterator
from typing import Any

import pytest

from broker.core.tapes.synthetic import KINDS
from broker.tools.registry import collect
from tests.docs.pages import HOW_TO, blocks
from tests.gateways.mcp.trial_client import connected

PAGE = "rehearse-over-mcp.md"
pytestmark = pytest.mark.filterwarnings(r"ignore:Async generator '(httpx2|httpcore2)\.:ResourceWarning")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What the client leaves behind is collected here, under this module's filter."""
    yield
    gc.collect()


def check(shown: Any, found: Any, names: dict[str, str]) -> None:
    """What the page shows is in the answer; a text with … in it stands for what is there from now on."""
    if isinstance(shown, dict):
        for name, value in shown.items():
            check(value, found[name], names)
    elif isinstance(shown, list):
        assert len(shown) == len(found), (shown, found)
        for one, other in zip(shown, found, strict=True):
            check(one, other, names)
    elif isinstance(shown, str) and "…" in shown:
        names[shown] = found
    else:
        assert shown == found, (shown, found)


@pytest.mark.requirement("trial.how-to")
async def test_each_call_of_the_page_has_the_answer_that_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [json.loads(each) for each in blocks(PAGE, "json")]
    names: dict[str, str] = {}
    asked = set()
    async with connected("auto") as (client, _):
        for call, answer in zip(shown[::2], shown[1::2], strict=True):
            given = {name: names.get(str(value), value) for name, value in call["arguments"].items()}
            if given.get("ticks", 0) > 1_000:  # it takes long here
                for name, value in (("INLINE", 0), ("STEPS", 2_000), ("PART", 4_000)):
                    monkeypatch.setattr(f"broker.actors.trial.{name}", value)
            result = await client.call_tool(call["name"], given)
            assert not result.is_error, (call, result.content)
            check(answer, result.structured_content, names)
            asked.add(call["name"])
    assert asked == {name for name in collect() if name.startswith("kestrel.")}


@pytest.mark.requirement("trial.how-to")
def test_the_page_names_the_kinds_of_tapes_and_what_they_are_of() -> None:
    text = " ".join((HOW_TO / PAGE).read_text().split())
    *most, last = KINDS.values()
    assert ", ".join(f"`{each.name}`" for each in most) + f" and `{last.name}`" in text
    assert ", ".join(each.instrument for each in most) + f" and {last.instrument}" in text


@pytest.mark.requirement("trial.how-to")
def test_the_page_names_the_errors() -> None:
    text = (HOW_TO / PAGE).read_text()
    for code in ("CONFLICT", "IDEMPOTENCY_MISMATCH", "ILLEGAL_ACTION", "SESSION_OVER", "LIMIT_EXCEEDED"):
        assert f"`{code}`" in text
