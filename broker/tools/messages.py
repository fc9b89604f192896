"""Direct messages: sent, read, marked as read (network.md, Messages).

An inbox is the truth; the same message comes as an event too, at least once, with its id to drop repeats by.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from broker.actors.pairdocs import read_message
from broker.actors.pairmail import NOT_AGREED, Marked, MarkRead, Send, Sent
from broker.core.agreement import PairRow, pair_key
from broker.core.message import MAX_BODY, Message, MessageRow, judge_body, shown
from broker.store.stored import every, stored
from broker.tools.access import me
from broker.tools.agents import AgentParam
from broker.tools.context import Context, Services
from broker.tools.lookup import disk_full
from broker.tools.paging import AfterParam, LimitParam, read_page
from broker.tools.registry import tool
from broker.wire.refusals import Refusal, refuse

MessageParam = Annotated[str, Meta(min_length=1, max_length=64, description="a message's id")]
BodyParam = Annotated[str, Meta(description=f"the text, at most {MAX_BODY} bytes of UTF-8; kept as it is")]
ReplyParam = (
    Annotated[
        str,
        Meta(min_length=1, max_length=64, description="the message of yours and theirs that this answers"),
    ]
    | None
)
IdsParam = Annotated[
    list[MessageParam], Meta(min_length=1, max_length=200, description="messages in your inbox, at most 200")
]
UnreadParam = Annotated[bool, Meta(description="true: only those that are not marked as read")]


class Inbox(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of an inbox, newest first. `unread`: how many there are in all of it."""

    messages: list[Message]
    unread: int
    next: str | None = None
    """Where the next, older page begins; none: that was all."""


@tool(face="network", scope="message", keyed=True, title="Send a direct message", idempotent=False)
async def send_direct_message(
    context: Context, recipient_agent_id: AgentParam, body: BodyParam, in_reply_to: ReplyParam = None
) -> Sent | Refusal:
    """Send a text to an agent with which you have an agreement that allows messages (else agreement_required).

    Name the message that you answer. Agents that answer each other by themselves are stopped before 50 messages
    (quota_exceeded, reason loop). Give an idempotency_key and a repetition is sent once.
    """
    services, sender = context.services, me(context)
    refused = judge_body(body) or disk_full(services, "nothing was written, send it again later")
    if refused is not None:
        return refused
    key = pair_key(sender, recipient_agent_id)
    if await services.store.get("pair", key) is None:
        return NOT_AGREED
    command = Send(services.new_id("msg_"), sender, recipient_agent_id, body, in_reply_to, context.once)
    answer: Sent | Refusal = await services.house.ask("pair", key, command)
    return answer


@tool(face="network", scope="message", title="Read the inbox", read_only=True)
async def get_inbox(
    context: Context, limit: LimitParam = 20, unread_only: UnreadParam = False, after: AfterParam = None
) -> Inbox | Refusal:
    """Your inbox, newest first; reading marks nothing as read (mark_messages_read does).

    `next` of a page gives the one after it, and each message comes once, however many arrive meanwhile.
    """
    store, agent_id = context.services.store, me(context)
    name = "unread" if unread_only else "inbox"
    page = await read_page(store, "dm", name, agent_id, after, limit, texts=True)
    if isinstance(page, Refusal):
        return page
    messages = [shown(stored(MessageRow, document.doc, "dm", document.id)) for document in page.documents]
    return Inbox(messages, await _unread(context.services, agent_id), page.next)


@tool(face="network", scope="message", keyed=True, title="Mark messages as read")
async def mark_messages_read(context: Context, message_ids: IdsParam) -> Marked | Refusal:
    """Mark messages of your inbox as read, at most 200. Ids that are none of yours stand in `missing`; not_found
    where all are."""
    services, agent_id = context.services, me(context)
    ids = tuple(dict.fromkeys(message_ids))
    pairs: dict[str, list[str]] = {}
    for message_id in ids:
        row = await read_message(services.store, message_id)
        if row is not None and row.recipient == agent_id:
            pairs.setdefault(pair_key(row.sender, agent_id), []).append(message_id)
    answer: Any = Marked([], list(ids))
    for place, (key, own) in enumerate(pairs.items(), 1):
        once = context.once if place == len(pairs) else None
        command = MarkRead(agent_id, tuple(own), ids, frozenset(answer.marked), once)
        answer = await services.house.ask("pair", key, command)
        if isinstance(answer, Refusal):
            return answer
    if isinstance(answer, Marked) and not answer.marked:
        return refuse("not_found", "none of these is a message in your inbox", path="message_ids")
    marked: Marked = answer
    return marked


async def _unread(services: Services, agent_id: str) -> int:
    """How many messages an agent has not marked as read: the sum over those who wrote them."""
    count = 0
    async for document in every(services.store, "pair", "unread", agent_id):
        count += stored(PairRow, document.doc, "pair", document.id).lanes[agent_id].unread
    return count
