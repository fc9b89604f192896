"""All pages, added to the public port's application."""

from collections.abc import Sequence

from quart import Quart

from broker.app import Broker
from gateways.listen import Network
from gateways.pages import account, consent, directory, owned, sessions, trials
from gateways.pages.site import Site


def register(
    app: Quart, broker: Broker, *, proxies: Sequence[Network] = (), public_url: str | None = None
) -> None:
    """Add the pages. `public_url`: where browsers find us, if that is not the address they connect to."""
    site = Site(app, broker, proxies=proxies, public_url=public_url)
    for pages in (account, owned, sessions, trials, consent, directory):
        pages.register(site)
