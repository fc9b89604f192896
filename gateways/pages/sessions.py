"""An owner watches the agents' sessions in the arena, and stops one (docs/how-to/watch-your-agents-play.md).

1. A page shows a session as it is, with or without scripts. While the session is open a script asks again every
   INTERVAL_S seconds, and is told 204 as long as nothing happened.
2. It stops asking when the session is over, the owner is signed out, or the page has been open for RESTS_MS: who asks
   is in use, and a page that was forgotten must not keep a browser signed in.
3. The form that stops is outside of what is renewed, with a key of its own: sent twice, it stops once.
"""

from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from broker.wire.refusals import Refusal
from gateways.pages import playwords as words
from gateways.pages.browser import Form, Visit, new_secret
from gateways.pages.chart import line, summary
from gateways.pages.shell import HEADERS, Moved, Page
from gateways.pages.site import Shown, Site, away

HTMX: Final = Path(__file__).parents[1] / "console" / "assets" / "htmx.min.js"
LIST: Final = "/owner/sessions"
ONE: Final = "/owner/session"
LIVE: Final = "/owner/session/live"
INTERVAL_S: Final = 3
RESTS_MS: Final = 3_600_000
NO_MORE: Final = 286
"""htmx takes what comes with it, and asks no more."""
POLICY: Final = {
    "content-security-policy": HEADERS["content-security-policy"] + "; script-src 'self'; connect-src 'self'"
}
"""Of a page that renews itself: our own script besides, and nothing else."""
DONE: Final[dict[str, str]] = {
    "stopped": "You stopped the session.",
    "over": "The session was over already.",
}
RESTED: Final = ("This page has been open for long, and does not renew itself any more.", "Look again")
SIGNED_OUT: Final = ("You are signed out.", "Sign in")
GONE: Final = ("There is no such session any more.", "Look again")


def register(site: Site) -> None:
    """Add the pages."""
    _add_list(site)
    _add_one(site)
    _add_live(site)


def _add_list(site: Site) -> None:
    async def show_all(visit: Visit) -> Shown:
        which, answer = await site.ask_list(visit, "my_sessions")
        if isinstance(answer, Refusal):
            return away(answer)
        return Page("sessions.html", {**answer, "which": which, "words": words})

    site.get(LIST, show_all, has_form=False)


def _add_one(site: Site) -> None:
    script = site.asset("htmx.js", HTMX.read_bytes(), "text/javascript; charset=utf-8")

    async def show_one(visit: Visit) -> Shown:
        answer = await look(site, visit)
        if isinstance(answer, Refusal):
            return away(answer)
        values = {
            **view(answer, visit.query, since=answer["mark"]["now"]),
            "part": False,
            "script": script,
            "key": new_secret(),
            "done": DONE.get(visit.query.one("done"), ""),
        }
        return Page("session.html", values, headers=POLICY if values["open"] else {})

    async def stop(visit: Visit) -> Shown:
        session_id, key = visit.form.one("id"), visit.form.one("key")
        answer = await site.ask(
            visit, "stop_my_session", owner_id=visit.owner_id, session_id=session_id, key=key
        )
        if isinstance(answer, Refusal) and answer.code != "SESSION_OVER":
            return away(answer)
        done = "over" if isinstance(answer, Refusal) else "stopped"
        return Moved(f"{at(session_id)}&done={done}")

    site.get(ONE, show_one)
    site.post(ONE, stop)


def _add_live(site: Site) -> None:
    async def renew(visit: Visit) -> Shown:
        session_id, since = visit.query.one("id"), number(visit.query, "since") or 0
        if not visit.owner_id:
            return rest(SIGNED_OUT, session_id)
        mark = await site.ask(visit, "my_session_mark", owner_id=visit.owner_id, session_id=session_id)
        if isinstance(mark, Refusal):
            return away(mark) if mark.retryable else rest(GONE, session_id)
        if mark["now"] - since > RESTS_MS:
            return rest(RESTED, session_id)
        if mark["mark"] == visit.query.one("mark"):
            return Page("nothing.html", status=204)
        answer = await look(site, visit)
        if isinstance(answer, Refusal):
            return away(answer)
        values = {**view(answer, visit.query, since=since), "part": True}
        return Page("session_live.html", values, 200 if values["open"] else NO_MORE)

    site.get(LIVE, renew, open_to_all=True, has_form=False)


async def look(site: Site, visit: Visit) -> Any:
    """The session that the address names, with the part of its history that it names; or the Refusal."""
    return await site.ask(
        visit,
        "my_session",
        owner_id=visit.owner_id,
        session_id=visit.query.one("id"),
        before=number(visit.query, "before"),
        rejected_before=number(visit.query, "rejected_before"),
    )


def at(session_id: str) -> str:
    """The address of a session's page."""
    return f"{ONE}?id={quote(session_id, safe='')}"


def view(answer: dict[str, Any], query: Form, *, since: int) -> dict[str, Any]:
    """What the templates say of a session. `since`: when the page was opened, in Unix milliseconds."""
    session, start = answer["session"], answer["points"]
    values = [start + net for net in answer["nets"]]
    told, done = summary(values), words.actions(session)
    address = at(session["session_id"])
    here = {name: number(query, name) for name in ("before", "rejected_before")}
    events, attempts = answer["events"], answer["attempts"]
    return {
        **{
            name: answer[name]
            for name in ("name", "suspended", "session", "events", "attempts", "kept", "facts")
        },
        "words": words,
        "told": told,
        "start": start,
        "open": session["status"] == "open",
        "interval": INTERVAL_S,
        "live": f"{LIVE}?{address.partition('?')[2]}{_more(here)}&since={since}&mark={answer['mark']['mark']}",
        "at": address,
        "chart": line(
            values,
            "Points, action by action",
            f"From {told.first[1]:,} to {told.last[1]:,} points; the least were {told.least[1]:,}, the most "
            f"{told.most[1]:,}.",
            ("opened", f"action {done:,}" if done else "no action"),
        ),
        "older": events[-1]["n"] if events and events[-1]["n"] > 1 else None,
        "first_page": here["before"] is None,
        "older_attempts": attempts[-1]["n"] if attempts and attempts[-1]["n"] > 0 else None,
        "first_attempts": here["rejected_before"] is None,
    }


def rest(why: tuple[str, str], session_id: str) -> Page:
    """In place of what was renewed: why it is not any more, and a way on."""
    values = {"said": why[0], "label": why[1], "link": at(session_id)}
    return Page("session_rests.html", values, NO_MORE)


def number(query: Form, name: str) -> int | None:
    """A whole number above 0 of the address; None for none, or what is none."""
    text = query.one(name)
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
    return value if 0 < value <= 9_007_199_254_740_991 else None


def _more(numbers: dict[str, int | None]) -> str:
    return "".join(f"&{name}={value}" for name, value in numbers.items() if value is not None)
