"""Every page of the navigation is there, and no more stands on the port than is said."""

import pytest

from gateways.console import routes
from gateways.console.site import NAV
from gateways.operator.gate import OperatorGate
from gateways.operator.token import OperatorToken
from gateways.web import quart_app
from tests.support.broker import Bench
from tests.support.operators import TOKEN


@pytest.mark.requirement("console.alone")
async def test_the_pages_are_those_of_the_navigation_and_a_few_more(bench: Bench) -> None:
    app = quart_app()
    routes.register(app, bench.broker, OperatorGate(bench.broker, OperatorToken(TOKEN)))
    paths = {rule.rule for rule in app.url_map.iter_rules()}
    assert paths == {path for path, _ in NAV} | {
        "/live", "/sign-in", "/sign-out", "/assets/<name>", "/calls/end", "/conversations/<conv>",
        "/conversations/<conv>/export", "/agents/<agent_id>", "/audit/verify", "/trials/<ref>",
    }  # fmt: skip
