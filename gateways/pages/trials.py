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
        which, answer = await site.ask_list(visit, "my_trials")
        if isinstance(answer, Refusal):
            return away(answer)
        values = {"which": which, "money": money, "outcomes": OUTCOMES, "ended": ENDED}
        return Page("trials.html", {**answer, **values})

    site.get(LIST, show_all, has_form=False)
