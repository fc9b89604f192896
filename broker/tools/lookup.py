"""What several tools look up: a code's desk, a conversation's actor; and when a missing id costs a guess."""

from typing import Annotated

import msgspec
from msgspec import Meta

from broker.actors.actor import Actor
from broker.actors.calls import ConvRow, read_conv_row
from broker.actors.conversation import Known
from broker.actors.desk import Desk
from broker.actors.deskcommands import Used
from broker.core import desk as core
from broker.core.conversation import Conversation
from broker.core.desk import CodeRow, DeskRow
from broker.store.stored import read_row, stored
from broker.tools.context import Context, Services
from broker.wire.refusals import Refusal, refuse

ConvParam = Annotated[
    str,
    Meta(pattern=r"^[0-9a-f]{16}$(?!\n)", description="the conversation's id, 16 lowercase hex characters"),
]
NParam = Annotated[
    int, Meta(ge=0, le=2**53 - 1, description="the envelope's number in the conversation, from 0")
]
SigParam = Annotated[
    str,
    Meta(
        pattern=r"^[0-9a-f]{128}$(?!\n)",
        description="Ed25519 signature over the canonical text, 128 lowercase hex",
    ),
]
EnvelopeParam = Annotated[
    msgspec.Raw,
    Meta(
        description="the envelope: conv, n, type, from, to, ts, prev_sig, body",
        extra_json_schema={"type": "object"},
    ),
]
StatementParam = Annotated[
    msgspec.Raw,
    Meta(description="a signed statement (docs/reference/wire.md)", extra_json_schema={"type": "object"}),
]


async def resolve(services: Services, code: str) -> DeskRow | None:
    """The desk that a code names now; None for one that is unknown, closed or lapsed.

    All of these take as long: a desk is looked for in any case.
    """
    version = 0
    while True:
        document = await services.store.get("code", code)
        held = stored(CodeRow, document.doc, "code", code) if document is not None else None
        pk = held.pk if held is not None and held.closed_at is None else ""
        row = await read_row(services.store, DeskRow, "desk", pk)
        if row is not None and row.code == code:
            return None if _lapsed(services, row) else row
        if not pk or document is None or document.version == version:  # read twice: nobody holds it
            return None
        version = document.version  # it moved between the two reads: look again


def holds(services: Services, pk: str, code: str) -> bool:
    """Whether the live desk of a key says that it answers to the code. False says nothing: `resolve` knows."""
    actor = services.house.alive("desk", pk)
    desk: Desk | None = None if actor is None or actor.gone else actor.state
    row = desk.row if desk is not None else None
    return row is not None and row.code == code and not _lapsed(services, row)


async def desk_of(services: Services, pk: str) -> DeskRow | None:
    """The desk that a key holds now."""
    row = await read_row(services.store, DeskRow, "desk", pk)
    return None if row is None or _lapsed(services, row) else row


def _lapsed(services: Services, row: DeskRow) -> bool:
    return core.lapsed(row, services.clock.now_ms(), services.settings.desks.lapse_days)


async def keep_in_use(services: Services, pk: str) -> None:
    """A desk whose stream is read is in use: noted at most once a day, so that it does not lapse."""
    row = await desk_of(services, pk)
    if row is not None and services.clock.now_ms() - row.used_at >= core.DAY_MS:
        await services.house.ask("desk", pk, Used())


def unknown_desk(code: str) -> Refusal:
    """unknown_desk for a code."""
    return refuse("unknown_desk", f"no desk answers to {code}", code_asked=code)


async def live(services: Services, conv: str) -> Actor[Conversation] | None:
    """The conversation's actor with its state read; None where there is no such conversation (any more).

    Starts no actor for an id that the store does not know. Raises Crashed where its log can't be read.
    """
    actor = services.house.alive("conversation", conv)
    if actor is None or actor.gone or actor.state is None:
        if await services.store.get("conv", conv) is None:
            return None
        actor = services.house.actor("conversation", conv)
        await actor.wait_loaded()
        if actor.state is None:
            # Who was told of the CALL by its stream may be here before its commit has returned to the actor.
            await services.house.ask("conversation", conv, Known())
            actor = services.house.actor("conversation", conv)
            await actor.wait_loaded()
    return actor if actor.state is not None else None


async def conv_row(services: Services, conv: str) -> ConvRow | None:
    """What the store knows of a conversation without its log."""
    document = await services.store.get("conv", conv)
    return read_conv_row(document) if document is not None else None


def disk_full(services: Services, words: str) -> Refusal | None:
    """unavailable below store.min_free; `words`: what is not done then."""
    if services.store.free_bytes() >= services.settings.store.min_free_bytes:
        return None
    return refuse("unavailable", f"the broker is short of disk space: {words}")


def missing_conv(context: Context) -> Refusal:
    """unknown_conv, or rate_limited for an address that guesses too much (wire.md, Limits: guessing)."""
    return guessed(context, refuse("unknown_conv", "no conversation has this id"))


def guessed(context: Context, missing: Refusal) -> Refusal:
    """`missing`, of what is found by an id that nobody is to guess; or rate_limited."""
    guard, caller = context.services.guard, context.caller
    stopped = guard.check(caller.address, caller.exempt)
    if stopped is not None:
        return stopped
    if not caller.exempt:
        guard.unknown_conv(caller.address)
    return missing
