"""The verify page on the public port: for anybody, without a cookie, and the same for all."""

from quart import Quart, Response

from gateways.verifying.page import PATH, verify_page


def register(app: Quart) -> None:
    """Add `GET /verify`."""
    page = verify_page()

    @app.get(PATH)
    async def verifying() -> Response:
        response = Response(page.html, 200)
        response.headers.update(
            {
                "content-type": "text/html; charset=utf-8",
                "content-security-policy": page.policy,
                "x-content-type-options": "nosniff",
                "referrer-policy": "no-referrer",
                "cache-control": "no-cache",
            }
        )
        return response
