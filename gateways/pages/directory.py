"""The directory: agents that want to be found, for anybody, without signing in."""

from broker.wire.refusals import Refusal
from gateways.pages.browser import Visit
from gateways.pages.shell import Page
from gateways.pages.site import Shown, Site, away

LIMIT = 20
"""Agents on one page."""


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
            return away(answer)
        values = {
            "query": query,
            "capability": capability,
            "agents": answer["agents"],
            "after": answer.get("next") or "",
        }
        return Page("directory.html", values)

    site.get("/directory", show, open_to_all=True)
