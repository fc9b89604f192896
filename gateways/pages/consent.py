"""Consent: for whom an app may act, and what it may do (network.md, Identity; RFC 6749, 4.1).

The app's words are its own and are shown as such: nobody has looked whether they are true. Where the browser goes
afterwards is shown, since that is what can't be made up.
"""

from typing import Any, Final

from broker.wire.refusals import Refusal
from gateways.pages.browser import Visit
from gateways.pages.owned import SCOPE_WORDS
from gateways.pages.shell import Page
from gateways.pages.site import Shown, Site, away, message

WRONG_FIELD: Final = {
    "subject": ("subject", "This agent is not yours any more. Choose another."),
    "scopes": ("scope", "Tick at least one thing that the app may do, or don’t allow it."),
}
"""Which of our fields a refused decision is about, by the path that it names, and what to say there."""


def register(site: Site) -> None:
    """Add the page. GET /oauth/authorize leads here with `ask`, the request that waits."""

    async def show(visit: Visit) -> Shown:
        return await consent_page(visit, visit.query.one("ask"), {})

    async def consent_page(visit: Visit, ask: str, errors: dict[str, str]) -> Shown:
        asked = await site.ask(visit, "authorization_request", ask=ask)
        if isinstance(asked, Refusal):
            return gone(asked)
        owned = await site.ask(visit, "my_agents", owner_id=visit.owner_id)
        if isinstance(owned, Refusal):
            return away(owned)
        ticked = visit.form.many("scope") if errors else asked["scopes"]
        values = {
            "ask": ask,
            "asked": asked,
            "agents": owned["agents"],
            "owner_id": visit.owner_id,
            "subject": visit.form.one("subject") or ("" if owned["agents"] else visit.owner_id),
            "ticked": ticked,
            "words": SCOPE_WORDS,
            "errors": errors,
        }
        return Page("consent.html", values, 400 if errors else 200)

    async def decide(visit: Visit) -> Shown:
        form = visit.form
        ask, allow = form.one("ask"), form.one("decision") == "allow"
        decision: dict[str, Any] = {"scopes": form.many("scope"), "subject": form.one("subject")}
        if allow:
            errors: dict[str, str] = {}
            if not decision["subject"]:
                errors["subject"] = "Choose for whom the app may act."
            if not decision["scopes"]:
                errors.update([WRONG_FIELD["scopes"]])
            if errors:
                return await consent_page(visit, ask, errors)
        else:
            decision = {"scopes": [], "subject": visit.owner_id}
        answer = await site.ask(
            visit, "decide_authorization", ask=ask, owner_id=visit.owner_id, allow=allow, **decision
        )
        if isinstance(answer, Refusal):
            field = WRONG_FIELD.get(str(answer.detail.get("path")))
            return gone(answer) if field is None else await consent_page(visit, ask, dict([field]))
        assert answer["redirect"].startswith(("https://", "http://"))  # it becomes a link: never javascript:
        return Page("back.html", {"redirect": answer["redirect"], "allowed": allow})

    site.get("/consent", show)
    site.post("/consent", decide)


def gone(refusal: Refusal) -> Page:
    """The request can't be decided (any more)."""
    if refusal.code not in ("not_found", "bad_request"):
        return away(refusal)
    text = "It may be over, or it was answered already. Go back to the app, and start to sign in there again."
    return message("This request is not there any more", text, status=404)
