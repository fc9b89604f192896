"""Whether the broker is well: readiness, the store, what waits in memory, and refusals by code."""

from typing import Any

import msgspec

from gateways.console.live import Counts
from gateways.console.site import Console, Shown, Visit
from gateways.pages.shell import Page


def register(console: Console, counts: Counts) -> None:
    """Add the page."""

    async def show(visit: Visit) -> Shown:
        figures = counts.figures()
        info = console.broker.wire_info()
        values = {"groups": groups_of(figures), "version": info["version"], "wire_keys": info["wire_keys"]}
        return Page("health.html", {**figures, **values})

    console.get("/health", show)


def groups_of(figures: dict[str, Any]) -> dict[str, dict[str, int | float]]:
    """The plain numbers of those statistics that are a part's own: the store's, what is sent to webhooks …"""
    parts = {name: value for name, value in figures.items() if isinstance(value, msgspec.Struct)}
    groups = {name: numbers_of(msgspec.structs.asdict(value)) for name, value in parts.items()}
    return {name: numbers for name, numbers in groups.items() if numbers}


def numbers_of(figures: dict[str, Any]) -> dict[str, int | float]:
    """The plain numbers of some statistics, by their words."""
    return {
        name.replace("_", " "): value for name, value in figures.items() if isinstance(value, int | float)
    }
