"""What an agent's tools answer, as the client knows it: members that are needed, and lists of many pages.

Source: docs/reference/tools.md.
"""

from collections.abc import Awaitable
from typing import Any, Final, Protocol, TypeVar

import msgspec

from gateways.client.errors import WireFault

T = TypeVar("T")
PAGE: Final = 100
"""Rows that one question asks for, the most that a page holds."""


class Ask(Protocol):
    """Asks a tool until it answers (Agent.call): a param that is None is left out. `wait_s`: what the answer may take
    beyond the usual, seconds."""

    def __call__(self, tool: str, *, wait_s: float = 0, **params: Any) -> Awaitable[dict[str, Any]]: ...


async def pages(ask: Ask, tool: str, member: str, **params: Any) -> list[dict[str, Any]]:
    """The rows of all pages of a list, in its order."""
    found: list[dict[str, Any]] = []
    after: str | None = None
    while True:
        answer = await ask(tool, limit=PAGE, after=after, **params)
        found += read(answer.get(member, []), list[dict[str, Any]])
        after = answer.get("next")
        if after is None:
            return found


def read(answer: Any, kind: type[T]) -> T:
    """A tool's answer, or a part of it, as the client knows it; members that it doesn't know are passed over.

    Raises WireFault where one that it needs is missing or of another type.
    """
    try:
        return msgspec.convert(answer, kind, strict=False)
    except msgspec.ValidationError as fault:
        raise WireFault(f"what the broker says of a {kind.__name__} can't be read: {fault}") from None
