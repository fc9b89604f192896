"""What operators see of the wire and do on it: desks, calls in progress, and the end of one (network.md, Operator
tools)."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from broker.actors.calls import log_name, read_conv_row
from broker.actors.conversation import EndCall, Over
from broker.core.desk import DeskRow, lapsed
from broker.store.port import Document
from broker.store.stored import stored
from broker.tools.context import Context, Services
from broker.tools.lookup import ConvParam, live, resolve
from broker.tools.paging import AfterParam, LimitParam, read_page, scan
from broker.tools.registry import tool
from broker.wire.refusals import Refusal, refuse

WHOLE: Final = 4
"""Letters of a code."""
PrefixParam = (
    Annotated[
        str, Meta(pattern=r"^[A-Z]{1,4}$(?!\n)", description="only codes that begin so: 1 to 4 letters")
    ]
    | None
)
OnlineParam = Annotated[bool, Meta(description="true: only desks that are online now")]
SuspendedParam = Annotated[bool, Meta(description="true: only desks that suspend_desk suspended")]
NoteParam = Annotated[str, Meta(max_length=300, description="words for both parties, at most 300")]


class HeldDesk(msgspec.Struct, frozen=True):
    """A desk as operators see it. `agent_id`: whose key it has; `suspended`: the desk itself is, whatever becomes of
    its agent. Times are Unix milliseconds; `used_at` is noted once a day."""

    code: str
    pk: str
    online: bool
    suspended: bool
    agent_id: str | None
    opened_at: int
    used_at: int


class HeldDesks(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of desks, in the order in which they were opened; `next`: `after` of the page that follows."""

    desks: list[HeldDesk]
    next: str | None = None


class LiveCall(msgspec.Struct, frozen=True):
    """A call in progress. Times are Unix milliseconds; `answered_at` is null while it rings."""

    conv: str
    code_from: str
    code_to: str
    phase: Literal["ringing", "open"]
    envelopes: int
    opened_at: int
    answered_at: int | None
    last_at: int


class LiveCalls(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of calls, the oldest first; `next`: `after` of the page that follows."""

    calls: list[LiveCall]
    next: str | None = None


@tool(face="operator", title="List desks", read_only=True)
async def list_desks(
    context: Context,
    online_only: OnlineParam = False,
    suspended: SuspendedParam = False,
    prefix: PrefixParam = None,
    limit: LimitParam = 100,
    after: AfterParam = None,
) -> HeldDesks | Refusal:
    """The wire's desks: their codes and keys, whose they are, and which are online or suspended."""
    services, now = context.services, context.services.clock.now_ms()

    def fits(shown: HeldDesk) -> bool:
        return (shown.online or not online_only) and (shown.suspended or not suspended)

    def read(document: Document) -> HeldDesk | None:
        row = stored(DeskRow, document.doc, "desk", document.id)
        if lapsed(row, now, services.settings.desks.lapse_days) or not row.code.startswith(prefix or ""):
            return None
        shown = _held(services, row)
        return shown if fits(shown) else None

    if prefix is not None and len(prefix) == WHOLE and after is None:  # a code: no other desk begins so
        row = await resolve(services, prefix)
        return HeldDesks([] if row is None else [each for each in [_held(services, row)] if fits(each)])
    found = await scan(services.store, "desk", ("all", "1"), read, after, limit, called="desks")
    return found if isinstance(found, Refusal) else HeldDesks(found.rows, found.next)


@tool(face="operator", title="List calls in progress", read_only=True)
async def list_calls(
    context: Context, limit: LimitParam = 100, after: AfterParam = None
) -> LiveCalls | Refusal:
    """Calls that ring or are open, the oldest first: between which desks, since when, how many envelopes so far.

    read_conv shows what was said, where transcripts are open; end_call ends one.
    """
    store = context.services.store
    page = await read_page(store, "conv", "live", "1", after, limit, newest=False)
    if isinstance(page, Refusal):
        return page
    calls = []
    for document in page.documents:
        row = read_conv_row(document)
        last = await store.tail(log_name(row.conv), limit=1)
        if last:  # else it has ended this moment, and its transcript is gone
            phase: Literal["ringing", "open"] = "ringing" if row.answered_at is None else "open"
            calls.append(
                LiveCall(
                    row.conv,
                    row.code_from,
                    row.code_to,
                    phase,
                    last[0].n + 1,
                    row.opened_at,
                    row.answered_at,
                    last[0].at,
                )
            )
    return LiveCalls(calls, page.next)


@tool(face="operator", title="End a call", destructive=True)
async def end_call(context: Context, conv: ConvParam, note: NoteParam = "") -> Over | Refusal:
    """End a call: both parties get an END signed by the wire, with reason operator and your note. For one that had
    ended before, the answer says how.
    """
    if await live(context.services, conv) is None:
        said = "no conversation has this id; list_calls shows those in progress"
        return refuse("unknown_conv", said, path="conv")
    answer: Over | Refusal = await context.services.house.ask(
        "conversation", conv, EndCall(note, context.once)
    )
    return answer


def _held(services: Services, row: DeskRow) -> HeldDesk:
    return HeldDesk(
        row.code,
        row.pk,
        services.presence.online(row.pk),
        services.suspended.is_desk(row.pk),
        services.standing.holder(row.pk),
        row.opened_at,
        row.used_at,
    )
