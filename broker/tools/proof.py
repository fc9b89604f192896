"""Signed statements: checked in the order of wire.md (shape, wire, replay, signature, nonce, ts)."""

import hashlib
from typing import Any

import msgspec

from broker.actors.once import Once
from broker.store.port import Remembered
from broker.store.stored import stored
from broker.tools.access import unheard
from broker.tools.context import Caller, Context, Services
from broker.tools.lookup import resolve, unknown_desk
from broker.wire.ids import SIG, Pk
from broker.wire.refusals import Refusal, refuse
from broker.wire.statement import Statement, check_time, check_wire, read_statement

NONCE_KEPT_S = 600
"""A used nonce is kept this long past the window in which its statement was good."""


class Proven(msgspec.Struct, frozen=True):
    """A statement whose signature is good, and what to remember of it."""

    statement: Statement
    once: Once


async def prove(
    context: Context, text: bytes, sig: str, do: str, new_sig: str | None = None
) -> Proven | dict[str, Any] | Refusal:
    """Check a statement that changes something. A dict is the stored answer of the identical statement."""
    services = context.services
    statement = _read(services, text, sig, do)
    if isinstance(statement, Refusal):
        return statement
    digest = hashlib.sha256(statement.canonical + sig.encode() + (new_sig or "").encode()).digest()
    scope = f"nonce:{statement.pk}"
    remembered = await services.store.recall(scope, statement.nonce)
    answer = _answered(remembered, digest, scope)
    if answer is not None:
        return answer
    refused = await check_signature(context, statement.pk, statement.canonical, sig, "bad_statement")
    if refused is None and new_sig is not None:
        new_pk = str(statement.members["new_pk"])
        refused = await check_signature(
            context, new_pk, statement.canonical, new_sig, "bad_statement", "new_sig"
        )
    if refused is not None:
        return refused
    if remembered is not None:
        return _used()
    stale = _stale(services, statement)
    if stale is not None:
        return stale
    until = (statement.ts + services.settings.calls.skew_s + NONCE_KEPT_S) * 1000
    return Proven(statement, Once(scope, statement.nonce, digest, until))


async def settle(context: Context, proven: Proven) -> dict[str, Any] | Refusal | None:
    """Before answering a proven statement without having written: whether its nonce was used meanwhile.

    The identical statement sent twice at once is done once: the other one gets the stored answer, and not a refusal
    for what was done. None: the nonce is unused.
    """
    once = proven.once
    remembered = await context.services.store.recall(once.scope, once.key)
    if remembered is None:
        return None
    return _answered(remembered, once.digest, once.scope) or _used()


async def capability(context: Context, text: bytes, sig: str) -> Caller | Refusal:
    """Check a follow statement: the caller with the key (and code) that it may read for. Never stored."""
    services = context.services
    statement = await _followed(context, text, sig)
    if isinstance(statement, Refusal):
        return statement
    stale = _stale(services, statement)
    if stale is not None:
        return stale
    until = int(statement.members["until"])
    code = statement.members.get("code")
    if code is not None:
        row = await resolve(services, str(code))
        if row is None:
            return unknown_desk(str(code))
        if row.pk != statement.pk:
            return refuse("not_a_party", "the code does not resolve to this key")
    return msgspec.structs.replace(
        context.caller, pk=Pk(statement.pk), code=str(code) if code is not None else None, until=until
    )


async def _followed(context: Context, text: bytes, sig: str) -> Statement | Refusal:
    """A follow statement with a good signature, which is verified once: whoever polls sends the same one again."""
    services, caller = context.services, context.caller
    known = services.follows.find(text, sig)
    if known is not None:
        return services.guard.check(caller.address, caller.exempt) or known
    statement = _read(services, text, sig, "follow")
    if isinstance(statement, Refusal):
        return statement
    refused = await check_signature(context, statement.pk, statement.canonical, sig, "bad_statement")
    if refused is None:
        services.follows.remember(text, sig, statement)
    return refused or statement


async def authentication(context: Context, text: bytes, sig: str, challenge: str) -> Caller | Refusal:
    """Check an authenticate statement against its connection's challenge. Neither stored nor replayed."""
    services = context.services
    statement = _read(services, text, sig, "authenticate")
    if isinstance(statement, Refusal):
        return statement
    refused = await check_signature(context, statement.pk, statement.canonical, sig, "bad_statement")
    if refused is not None:
        return refused
    if statement.nonce != challenge:
        return refuse("bad_statement", "the nonce is not this connection's challenge", path="nonce")
    stale = _stale(services, statement)
    if stale is not None:
        return stale
    return msgspec.structs.replace(
        context.caller, pk=Pk(statement.pk), code=None, until=None, authenticated=True
    )


async def reader(context: Context, statement: bytes | None, sig: str | None) -> Caller | Refusal:
    """The caller that may read a stream or its own conversations: by statement, or as the door admitted it."""
    if statement is None and sig is None:
        if context.caller.pk is None and context.caller.agent is not None:  # no other token would do
            return refuse(
                "not_a_party",
                "a token speaks for no key here: show a follow statement of it (statement and sig)",
            )
        if context.caller.pk is None:
            return unheard(
                context.caller, "this needs a follow statement of your key (statement and sig), or a token"
            )
        return await _still(context.services, context.caller)
    if statement is None or sig is None:
        missing = "statement" if statement is None else "sig"
        return refuse("bad_request", "statement and sig go together", path=missing)
    return await capability(context, statement, sig)


async def _still(services: Services, caller: Caller) -> Caller | Refusal:
    """A capability that a door admitted earlier: past its `until`, or after its desk moved or closed, it is over."""
    if caller.until is not None and caller.until * 1000 <= services.clock.now_ms():
        return refuse("bad_statement", "its time has passed; sign a new one", path="until")
    if caller.code is not None:
        row = await resolve(services, caller.code)
        if row is None:
            return unknown_desk(caller.code)
        if row.pk != caller.pk:
            return refuse("desk_moved", f"{caller.code} has moved to another key", pk=row.pk)
    return caller


async def check_signature(
    context: Context, pk: str, message: bytes, sig: str, code: str, path: str = "sig"
) -> Refusal | None:
    """Step 8: the guessing limit, then the signature. A bad one costs the address a guess."""
    guard, caller = context.services.guard, context.caller
    stopped = guard.check(caller.address, caller.exempt)
    if stopped is not None:
        return stopped
    if await context.services.verifier.verify(pk, message, sig):
        return None
    return forged(context, message, code, path)


def forged(context: Context, message: bytes, code: str, path: str = "sig") -> Refusal:
    """The refusal of a signature that does not verify; it costs the address a guess."""
    guard, caller = context.services.guard, context.caller
    if not caller.exempt:
        guard.bad_signature(caller.address)
    return refuse(
        code,
        "the signature does not verify over this canonical text; sign exactly these bytes",
        path=path,
        canonical=message.decode(),
        sha256=hashlib.sha256(message).hexdigest(),
    )


def _answered(remembered: Remembered | None, digest: bytes, scope: str) -> dict[str, Any] | None:
    """The stored answer, if it is that of the identical statement."""
    if remembered is not None and remembered.digest == digest:
        return {**stored(dict[str, Any], remembered.outcome, "answer", scope), "replayed": True}
    return None


def _used() -> Refusal:
    return refuse("bad_statement", "this nonce was used for another statement", path="nonce")


def _read(services: Services, text: bytes, sig: str, do: str) -> Statement | Refusal:
    statement = read_statement(text, do=do)
    if isinstance(statement, Refusal):
        return statement
    if SIG.fullmatch(sig) is None:
        return refuse("bad_statement", "sig is 128 lowercase hex characters", path="sig")
    return check_wire(statement, services.keyring.opening) or statement


def _stale(services: Services, statement: Statement) -> Refusal | None:
    return check_time(statement, services.clock.now_ms() // 1000, services.settings.calls.skew_s)
