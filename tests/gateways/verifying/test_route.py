"""The page on the public port: for anybody, and with the policy that keeps it alone."""

import pytest

from gateways.verifying import route
from gateways.verifying.page import verify_page
from gateways.web import quart_app


@pytest.mark.requirement("verifypage.alone")
async def test_anybody_gets_the_page_with_its_policy() -> None:
    app = quart_app()
    route.register(app)
    answer = await app.test_client().get("/verify")
    assert answer.status_code == 200
    assert await answer.get_data() == verify_page().html
    assert answer.headers["content-security-policy"] == verify_page().policy
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "set-cookie" not in answer.headers
