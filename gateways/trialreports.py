"""`GET /artifact/<ref>/report`: a finished trial as a page, for whoever has its artifact's ref (trial.md, Reports).

1. It is one document that loads nothing; its policy allows its own styles and no more, and a browser keeps it apart.
2. What is said does not change with who asks; how it is drawn may change with the broker. So a cache keeps it an hour.
3. Who comes to look is a person: a refusal is a page too.
"""

from collections.abc import Sequence
from typing import Final

from quart import Quart, Response, request

from broker.app import Broker
from broker.wire.refusals import Refusal
from gateways import render
from gateways.caller import connect
from gateways.listen import Network
from gateways.pages import trialreport
from gateways.pages.site import sentence, wait_words

PATH: Final = "/artifact/<ref>/report"
KEPT: Final = "public, max-age=3600"
BUSY: Final = ("overloaded", "rate_limited", "unavailable")


def register(app: Quart, broker: Broker, *, proxies: Sequence[Network] = ()) -> None:
    """Add the route; HEAD is answered too. No header tells who asks: the ref is the right. Who leaves stops what is
    done for it."""

    @app.get(PATH)
    async def trial_report(ref: str) -> Response:
        try:
            found = await broker.report(connect(dict(request.scope), proxies), ref)
            if not isinstance(found, Refusal):
                return answer(trialreport.page(found), 200, KEPT)
        except Exception as fault:
            number = render.incident(fault, f"GET {PATH}")
            words = f"It is our fault, not yours. The log has it under the number {number}."
            return answer(trialreport.refused("Something went wrong here", words), 500)
        response = answer(trialreport.refused(*told(found)), found.status)
        if "retry_after_ms" in found.detail:
            response.headers["retry-after"] = str(-(-int(found.detail["retry_after_ms"]) // 1000))
        return response


def answer(text: str, status: int, kept: str = "no-store") -> Response:
    """A page with the headers of each."""
    response = Response(text.encode(), status)
    response.headers.update(
        {
            "content-type": "text/html; charset=utf-8",
            "content-security-policy": trialreport.policy(),
            "x-content-type-options": "nosniff",
            "x-frame-options": "DENY",
            "referrer-policy": "no-referrer",
            "cache-control": kept,
        }
    )
    return response


def told(refusal: Refusal) -> tuple[str, str]:
    """A title and a sentence for a refusal."""
    if refusal.code == "NOT_FOUND":
        return "There is nothing like that here", "No artifact has this ref."
    if refusal.code in BUSY:
        return "Not just now", f"The broker can’t do this at the moment. Try again in {wait_words(refusal)}."
    if refusal.detail.get("reason") == "kind":
        return "This is no trial", "The ref is of something else. /verify checks a session of the arena."
    return "This can’t be shown", sentence(refusal.message)
