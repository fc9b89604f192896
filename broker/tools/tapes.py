"""The catalog of tapes: for whoever tries plans, and for operators, who bring tapes (docs/reference/trial.md, Catalog).

1. It is no tool of agents: the catalog has addresses, and is read there (decision 0041). It shows of a tape what it is,
   and none of its ticks: who has seen a tape is not measured by it any more.
2. A tape comes in parts, and is seen when import_tape has found them whole. So the parts change nothing that anybody
   sees, and the audit is told of import_tape alone.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from broker.actors.tapestore import Finish, Remove, Send, find_imported, imported
from broker.core.tapes.catalog import PART, PARTS, Item, Text, item_of
from broker.core.tapes.synthetic import KINDS
from broker.tools.access import allowed
from broker.tools.context import Context, Services
from broker.tools.lookup import disk_full
from broker.tools.registry import tool
from broker.wire.refusals import Refusal, refuse

SCOPE: Final = "trial"
LICENCE: Final = "CC0-1.0"
"""Of the tapes that are made by rule."""
RefParam = Annotated[
    str,
    Meta(
        pattern=r"^[0-9a-f]{64}$(?!\n)",
        description="the tape's ref: SHA-256 of its bytes, 64 lowercase hex characters",
    ),
]
PartParam = Annotated[int, Meta(ge=0, lt=PARTS, description="which part, from 0")]
RowsParam = Annotated[
    str,
    Meta(min_length=1, max_length=PART, description="so much of the tape's bytes as follows the part before"),
]
PartsParam = Annotated[int, Meta(ge=1, le=PARTS, description="how many parts were sent")]
TitleParam = Annotated[Text, Meta(description="what the catalog calls it, at most 120 characters")]
LicenceParam = Annotated[Text, Meta(description="under which licence its quotes may be used")]


class Part(msgspec.Struct, frozen=True):
    """A part is kept. `here`: the tape is there already, and needs no other."""

    ref: str
    part: int
    here: bool


class Removed(msgspec.Struct, frozen=True):
    """The tape is there no more."""

    ref: str
    removed: bool


class Catalog(msgspec.Struct, frozen=True):
    """All tapes, those that are made by rule first, by their index."""

    entries: list[Item]


@tool(face="operator", title="Send a part of a tape", audited=False)
async def send_tape_rows(context: Context, ref: RefParam, part: PartParam, rows: RowsParam) -> Part | Refusal:
    """Send the bytes of a tape (trial.md, Tapes), part after part; import_tape is the end. `turret tape import` does it
    all, from a CSV file.

    Nothing is seen of it before. The same part may be sent twice; parts that nobody goes on with are thrown away after
    a day.
    """
    if not rows.isascii():
        return refuse("bad_request", "rows: a tape is ASCII", path="rows")
    if (full := disk_full(context.services, "no tape was imported")) is not None:
        return full
    answer: Part | Refusal = await context.services.house.ask("tape", ref, Send(part, rows.encode()))
    return answer


@tool(face="operator", title="Import a tape", keyed=True)
async def import_tape(
    context: Context, ref: RefParam, parts: PartsParam, title: TitleParam, licence: LicenceParam
) -> Item | Refusal:
    """Put a tape into the catalog, when all its parts were sent: they are read back, and are the tape of this ref, or
    nothing is imported. One that is there already stays as it is."""
    services = context.services
    command = Finish(parts, title, licence, services.tapes.price, context.once)
    answer: Item | Refusal = await services.house.ask("tape", ref, command)
    return answer


@tool(face="operator", title="Remove a tape", destructive=True, keyed=True)
async def remove_tape(context: Context, ref: RefParam) -> Removed | Refusal:
    """Take an imported tape out of the catalog for good. Trials on it can't go on, and are graded no more; what was
    published of them stays."""
    answer: Removed | Refusal = await context.services.house.ask("tape", ref, Remove(context.once))
    return answer


@tool(face="operator", title="List tapes", read_only=True)
async def list_tapes(context: Context) -> Catalog:
    """All tapes of the catalog: those that are made by rule, then the imported ones."""
    return await _all(context.services)


async def catalog(
    context: Context, which: Literal["all", "pricing"] | int
) -> Catalog | Item | dict[str, Any] | Refusal:
    """The catalog, its entry with an index, or what trials cost, for a token with the scope `trial`; NOT_FOUND."""
    refused = await allowed(context, SCOPE, agent=False)
    if refused is not None:
        return refused
    services = context.services
    if which == "pricing":
        return services.tapes.price
    if which == "all":
        return await _all(services)
    made = list(KINDS)
    if which < len(made):
        return await _made(services, which)
    row = await find_imported(services.store, which)
    if row is None:
        return refuse("NOT_FOUND", "the catalog has no such entry")
    return item_of(row, services.tapes.price)


async def _all(services: Services) -> Catalog:
    price = services.tapes.price
    made = [await _made(services, index) for index in range(len(KINDS))]
    return Catalog([*made, *(item_of(row, price) for row in await imported(services.store))])


async def _made(services: Services, index: int) -> Item:
    """A tape that is made by rule, with the seed that it has without another."""
    entry = await services.tapes.find(index, None)
    assert not isinstance(entry, Refusal)
    assert entry.kind is not None
    about = {
        name: getattr(entry.about, name) for name in ("instrument", "start", "step", "tick", "fee", "sized")
    }
    return Item(
        index=index,
        title=KINDS[entry.kind].title,
        ticks=entry.ticks,
        ref=entry.ref,
        licence=LICENCE,
        price=services.tapes.price,
        kind=entry.kind,
        seed=entry.seed,
        **about,
    )
