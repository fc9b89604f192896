"""Reports about agents: what waits, what was said, and what became of it."""

from typing import Final

from broker.wire.refusals import Refusal
from gateways.console.site import Console, Shown, Visit, away
from gateways.pages.shell import Moved, Page
from gateways.pages.site import sentence

OUTCOMES: Final = {
    "dismissed": "Dismissed: no measure",
    "warned": "Warned: the agent is told",
    "suspended": "Suspended: the agent is suspended now",
    "deleted": "Deleted: the agent was deleted",
    "other": "Other",
}


def register(console: Console) -> None:
    """Add the pages."""

    async def show(visit: Visit) -> Shown:
        status = visit.query.one("status") or "open"
        answer = await console.ask(
            visit.session,
            "list_reports",
            status=None if status == "all" else status,
            target_agent_id=visit.query.one("about") or None,
            after=visit.query.one("after") or None,
        )
        if isinstance(answer, Refusal):
            return away(answer, "/reports")
        values = {
            "reports": [{"note": "", **each} for each in answer["reports"]],
            "next": answer.get("next", ""),
            "status": status,
            "about": visit.query.one("about"),
            "outcomes": OUTCOMES,
            "done": "The report is resolved, and who reported is told." if visit.query.one("done") else "",
            "errors": {},
        }
        return Page("reports.html", values)

    async def resolve(visit: Visit) -> Shown:
        form = visit.form
        outcome, target, key = form.one("outcome"), form.one("target_agent_id"), form.one("key")
        if outcome not in OUTCOMES:
            return away_with("Choose what became of the report.")
        note = form.one("note").replace("\r\n", "\n").strip()
        if outcome == "suspended":
            held = await console.ask(
                visit.session,
                "suspend_agent",
                agent_id=target,
                reason=reason_of(note),
                idempotency_key=f"s-{key}",
            )
            if isinstance(held, Refusal):
                return away(held, "/reports")
        answer = await console.ask(
            visit.session,
            "resolve_report",
            report_id=form.one("report_id"),
            outcome=outcome,
            note=note,
            idempotency_key=key,
        )
        return away(answer, "/reports") if isinstance(answer, Refusal) else Moved("/reports?done=resolved")

    console.get("/reports", show)
    console.post("/reports", resolve)


def reason_of(note: str) -> str:
    """Why an agent is suspended, where a report led to it."""
    return (note or "a report about it")[:500]


def away_with(words: str) -> Page:
    """A form that lacks something."""
    return Page(
        "message.html", {"title": "Something is missing", "text": sentence(words), "back": "/reports"}, 400
    )
