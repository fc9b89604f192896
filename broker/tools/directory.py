"""Desks and codes: who answers to which four letters, who is online, and the statements that change it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from broker.actors.deskcommands import CancelMove, Close, MayOpen, Move, Open, SetScreen, Suspend
from broker.actors.once import joined
from broker.core.desk import Screen, row_result
from broker.store.stored import damaged
from broker.tools.context import Context
from broker.tools.lookup import SigParam, StatementParam, desk_of, disk_full, resolve, unknown_desk
from broker.tools.proof import Proven, prove, settle
from broker.tools.registry import tool
from broker.wire.ids import CODE, CodeParam
from broker.wire.refusals import Refusal, refuse

T = TypeVar("T")
Codes = Annotated[
    list[Annotated[str, Meta(pattern=r"^[A-Z]{4}$(?!\n)")]],
    Meta(max_length=64, description="the desks asked about, at most 64; none: all that are online"),
]


class DeskResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """A desk: its code, the key that it resolves to, and when it was opened (Unix milliseconds)."""

    code: str
    pk: str | None = None
    opened_at: int | None = None
    effective_at: int | None = None
    """A recovery key's move takes effect then."""
    replayed: bool = False


class Resolved(msgspec.Struct, frozen=True):
    """What a code resolves to now."""

    code: str
    pk: str
    opened_at: int
    online: bool


class OnlineDesks(msgspec.Struct, frozen=True):
    """Code → online now. A code that nobody holds is not online."""

    desks: dict[str, bool]


@tool(face="wire", title="Resolve a code", read_only=True)
async def resolve_code(context: Context, code: CodeParam) -> Resolved | Refusal:
    """A 4-letter code's public key, since when, and whether its desk is online."""
    row = await resolve(context.services, code)
    if row is None:
        return unknown_desk(code)
    return Resolved(code, row.pk, row.opened_at, context.services.presence.online(row.pk))


@tool(face="wire", title="Who is online", read_only=True)
async def presence(context: Context, codes: Codes | None = None) -> OnlineDesks:
    """Which desks are online right now: those asked about, or all that are."""
    services = context.services
    desks: dict[str, bool] = {}
    if codes is not None:
        for code in codes:
            row = await resolve(services, code)
            desks[code] = row is not None and services.presence.online(row.pk)
        return OnlineDesks(desks)
    for pk in services.presence.present():
        row = await desk_of(services, pk)
        if row is not None:
            desks[row.code] = True
    return OnlineDesks(dict(sorted(desks.items())))


@tool(face="wire", title="Open a desk")
async def open_desk(context: Context, statement: StatementParam, sig: SigParam) -> DeskResult | Refusal:
    """Open a desk: a signed statement {do: open_desk, code, pk, nonce, ts, wire, recovery_pk?} claims the code.

    One code for a key, one key for a code. For the code that the key already holds the answer is its row.
    """
    proven = await prove(context, statement, sig, "open_desk")
    if not isinstance(proven, Proven):
        return _result(proven)
    answer = await _own_row(context, proven) or await _open(context, proven)
    if isinstance(answer, Refusal):  # of two statements at once the other one may have opened it
        answer = await _own_row(context, proven) or answer
    return await _settled(context, proven, answer)


@tool(face="wire", title="Move a desk", destructive=True, audited=True)
async def move_desk(
    context: Context, statement: StatementParam, sig: SigParam, new_sig: SigParam
) -> DeskResult | Refusal:
    """Move a desk to a new key: a statement {do: move_desk, code, new_pk, …} signed by the old key and, over the same
    bytes, by the new one (new_sig). By the recovery key it takes effect after a day, and can be cancelled until then.
    """
    proven = _noted(context, await prove(context, statement, sig, "move_desk", new_sig))
    if not isinstance(proven, Proven):
        return _result(proven)
    return await _settled(context, proven, await _still(_move, context, proven))


@tool(face="wire", title="Cancel a desk's move", audited=True)
async def cancel_move(context: Context, statement: StatementParam, sig: SigParam) -> DeskResult | Refusal:
    """Cancel the move that a recovery key asked for: a statement {do: cancel_move, code, …} of the desk's own key."""
    return await _by_own_key(context, statement, sig, "cancel_move")


@tool(face="wire", title="Close a desk", destructive=True, audited=True)
async def close_desk(context: Context, statement: StatementParam, sig: SigParam) -> DeskResult | Refusal:
    """Close a desk: a statement {do: close_desk, code, …} of its key. The code stays reserved for 90 days."""
    return await _by_own_key(context, statement, sig, "close_desk")


@tool(face="wire", title="Say who may ring")
async def screen_desk(context: Context, statement: StatementParam, sig: SigParam) -> DeskResult | Refusal:
    """Say who may ring the desk: a statement {do: screen_desk, code, allow, deny, mode, …} of its key.

    allow and deny list keys; mode is all, known (only keys that it has talked to) or nobody. Those turned away
    see desk_busy.
    """
    return await _by_own_key(context, statement, sig, "screen_desk")


@tool(face="operator", title="Suspend a desk", destructive=True)
async def suspend_desk(context: Context, code: CodeParam) -> DeskResult | Refusal:
    """Suspend a desk: it dials nobody, nobody dials it, and its key may only hang up."""
    return await _suspend(context, code, True)


@tool(face="operator", title="Release a desk")
async def release_desk(context: Context, code: CodeParam) -> DeskResult | Refusal:
    """Release a suspended desk."""
    return await _suspend(context, code, False)


@tool(face="wire", title="About this wire", read_only=True)
async def wire_info(context: Context) -> dict[str, Any]:
    """The wire's key and keys, its limits, time, version and addresses: as /.well-known/turret.json."""
    return context.services.info()


def check_codes(codes: Sequence[str]) -> Refusal | None:
    """Whether these codes may be watched: well formed, at most 64."""
    if len(codes) > 64:
        return refuse("bad_request", "at most 64 codes are watched by one connection", path="codes")
    for code in codes:
        if CODE.fullmatch(code) is None:
            return refuse("bad_request", "a code is four capital letters", path="codes")
    return None


async def _own_row(context: Context, proven: Proven) -> dict[str, Any] | Refusal | None:
    """The answer where the key holds that very code already."""
    mine = await desk_of(context.services, proven.statement.pk)
    if mine is None or mine.code != proven.statement.members["code"]:
        return None
    return await settle(context, proven) or row_result(mine)


async def _open(context: Context, proven: Proven) -> Any:
    services, caller, made = context.services, context.caller, proven.statement
    code, recovery = str(made.members["code"]), made.members.get("recovery_pk")
    refused = _may_open(context) or await services.house.ask("desk", made.pk, MayOpen(code))
    if refused is not None:
        return refused
    stopped = services.guard.open_desk(caller.address, caller.loopback)
    if stopped is not None:
        return stopped
    command = Open(code, str(recovery) if recovery is not None else None, proven.once)
    full = disk_full(services, "no new desk is opened")
    answer = full or await services.house.ask("desk", made.pk, command)
    if isinstance(answer, Refusal) and answer.code != "in_doubt":
        services.guard.unopened(caller.address, caller.loopback)  # a refused one spends nothing
    return answer


async def _still(step: Callable[[Context, Proven], Awaitable[Any]], context: Context, proven: Proven) -> Any:
    """A desk that moves away between the look-up and the asking of its actor is looked up again."""
    answer: Any = None
    for _ in range(4):
        answer = await step(context, proven)
        if not isinstance(answer, Refusal) or answer.code != "unknown_desk":
            break
        if await resolve(context.services, str(proven.statement.members["code"])) is None:
            break
    return answer


async def _move(context: Context, proven: Proven) -> Any:
    services, made = context.services, proven.statement
    code, new_pk = str(made.members["code"]), str(made.members["new_pk"])
    row = await resolve(services, code)
    if row is None:
        return unknown_desk(code)
    if made.pk not in (row.pk, row.recovery_pk):
        return refuse("not_a_party", "the code resolves to another key")
    if new_pk == row.pk:
        return refuse("bad_statement", "new_pk is the key that holds the desk", path="new_pk")
    return await services.house.ask("desk", row.pk, Move(code, new_pk, made.pk != row.pk, proven.once))


def _noted(context: Context, proven: T) -> T:
    """A statement with the note that the audit is to have of it, if it is to have one: the key is who did it."""
    if context.once is None or not isinstance(proven, Proven):
        return proven
    if context.once.note is not None:
        context.once.note.tell(by=proven.statement.pk)
    return msgspec.structs.replace(proven, once=joined(context.once, proven.once))


async def _by_own_key(context: Context, text: bytes, sig: str, do: str) -> DeskResult | Refusal:
    proven = _noted(context, await prove(context, text, sig, do))
    if not isinstance(proven, Proven):
        return _result(proven)
    return await _settled(context, proven, await _still(_change, context, proven))


async def _change(context: Context, proven: Proven) -> Any:
    services, made = context.services, proven.statement
    do = made.do
    code = str(made.members["code"])
    row = await resolve(services, code)
    if row is None:
        return unknown_desk(code)
    if made.pk != row.pk:
        return refuse("not_a_party", "the code resolves to another key")
    command: CancelMove | Close | SetScreen
    if do == "cancel_move":
        command = CancelMove(code, proven.once)
    elif do == "close_desk":
        command = Close(code, proven.once)
    else:
        command = SetScreen(code, _screen(made.members), proven.once)
    return await services.house.ask("desk", row.pk, command)


async def _suspend(context: Context, code: str, on: bool) -> DeskResult | Refusal:
    services = context.services
    if not context.caller.operator:
        return refuse("insufficient_scope", "this is for the operators")
    row = await resolve(services, code)
    if row is None:
        said = f"no desk answers to {code}; list_desks shows those there are"
        return refuse("unknown_desk", said, code_asked=code, path="code")
    answer = _result(await services.house.ask("desk", row.pk, Suspend(on, context.once)))
    if not isinstance(answer, Refusal):
        services.suspended.desk(row.pk, on)
    return answer


def _screen(members: dict[str, Any]) -> Screen:
    return msgspec.convert({name: members[name] for name in ("mode", "allow", "deny")}, Screen)


def _may_open(context: Context) -> Refusal | None:
    """The setting desks.open: anyone, agents (with a token) or the operator."""
    who = context.services.settings.desks.open
    if who == "anyone" or context.caller.operator:
        return None
    if who == "agents":
        return refuse("unauthenticated", "this wire opens desks for agents with a token")
    return refuse("insufficient_scope", "this wire's desks are opened by its operators")


async def _settled(context: Context, proven: Proven, answer: Any) -> DeskResult | Refusal:
    """A refusal may come of the identical statement, sent twice at once: then the stored answer stands."""
    if isinstance(answer, Refusal) and answer.code != "in_doubt":
        answer = await settle(context, proven) or answer
    return _result(answer)


def _result(answer: Any) -> DeskResult | Refusal:
    if isinstance(answer, Refusal):
        return answer
    try:
        return msgspec.convert(answer, DeskResult)
    except msgspec.ValidationError as error:  # it is one that was remembered
        raise damaged("answer", "to a desk's statement", error) from error
