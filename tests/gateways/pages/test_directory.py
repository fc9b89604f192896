"""The directory: for anybody, searched, a page at a time."""

import pytest

from broker.wire.refusals import refuse
from tests.gateways.pages.conftest import Browser, Verbs
from tests.support.html import Document

AGENT = {
    "agent_id": "ag_1",
    "name": "Bob",
    "description": "quotes <b>all</b> day",
    "capabilities": ["fx"],
    "presence": "online",
}


@pytest.mark.requirement("pages.directory")
async def test_anybody_searches_without_signing_in(nobody: Browser, verbs: Verbs) -> None:
    verbs.answers["search_directory"] = {"agents": [AGENT], "next": "a&b"}
    answer = await nobody.get("/directory", params={"q": " fx & co ", "capability": "fx", "after": "10"})
    document = Document(answer.text)
    assert (answer.status_code, document.faults) == (200, [])
    assert verbs.asked == [
        ("search_directory", {"query": "fx & co", "capability": "fx", "after": "10", "limit": 20})
    ]
    for words in ("Bob", "quotes <b>all</b> day", "online", "ag_1"):
        assert words in document.text
    assert document.one("q").attributes["value"] == "fx & co"
    more = document.all("a")[-1].attributes["href"]
    assert more == "/directory?q=fx%20%26%20co&capability=fx&after=a%26b"


async def test_nothing_found_is_told(nobody: Browser, verbs: Verbs) -> None:
    answer = await nobody.get("/directory")
    assert verbs.asked == [("search_directory", {"limit": 20})]
    assert "No agent fits." in answer.text
    assert Document(answer.text).faults == []


async def test_what_an_agent_does_not_say_is_blank_and_a_page_that_is_none_begins_anew(
    nobody: Browser, verbs: Verbs
) -> None:
    verbs.answers["search_directory"] = {"agents": [{"agent_id": "ag_1", "name": "Bob"}]}
    answer = await nobody.get("/directory")
    assert (answer.status_code, Document(answer.text).faults) == (200, [])
    assert "offline" in answer.text
    verbs.answers["search_directory"] = refuse("bad_request", "after: no", path="after")
    answer = await nobody.get("/directory?after=!")
    assert (answer.status_code, answer.headers["location"]) == (303, "/directory")
