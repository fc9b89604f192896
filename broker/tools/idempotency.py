"""idempotency_key: the identical request has one effect and one answer (network.md, Idempotency).

1. A key belongs to a subject and a tool, and is bound to one request: sha256 of the canonical arguments without it.
2. Kept 30 days, with the effect, in one commit: successes and final refusals. What may turn out otherwise on the next
   try is not kept: conflicts, limits, sign-in, a store that gives nothing, faults.
3. Of identical requests at once one is done; the others wait for its answer, 10 s at most, and are then in doubt.
"""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

import msgspec
import trio
from msgspec import Meta

from broker.actors.once import MISMATCH, PARAM, Once, read_outcome
from broker.store.port import Conflict, InDoubt, Remembered, Unavailable, Unit
from broker.tools.context import Context
from broker.wire.canonical import without
from broker.wire.refusals import Refusal, refuse

KEPT_MS: Final = 30 * 86_400_000
WAIT_S: Final = 10.0
PASSING: Final = frozenset(
    {
        "unauthenticated",
        "insufficient_scope",
        "agent_required",
        "suspended",
        "quota_exceeded",
        "LIMIT_EXCEEDED",
    }
)
"""Refusals that no repetition makes better by itself, and that are none of the request's own: never kept."""
KeyText = Annotated[
    str,
    Meta(
        pattern=r"^[!-~]{1,128}$(?!\n)",
        description="a name of your own for this request, 1 to 128 printable characters: sent again with the same "
        "arguments, it has no second effect and gets the first answer",
    ),
]
KeyParam = KeyText | None

Run = Callable[[Context], Awaitable[Any]]


def digest_of(text: bytes) -> bytes | Refusal:
    """What binds a key to one request: sha256 of its arguments (as JSON, `text`) in canonical form, without the key."""
    canonical = without(text, PARAM)
    return canonical if isinstance(canonical, Refusal) else hashlib.sha256(canonical).digest()


def bind(context: Context, tool: str, key: str, digest: bytes) -> Once:
    """What a request's key is remembered by."""
    until = context.services.clock.now_ms() + KEPT_MS
    return Once(f"key:{_subject(context)}:{tool}", key, digest, until)


def _subject(context: Context) -> str:
    return context.caller.principal or context.caller.pk or "operator"


async def run_once(context: Context, once: Once, run: Run) -> Any:
    """Run a tool under a key, or give the answer that the identical request got.

    Refusals of its own: IDEMPOTENCY_MISMATCH; in_doubt where the first is still under way; rate_limited. Cancelling
    ends the wait; a command that reached its actor goes on.
    """
    underway, stored = context.services.underway, await _stored(context, once)
    if stored is None and underway.digest(once.scope, once.key) is not None:
        stored = await _wait(context, once)
    if stored is not None:
        return stored
    rate, subject = context.services.key_rate, _subject(context)
    refused = rate.take(subject)
    if refused is not None:
        return refused
    with underway.doing(once.scope, once.key, once.digest):
        answer = await run(msgspec.structs.replace(context, once=once))
        if not isinstance(answer, Refusal):
            rate.weigh(subject, len(msgspec.json.encode(answer)))
            return answer
        return answer if answer.retryable else await _final(context, once, answer)


async def _wait(context: Context, once: Once) -> Any:
    """Wait for the request that is being done under the key: its answer, or why there is none; None: it has none, and
    this one is to be done. No checkpoint lies between that and the last look."""
    underway = context.services.underway
    with trio.move_on_after(WAIT_S):
        while True:
            digest = underway.digest(once.scope, once.key)
            if digest is None:
                return None
            if digest != once.digest:
                return MISMATCH
            await underway.wait_over(once.scope, once.key)
            stored = await _stored(context, once)
            if stored is not None:
                return stored
    return refuse("in_doubt", "the first request under this key is still under way; send it again later")


def read_stored(once: Once, remembered: Remembered | None) -> Any:
    """The answer remembered for the identical request, IDEMPOTENCY_MISMATCH for another one, None for none.

    A key whose time is over holds until it is swept: another request could not be remembered under it.
    """
    if remembered is None:
        return None
    return read_outcome(remembered) if remembered.digest == once.digest else MISMATCH


async def _stored(context: Context, once: Once) -> Any:
    return read_stored(once, await context.services.store.recall(once.scope, once.key))


async def _final(context: Context, once: Once, refusal: Refusal) -> Any:
    """What a refusal that no repetition makes better is answered with. It is remembered already where an actor wrote
    something with it; and an earlier try whose caller left may have been done just before: then that is the answer."""
    stored = await _stored(context, once)
    if stored is not None:
        return stored
    return refusal if refusal.code in PASSING else await _keep(context, once, refusal)


async def _keep(context: Context, once: Once, refusal: Refusal) -> Any:
    """Remember a refusal that nothing was written with. Another node may have been faster."""
    try:
        await context.services.store.commit(Unit(remember=once.remember(refusal)))
    except Conflict:
        return await _stored(context, once) or refusal
    except (Unavailable, InDoubt):
        return refuse("unavailable", "the answer could not be kept; nothing was written, send it again later")
    return refusal
