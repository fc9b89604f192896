"""Who may call a tool of the network: a token, its standing, its scope, its subject (network.md, Sign-in).

1. The order is the order of the answers: without a token nothing else is told.
2. Who listens by a token (an agent's stream, its desks', its conversations) needs LISTEN: these hold its messages.
3. What waits or is read ends with the right by which it began.
"""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from typing import Final, TypeVar

import trio

from broker.actors.reader import OVER, Reader
from broker.tools.context import Caller, Context, Services
from broker.wire.refusals import Refusal, refuse

T = TypeVar("T")
LISTEN: Final = "message"
"""The scope for reading streams and transcripts by a token."""
_RUN_OUT: Final = refuse("unauthenticated", "the token has run out; get a new one")
_AGENT: Final = refuse(
    "agent_required", "this acts for an agent; sign in again and choose one of your agents there"
)


async def allowed(context: Context, scope: str, agent: bool, also: str | None = None) -> Refusal | None:
    """None where the caller's token speaks for somebody in good standing, with `scope` (or `also`), and where `agent`
    for an agent."""
    caller = context.caller
    if caller.principal is None:
        said = "this needs a token: `Authorization: Bearer <token>`, or `authenticate` on a WebSocket"
        return refuse("unauthenticated", said, scope=scope)
    refused = await context.services.standing.judge(caller)
    if refused is not None:
        return refused
    if scope not in caller.scopes and (also is None or also not in caller.scopes):
        return lacking(scope)
    if agent and caller.agent is None:
        return _AGENT
    if caller.agent is not None:
        context.services.activity.note(caller.agent)
    return None


def me(context: Context) -> str:
    """The agent that calls. The registry has looked that there is one."""
    agent = context.caller.agent
    assert agent is not None
    return agent


def lacking(scope: str) -> Refusal:
    """insufficient_scope, with the scope that would do."""
    return refuse("insufficient_scope", f"this needs a token with the scope {scope}", scope=scope)


def may_listen(caller: Caller) -> Refusal | None:
    """Whether a caller's token is good for listening to what is its agent's; None: it is."""
    return None if LISTEN in caller.scopes else lacking(LISTEN)


def unheard(caller: Caller, words: str) -> Refusal:
    """Why nothing is heard by who has neither a key nor an agent: `words`, or (its token is good, and speaks for an
    owner) agent_required. A 401 would have a client get another such token, and another."""
    owner = caller.principal is not None and caller.agent is None
    return _AGENT if owner else refuse("unauthenticated", words)


def run_out(caller: Caller) -> Refusal:
    """Why a caller's right ends at its `until`: a statement's time, or a token's."""
    return OVER if caller.pk is not None else _RUN_OUT


async def open_reader(
    context: Context,
    stream: str,
    after: str | None,
    *,
    code: str | None = None,
    held: ExitStack | None = None,
) -> Reader | Refusal:
    """A reader of a stream after a cursor, which ends at once where the caller's right to speak ends; or why that has
    ended by now. `code`: the desk through which it is followed. `held` is left when the reader closes.

    Enter or close the reader. Raises what the store raises. Cancelling subscribes nothing; where no reader comes of it
    `held` is left too.
    """
    services, caller = context.services, context.caller
    held = held or ExitStack()
    try:
        reader = await services.hub.read(
            stream, after, code=code, until=caller.until, over=run_out(caller), held=held
        )
    except BaseException:
        held.close()
        raise
    try:
        # Whose right is over gets nothing more, also of what waits for it.
        held.enter_context(services.standing.hold(caller, partial(reader.end, at_once=True)))
        refused = await services.standing.judge(caller)  # it may have ended before it was held
    except BaseException:
        reader.close()
        raise
    if refused is not None:
        reader.close()
        return refused
    return reader


async def while_allowed(services: Services, caller: Caller, run: Callable[[], Awaitable[T]]) -> T | Refusal:
    """What `run` gives; or why the caller may not speak, now or from a moment while it ran: it is then cancelled.

    Only for what loses nothing when it is cancelled. Cancelling cancels `run`. Who has proved nothing has no right
    that could end.
    """
    if caller.identity is None:
        return await run()
    refused = await services.standing.judge(caller)
    if refused is not None:
        return refused
    why = run_out(caller)
    left = float("inf") if caller.until is None else caller.until - services.clock.now_ms() / 1000
    with trio.move_on_after(max(0.0, left)) as scope:

        def end(refusal: Refusal) -> None:
            nonlocal why
            why = refusal
            scope.cancel()

        with services.standing.hold(caller, end):
            return await run()
    return why
