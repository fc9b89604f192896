"""What makes a resource change: a source of wake-ups for subscriptions/listen and resources/subscribe.

1. A watcher reads its owner's stream by position, as every other reader does; nobody is woken by who wrote.
2. A wake-up says "read it again" and nothing else: what was written never travels in it.
3. Rings are for who proved the key that owns the stream or bears its agent's token, an inbox for its agent's token,
   a channel for a member's, a conversation for who may read it. Only watching a stream of one's own counts for
   presence.
"""

import re
from collections.abc import Callable
from types import TracebackType
from typing import Final

import msgspec

from broker.app import Broker, Delivery, Ended, Reader, Slow
from broker.wire.ids import CHANNEL
from broker.wire.refusals import Refusal, refuse
from gateways.mcp.resources import INBOX, INBOX_SCOPE
from gateways.mcp.surface import Ask, Missing, Updates, Watch

_RINGS: Final = re.compile(r"turret://desk/([A-Z]{4})/rings")
_CONV: Final = re.compile(r"turret://conv/([0-9a-f]{16})")
_CHANNEL: Final = re.compile(rf"turret://channel/({CHANNEL.pattern})")
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
    """How resources are watched: turret://desk/<code>/rings, turret://conv/<conv>, turret://channel/<id>,
    turret://inbox."""

    async def watch(ask: Ask, uri: str) -> Updates | Missing | Refusal:
        if uri == INBOX:
            return await _inbox(broker, ask)
        if found := _RINGS.fullmatch(uri):
            return _or_missing(uri, await _own_stream(broker, ask, found[1], _is_ring))
        if found := _CONV.fullmatch(uri):
            return _or_missing(uri, await _conversation(broker, ask, found[1]))
        if found := _CHANNEL.fullmatch(uri):
            return _or_missing(uri, await _channel(broker, ask, found[1]))
        return Missing(uri)

    return watch


async def _inbox(broker: Broker, ask: Ask) -> Updates | Refusal:
    """An agent hears of its messages on its own stream; a key has no inbox."""
    if ask.caller.principal is None:
        return refuse("unauthenticated", "an inbox is read by its agent's token", scope=INBOX_SCOPE)
    if ask.caller.agent is None:
        return refuse("agent_required", "an owner has no inbox; choose one of your agents when you sign in")
    return await _own_stream(broker, ask, None, _is_message)


def _or_missing(uri: str, source: Updates | Refusal) -> Updates | Missing | Refusal:
    return Missing(uri) if isinstance(source, Refusal) and source.code in _MISSING else source


async def _own_stream(
    broker: Broker, ask: Ask, code: str | None, concerns: Callable[[Delivery], bool]
) -> Updates | Refusal:
    reader = await broker.follow(ask.caller, code=code)
    return reader if isinstance(reader, Refusal) else StreamUpdates(reader, concerns)


async def _conversation(broker: Broker, ask: Ask, conv: str) -> Updates | Refusal:
    """A party hears of it on its own stream; whoever else may read it, beside the streams.

    Where transcripts are for the parties alone, nobody else gets so far: they see unknown_conv.
    """
    page = await broker.call(ask.caller, "read_conv", msgspec.json.encode({"conv": conv, "limit": 1}))
    if isinstance(page, Refusal):
        return page
    if ask.caller.pk in (page.parties.caller.pk, page.parties.called.pk):
        return await _own_stream(broker, ask, None, _about(conv))
    return await broker.watch_conv(ask.caller, conv)


async def _channel(broker: Broker, ask: Ask, channel_id: str) -> Updates | Refusal:
    """Each message changes it. A wake-up shows none, so that it is not read by that."""
    reader = await broker.follow_channel(ask.caller, channel_id, reads=False)
    return reader if isinstance(reader, Refusal) else StreamUpdates(reader, lambda _: True)


def _is_ring(delivery: Delivery) -> bool:
    return delivery.kind == "ring"


def _is_message(delivery: Delivery) -> bool:
    return delivery.kind == "message"


def _about(conv: str) -> Callable[[Delivery], bool]:
    def concerns(delivery: Delivery) -> bool:
        return msgspec.json.decode(delivery.params, type=_Conv).conv == conv

    return concerns
