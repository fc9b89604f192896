"""All pages of the console, added to the operators' port."""

from collections.abc import Mapping

from quart import Quart

from broker.app import Broker
from gateways.console import account, agents, calls, health, live, records, reports, trials
from gateways.console.live import Counts
from gateways.console.site import Console
from gateways.operator.gate import OperatorGate


def register(
    app: Quart, broker: Broker, gate: OperatorGate, *, counts: Mapping[tuple[str, str], int] | None = None
) -> None:
    """Add the pages. `counts`: calls by (tool, outcome) since the start, read where refusals are shown."""
    console = Console(app, broker, gate)
    seen = Counts(broker, counts if counts is not None else {})
    account.register(console)
    live.register(console, seen)
    health.register(console, seen)
    for pages in (calls, reports, agents, records, trials):
        pages.register(console)
