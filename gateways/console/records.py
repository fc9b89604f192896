"""The audit: its events, and whether it holds."""

import json
from typing import Any

from broker.wire.refusals import Refusal
from gateways.console.site import Console, Shown, Visit, away
from gateways.pages.shell import Page


def register(console: Console) -> None:
    """Add the pages."""

    async def show(visit: Visit) -> Shown:
        query = visit.query
        given = {name: query.one(name).strip() for name in ("actor", "kind", "subject")}
        answer = await console.ask(
            visit.session,
            "list_audit_events",
            after=query.one("after") or None,
            limit=50,
            **{name: value or None for name, value in given.items()},
        )
        if isinstance(answer, Refusal):
            return away(answer, "/audit")
        events = [{"subject": None, **each, "said": said(each.get("detail"))} for each in answer["events"]]
        return Page("audit.html", {**given, "events": events, "next": answer.get("next", "")})

    async def verify(visit: Visit) -> Shown:
        answer = await console.ask(visit.session, "verify_audit_log")
        if isinstance(answer, Refusal):
            return away(answer, "/audit")
        without: dict[str, Any] = {"head": None, "first": None, "faults": [], "remarks": []}
        return Page("verified.html", {"verdict": {**without, **answer}})

    console.get("/audit", show)
    console.post("/audit/verify", verify)


def said(detail: dict[str, Any] | None) -> str:
    """An event's detail as one line of text."""
    return json.dumps(detail, ensure_ascii=False, sort_keys=True)[:2000] if detail else ""
