"""What makes a resource change: a source of wake-ups for subscriptions/listen and resources/subscribe.

1. A watcher reads its owner's stream by position, as every other reader does; nobody is woken by who wrote.
2. A wake-up says "read it again" and nothing else: what was written never travels in it.
3. Only who proved the key that owns the stream may watch it; watching counts for presence.
"""

import re
from collections.abc import Callable
from types import TracebackType
from typing import Final

import msgspec

from broker.app import Broker, Delivery, Ended, Reader, Slow
from broker.wire.refusals import Refusal, refuse
from gateways.mcp.surface import Ask, Missing, Updates, Watch

_RINGS: Final = re.compile(r"turret://desk/([A-Z]{4})/rings")
_CONV: Final = re.compile(r"turret://conv/([0-9a-f]{16})")
_MISSING: Final = frozenset({"unknown_conv", "unknown_desk", "not_found"})


class _Conv(msgspec.Struct):
    """The one member of an event that is looked at."""

    conv: str | None = None


class StreamUpdates:
    """A reader's events, narrowed to those that change one resource. See surface.Updates."""

    def __init__(self, reader: Reader, concerns: Callable[[Delivery], bool]) -> None:
        self._reader = reader
        self._concerns = concerns

    async def __aenter__(self) -> "StreamUpdates":
        await self._reader.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._reader.__aexit__(kind, error, trace)

    async def changed(self) -> bool:
        """Wait until the resource has changed; False when the right to watch it has ended. Cancelling is safe."""
        while True:
            try:
                deliveries = await self._reader.receive()
            except (Ended, Slow):
                return False
            if any(self._concerns(each) for each in deliveries):
                return True


def watcher(broker: Broker) -> Watch:
    """How the wire's resources are watched: turret://desk/<code>/rings and turret://conv/<conv>."""

    async def watch(ask: Ask, uri: str) -> Updates | Missing | Refusal:
        if found := _RINGS.fullmatch(uri):
            code: str | None = found[1]
            concerns: Callable[[Delivery], bool] = _is_ring
        elif found := _CONV.fullmatch(uri):
            code, concerns = None, _about(found[1])
            refusal = await _may_watch(broker, ask, found[1])
            if refusal is not None:
                return Missing(uri) if refusal.code in _MISSING else refusal
        else:
            return Missing(uri)
        if ask.caller.pk is None:
            return refuse("unauthenticated", "watching needs a proof of the key that owns the stream")
        reader = await broker.follow(ask.caller, code=code)
        if isinstance(reader, Refusal):
            return Missing(uri) if reader.code in _MISSING else reader
        return StreamUpdates(reader, concerns)

    return watch


def _is_ring(delivery: Delivery) -> bool:
    return delivery.kind == "ring"


def _about(conv: str) -> Callable[[Delivery], bool]:
    def concerns(delivery: Delivery) -> bool:
        return msgspec.json.decode(delivery.params, type=_Conv).conv == conv

    return concerns


async def _may_watch(broker: Broker, ask: Ask, conv: str) -> Refusal | None:
    """A conversation is watched on a party's own stream, so that only a party can."""
    page = await broker.call(ask.caller, "read_conv", msgspec.json.encode({"conv": conv, "limit": 1}))
    if isinstance(page, Refusal):
        return page
    parties = (page.parties.caller.pk, page.parties.called.pk)
    if ask.caller.pk is not None and ask.caller.pk not in parties:
        return refuse("not_a_party", "a conversation is watched by its parties")
    return None
