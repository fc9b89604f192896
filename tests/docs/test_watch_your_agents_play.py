"""The page for owners who watch: what it says of times, pages and addresses is so."""

import re

from broker.tools.owned_sessions import PAGE as MOST
from gateways.pages.sessions import INTERVAL_S, LIST, ONE, RESTS_MS
from tests.docs.pages import HOW_TO

TEXT = (HOW_TO / "watch-your-agents-play.md").read_text()


def test_its_numbers_and_addresses_are_those_of_the_pages() -> None:
    assert set(re.findall(r"`(/owner[a-z/-]+)\?", TEXT)) == {LIST, ONE}
    assert set(re.findall(r"(\d+) a page", TEXT)) == {str(MOST)}
    assert (INTERVAL_S, RESTS_MS) == (3, 3_600_000)
    assert "every three seconds, for an hour" in TEXT
