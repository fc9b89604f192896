"""What is traced, for who looks at requests from end to end; nothing, unless the settings ask for it (trace.enabled).

Doors, broker, store and the way out are each wrapped once, at the composition root: nothing inside knows of it, and
without it nothing is wrapped.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol, TypeVar

from broker.app import Broker, Courier
from broker.config import Trace
from gateways.listen import App, Network

S = TypeVar("S")
"""A store: gateways do not know which."""
MISSING: Final = "trace.enabled needs OpenTelemetry: pip install 'turret[otel]'"


class CanNotTrace(Exception):
    """The message is one line for a person."""


class Traces(Protocol):
    """Wraps what is to have spans; each gives the same thing, traced."""

    def requests(self, app: App) -> App:
        """A span for each HTTP request; W3C traceparent is taken."""
        ...

    def calls(self, broker: Broker) -> Broker:
        """A span for each call of a tool."""
        ...

    def store(self, store: S) -> S:
        """A span for each commit."""
        ...

    def courier(self, courier: Courier) -> Courier:
        """A span for each delivery to a webhook, which is told the traceparent."""
        ...


class NoTraces:
    """Everything as it is."""

    def requests(self, app: App) -> App:
        return app

    def calls(self, broker: Broker) -> Broker:
        return broker

    def store(self, store: S) -> S:
        return store

    def courier(self, courier: Courier) -> Courier:
        return courier


def open_traces(settings: Trace, proxies: tuple[Network, ...] = ()) -> AbstractAsyncContextManager[Traces]:
    """Traces by the settings and, for where they go, by OpenTelemetry's own variables; all spans are sent on leaving.

    Raises CanNotTrace where the extra is not installed.
    """
    if not settings.enabled:
        return _none()
    try:
        from gateways.otel import open_exporting
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "opentelemetry":
            raise
        raise CanNotTrace(MISSING) from None
    return open_exporting(proxies)


@asynccontextmanager
async def _none() -> AsyncIterator[Traces]:
    yield NoTraces()
