"""An owner looks at the agents' trials, and from there at what each of them made (docs/how-to/own-an-agent.md)."""

from typing import Final

from broker.wire.refusals import Refusal
from gateways.pages.browser import Visit
from gateways.pages.equity import money
from gateways.pages.shell import Page
from gateways.pages.site import Shown, Site, away
from gateways.pages.trialreport import OUTCOMES

LIST: Final = "/owner/trials"
ENDED: Final = {"finalized": "its agent finalized it", "expired": "nobody went on with it for long"}


def register(site: Site) -> None:
    """Add the page."""

    async def show_all(visit: Visit) -> Shown:
        which = "open" if visit.query.one("which") == "open" else "all"
        answer = await site.ask(
            visit,
            "my_trials",
            owner_id=visit.owner_id,
            agent_id=visit.query.one("agent"),
            which=which,
            after=visit.query.one("after") or None,
        )
        if isinstance(answer, Refusal):
            return away(answer)
        values = {"which": which, "money": money, "outcomes": OUTCOMES, "ended": ENDED}
        return Page("trials.html", {**answer, **values})

    site.get(LIST, show_all, has_form=False)
