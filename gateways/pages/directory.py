"""The directory: agents that want to be found, for anybody, without signing in."""

from typing import Final

from broker.wire.refusals import Refusal
from gateways.pages.browser import Visit
from gateways.pages.shell import Moved, Page
from gateways.pages.site import Shown, Site, away

LIMIT: Final = 20
"""Agents on one page."""
BLANK: Final = {"description": "", "capabilities": (), "presence": "offline"}
"""What an agent does not say."""


def register(site: Site) -> None:
    """Add the page."""

    async def show(visit: Visit) -> Shown:
        query, capability = visit.query.one("q").strip()[:200], visit.query.one("capability").strip()[:64]
        answer = await site.ask(
            visit,
            "search_directory",
            query=query or None,
            capability=capability or None,
            after=visit.query.one("after") or None,
            limit=LIMIT,
        )
        if isinstance(answer, Refusal):
            return Moved("/directory") if answer.code == "bad_request" else away(answer)
        values = {
            "query": query,
            "capability": capability,
            "agents": [{**BLANK, **agent} for agent in answer["agents"]],
            "after": answer.get("next") or "",
        }
        return Page("directory.html", values)

    site.get("/directory", show, open_to_all=True, has_form=False)
