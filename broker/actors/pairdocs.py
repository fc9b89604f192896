"""What stands beside a pair's row (requests, agreements, messages), and whom its commits tell.

Written by the pair's actor alone, so each is put twice at most, and its version is known.
"""

from typing import Final

import msgspec

from broker.actors.agentdocs import present
from broker.actors.binding import read_accounts
from broker.actors.calls import agent_stream
from broker.actors.receipts import Stopped
from broker.actors.record import Told
from broker.core.agreement import (
    Agreement,
    Lane,
    PairRow,
    Request,
    Scope,
    find_agreement,
    next_due,
    pair_key,
)
from broker.core.message import MessageRow
from broker.core.pairviews import AgreementView, counterpart, show_agreement, show_request
from broker.store.port import Put, Store
from broker.store.stored import read_row, stored

FRESH: Final = 0
"""The version of a document that is not there yet."""
WAITING: Final = 1
"""The version of a request that waits, of an agreement that holds, of a slot that is taken."""


async def permission(store: Store, actor: str, towards: str, scope: Scope, now: int) -> Agreement | None:
    """The agreement by which `actor` may do what `scope` says towards another agent now; None: it may not.

    For what is decided elsewhere (a channel, a task): it is true at the moment of the read.
    """
    pair = await read_row(store, PairRow, "pair", pair_key(actor, towards))
    if pair is None or await present(store, towards, now) is None:
        return None
    return find_agreement(pair, actor, scope, now)


async def read_request(store: Store, request_id: str) -> Request | None:
    """A contact request as stored, or None."""
    return await read_row(store, Request, "contact", request_id)


async def read_agreement(store: Store, agreement_id: str) -> Agreement | None:
    """An agreement as stored, or None."""
    return await read_row(store, Agreement, "agreement", agreement_id)


async def read_message(store: Store, message_id: str) -> MessageRow | None:
    """A direct message as stored, or None."""
    return await read_row(store, MessageRow, "dm", message_id)


def index_of_pair(row: PairRow) -> tuple[tuple[str, str | int], ...]:
    """What a pair is found by: each of the two, who has unread messages, and when something is over by itself."""
    index: list[tuple[str, str | int]] = [("of", each) for each in row.agents]
    index += [("unread", agent) for agent, lane in sorted(row.lanes.items()) if lane.unread]
    due = next_due(row)
    if due is not None:
        index.append(("due", due))
    return tuple(index)


async def find_overfull(
    store: Store, row: PairRow, recipient: str, most: int
) -> list[tuple[MessageRow, int]]:
    """What makes room for one more message to `recipient`, with versions: the oldest that were read, else the oldest;
    two at most, so that a lowered limit is followed in time."""
    count = min(2, row.lanes.get(recipient, Lane()).kept + 1 - most)
    if count <= 0:
        return []
    one, other = row.agents
    name = lane_name(other if recipient == one else one, recipient)
    found = await store.find("dm", "kept-read", name, limit=count)
    if not found:
        found = await store.find("dm", "kept", name, limit=count)
    return [(stored(MessageRow, each.doc, "dm", each.id), each.version) for each in found]


def lane_name(sender: str, recipient: str) -> str:
    """The messages from one to another."""
    return f"{sender}>{recipient}"


def put_request(request: Request, version: int) -> Put:
    """A contact request's document (kind "contact"): found by each side, by each side and how it stands, and by the
    owner that it waits for."""
    index: list[tuple[str, str | int]] = [
        ("in", request.target),
        ("out", request.asker),
        (f"in.{request.status}", request.target),
        (f"out.{request.status}", request.asker),
    ]
    if request.status == "pending" and request.owner_id is not None:
        index.append(("owner-waits", request.owner_id))
    return Put("contact", request.request_id, version, msgspec.json.encode(request), tuple(index))


def put_agreement(agreement: Agreement, version: int) -> Put:
    """An agreement's document: found by each side, and while it holds among each side's active ones."""
    index = [("of", agreement.one), ("of", agreement.other)]
    if agreement.status == "active":
        index += [("active", agreement.one), ("active", agreement.other)]
    return Put("agreement", agreement.agreement_id, version, msgspec.json.encode(agreement), tuple(index))


def put_ended(agreement: Agreement) -> list[Put]:
    """An agreement that has ended, and the slots that it leaves."""
    return [
        put_agreement(agreement, WAITING),
        *(Put("slot", each, WAITING, None) for each in agreement.slots),
    ]


def put_message(message: MessageRow, version: int) -> Put:
    """A message's document (kind "dm"): found in the inbox, among what its sender sent, in its lane, and among the
    unread, or those of the lane that were read."""
    lane = lane_name(message.sender, message.recipient)
    index = [("inbox", message.recipient), ("sent", message.sender), ("kept", lane)]
    index.append(("unread", message.recipient) if message.read_at is None else ("kept-read", lane))
    return Put("dm", message.message_id, version, msgspec.json.encode(message), tuple(index))


def tell_request(what: str, request: Request, viewer: str) -> Told:
    """The event `contact` {what, request}, for one side."""
    told = {"what": what, "request": show_request(request, viewer)}
    return Told(agent_stream(viewer), "contact", told)


async def view_agreement(
    store: Store, agreement: Agreement, viewer: str, now: int, *, silent: bool = False
) -> AgreementView:
    """An agreement as one of the two sees it, with the other one's IRC accounts as they are bound now."""
    accounts = await read_accounts(store, counterpart(agreement, viewer))
    return show_agreement(agreement, viewer, now, accounts, silent=silent)


async def tell_agreement(store: Store, what: str, agreement: Agreement, now: int) -> list[Told]:
    """The event `agreement` {what, agreement}, for both sides. `now`: wall milliseconds."""
    return [
        Told(
            agent_stream(viewer),
            "agreement",
            {"what": what, "agreement": await view_agreement(store, agreement, viewer, now)},
        )
        for viewer in sorted((agreement.one, agreement.other))
    ]


def tell_stopped(stopped: Stopped, by: str, other: str, now: int) -> list[Told]:
    """The event `notice` {what: loop, …} for both, where they are to hear that the loop guard stopped what `by` sent
    the other. `now`: wall milliseconds."""
    if not stopped.tell:
        return []
    return [
        Told(
            agent_stream(agent),
            "notice",
            {"what": "loop", "at": now, "counterpart": its, "by": by, **stopped.refusal.detail},
        )
        for agent, its in ((by, other), (other, by))
    ]
