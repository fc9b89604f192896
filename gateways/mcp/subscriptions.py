"""Updates to clients: subscriptions/listen (2026-07-28), resources/subscribe and the GET stream.

1. An update says which resource to read again, and nothing of what is in it.
2. A listen is answered at its end; until then its stream carries its own updates, each with the listen's id.
3. Missed updates are not replayed: who connects again reads again.

Source: MCP 2026-07-28, Subscriptions; MCP 2025-11-25, Resources (Subscriptions).
"""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

import msgspec
import trio

from broker.app import Caller
from broker.wire.refusals import Refusal
from gateways import jsonrpc, render
from gateways.mcp.lists import FLAG, METHOD, Lists
from gateways.mcp.revisions import MODERN, RESOURCE_MISSING, SUBSCRIPTION_KEY, Fault
from gateways.mcp.sessions import MOST_SUBSCRIPTIONS, Session, Stream
from gateways.mcp.surface import Ask, Denied, Missing, Result, Updates, Watch, wants_token

WATCHED_S: Final = 1.0
"""Seconds that an answer to resources/subscribe waits at most until the session's stream has the resource open."""
LISTEN_S: Final = 3600.0
"""Seconds after which a listen ends by itself, gracefully; the client opens another."""
UPDATED: Final = "notifications/resources/updated"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

Told = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Puts a notification on a stream: its method and params."""
Source = tuple[str, dict[str, Any], Updates]
"""What may change, and the notification that says so."""


async def listen(watch: Watch | None, lists: Lists | None, ask: Ask, wanted: Any) -> Result:
    """Serve one listen until its client leaves, its rights or its time end, or the process stops.

    What can't be watched is left out of the acknowledgement; when that is everything, the first reason answers.
    """
    uris = _uris(wanted)
    if isinstance(uris, Fault):
        return uris
    mark = {SUBSCRIPTION_KEY: ask.id}

    async def told(method: str, params: dict[str, Any]) -> None:
        assert ask.notify is not None  # the rungs refuse a listen that takes no stream (406)
        await ask.notify(jsonrpc.notification(method, {**params, "_meta": mark}))

    async with AsyncExitStack() as stack:
        sources: list[Source] = []
        reasons: list[Fault | Denied] = []
        for uri in uris or ():
            source = await watch(ask, uri) if watch is not None else Missing(uri)
            if isinstance(source, Missing | Refusal):
                reasons.append(_why_not(source, ask.revision))
            else:
                sources.append((UPDATED, {"uri": uri}, source))
        if reasons and not sources:
            return reasons[0]
        honoured: dict[str, Any] = {}
        if uris is not None:
            honoured["resourceSubscriptions"] = [params["uri"] for _, params, _ in sources]
        for kind in lists.kinds if lists is not None else ():
            if wanted.get(FLAG[kind]):
                assert lists is not None  # it has kinds
                honoured[FLAG[kind]] = True
                sources.append((METHOD[kind], {}, lists.watch(kind)))
        for _, _, source in sources:
            await stack.enter_async_context(source)
        await told(ACKNOWLEDGED, {"notifications": honoured})
        async with trio.open_nursery() as nursery:
            nursery.cancel_scope.deadline = trio.current_time() + LISTEN_S
            nursery.start_soon(_end_with, ask.ending, nursery.cancel_scope)
            if sources:
                await tell(sources, told)
            else:
                await trio.sleep_forever()
            nursery.cancel_scope.cancel()
    return {"_meta": mark}


async def subscribe(watch: Watch, ask: Ask, uri: str) -> Result:
    """Have the session's stream tell of a resource's changes, from now on and on later streams."""
    if ask.session is None:
        return Fault(jsonrpc.INVALID_REQUEST, "a subscription needs a session: initialize first")
    later = Ask(caller=ask.caller, revision=ask.revision, meta={})
    source = await watch(later, uri)
    if isinstance(source, Missing | Refusal):
        return _why_not(source, ask.revision)
    async with source:  # opened to see that it can be; the session's stream opens its own
        pass

    def opened(caller: Caller) -> Awaitable[object]:
        return watch(msgspec.structs.replace(later, caller=caller), uri)

    if not ask.session.subscribe(uri, opened):
        return Fault(jsonrpc.INVALID_PARAMS, f"a session has at most {MOST_SUBSCRIPTIONS} subscriptions")
    if (stream := ask.session.stream) is not None:
        with trio.move_on_after(WATCHED_S):  # what changes right after our answer must not be missed
            await stream.wait_watched(uri)
    return {}


def unsubscribe(ask: Ask, uri: str) -> Result:
    """No more of it; what was not subscribed is no fault."""
    if ask.session is None:
        return Fault(jsonrpc.INVALID_REQUEST, "a subscription needs a session: initialize first")
    ask.session.unsubscribe(uri)
    return {}


async def tell(sources: Iterable[Source], told: Told) -> None:
    """Tell of every change, until all of these (entered) sources have ended."""

    async def one(method: str, params: dict[str, Any], source: Updates) -> None:
        while await source.changed():
            await told(method, params)

    async with trio.open_nursery() as nursery:
        for each in sources:
            nursery.start_soon(one, *each)


async def pump(session: Session, stream: Stream, caller: Caller, lists: Lists | None = None) -> None:
    """Put a session's updates on its stream, for what it is subscribed to at each moment, as whoever opened the stream
    may see them: its token may be younger than the subscription. Ends when cancelled.

    What was subscribed before the stream was there is told of once at its start: something may have been missed.
    Of `lists` every session hears.
    """
    running: dict[str, trio.CancelScope] = {}
    known = set(session.subscriptions)

    async def told(method: str, params: dict[str, Any]) -> None:
        stream.push(jsonrpc.notification(method, params))

    async def follow(uri: str, opener: Callable[[], Awaitable[object]], scope: trio.CancelScope) -> None:
        with scope:
            await _follow(opener, uri, told, partial(stream.watched, uri), missed=uri in known)
        stream.unwatched(uri)
        if running.get(uri) is scope:  # it ended by itself, and was not taken back meanwhile
            del running[uri]
            session.unsubscribe(uri)

    async with trio.open_nursery() as nursery:
        if lists is not None:
            nursery.start_soon(_follow_lists, lists, told)
        while True:
            for uri in [each for each in running if each not in session.subscriptions]:
                running.pop(uri).cancel()
            for uri in [each for each in session.subscriptions if each not in running]:
                running[uri] = trio.CancelScope()
                opener = partial(session.subscriptions[uri], caller)
                nursery.start_soon(follow, uri, opener, running[uri])
            await session.subscribed.wait()


async def _follow(
    opener: Callable[[], Awaitable[object]],
    uri: str,
    told: Told,
    watched: Callable[[], None],
    *,
    missed: bool,
) -> None:
    """One subscription while it lasts; a fault in it ends it alone. `watched` is called when it stands, or can't."""
    try:
        source = await opener()
        if not isinstance(source, Updates):
            watched()
        else:
            async with source:
                watched()
                if missed:
                    await told(UPDATED, {"uri": uri})
                await tell([(UPDATED, {"uri": uri}, source)], told)
    except* Exception as faults:
        watched()
        render.incident(faults, "mcp subscription")


async def _follow_lists(lists: Lists, told: Told) -> None:
    async with AsyncExitStack() as stack:
        sources: list[Source] = [(METHOD[kind], {}, lists.watch(kind)) for kind in lists.kinds]
        for _, _, source in sources:
            await stack.enter_async_context(source)
        await tell(sources, told)


async def _end_with(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


def _uris(wanted: Any) -> list[str] | Fault | None:
    """The resources that a listen names, each once; None when it names no list of them."""
    if not isinstance(wanted, dict):
        return Fault(jsonrpc.INVALID_PARAMS, "notifications must be an object")
    if not all(isinstance(wanted.get(name, False), bool) for name in FLAG.values()):
        return Fault(jsonrpc.INVALID_PARAMS, f"{', '.join(FLAG.values())} must be booleans")
    if "resourceSubscriptions" not in wanted:
        return None
    uris = wanted["resourceSubscriptions"]
    if not isinstance(uris, list) or not all(isinstance(each, str) for each in uris):
        return Fault(jsonrpc.INVALID_PARAMS, "resourceSubscriptions must be an array of strings")
    if len(uris) > MOST_SUBSCRIPTIONS:
        return Fault(jsonrpc.INVALID_PARAMS, f"at most {MOST_SUBSCRIPTIONS} resources can be watched at once")
    return list(dict.fromkeys(uris))


def missing(uri: str, revision: str) -> Fault:
    """No such resource, in the code of each era."""
    code = jsonrpc.INVALID_PARAMS if revision == MODERN else RESOURCE_MISSING
    return Fault(code, "no such resource", {"uri": uri})


def _why_not(source: Missing | Refusal, revision: str) -> Fault | Denied:
    if isinstance(source, Missing):
        return missing(source.uri, revision)
    if wants_token(source):
        return Denied(source)
    return Fault(jsonrpc.REFUSED, render.refusal_text(source), msgspec.to_builtins(source.body()))
