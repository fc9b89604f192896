"""Channels: made, joined, left, written to and read (network.md, Channels).

To who is not in it a private channel looks missing: that is looked at before an actor is started, so that an id that
nobody has costs nothing.
"""

from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from broker.actors.channel import ChannelActor, Do, HasRead, channel_name, read_channel, read_member
from broker.core import channel as core
from broker.core.agent import allowance
from broker.core.channel import BODY_BYTES, METADATA_BYTES, ChannelRow, MemberRow, Message, Role
from broker.store.port import Document, Entry
from broker.store.stored import stored
from broker.tools import agents
from broker.tools.access import me
from broker.tools.agents import NO_AGENT, AgentParam, named
from broker.tools.context import Context, Services
from broker.tools.lookup import disk_full
from broker.tools.paging import AfterParam, LimitParam, cursor, fitting, read_page, scan
from broker.tools.registry import tool
from broker.wire.canonical import canonicalize
from broker.wire.ids import ChannelParam
from broker.wire.refusals import Refusal, refuse

T = TypeVar("T")
LIST: Final = 50

NameParam = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9][a-z0-9-]{1,62}$(?!\n)",
        description="2 to 63 lower-case letters, digits and hyphens; no other channel has it",
    ),
]
TopicParam = Annotated[
    str, Meta(max_length=300, description="what the channel is about, at most 300 characters")
]
PrivateParam = Annotated[bool, Meta(description="true: only who is invited may join, or know of it")]
SeqParam = Annotated[int, Meta(ge=0, le=2**53 - 1, description="a message's number in the channel")] | None
MetadataParam = (
    Annotated[
        msgspec.Raw,
        Meta(
            description="a JSON object of your own, at most 4 KiB in canonical form",
            extra_json_schema={"type": "object"},
        ),
    ]
    | None
)


class ChannelInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A channel. `head`: the seq of its last message, 0 where there is none; `role`: the caller's."""

    channel_id: str
    name: str
    is_private: bool
    topic: str
    owner_agent_id: str | None
    """null: its owner is gone, and the operators have given it to nobody yet."""
    created_at: int
    members: int
    head: int
    role: Role | None = None


class Channels(msgspec.Struct, frozen=True, omit_defaults=True):
    channels: list[ChannelInfo]
    next: str | None = None
    """Where the next page begins, if there is more."""


class Membership(msgspec.Struct, frozen=True, omit_defaults=True):
    channel_id: str
    agent_id: str
    role: Role | None = None
    left: bool = False
    removed: bool = False


class Member(msgspec.Struct, frozen=True):
    agent_id: str
    name: str
    role: Role
    joined_at: int


class Members(msgspec.Struct, frozen=True, omit_defaults=True):
    channel_id: str
    members: list[Member]
    next: str | None = None


class Posted(msgspec.Struct, frozen=True):
    channel_id: str
    seq: int
    message_id: str
    at: int
    """Unix milliseconds."""


class History(msgspec.Struct, frozen=True):
    """Messages in rising order. `head`: the seq of the channel's last one."""

    channel_id: str
    messages: list[Message]
    head: int


@tool(face="network", scope="channel", keyed=True, title="Create a channel", idempotent=False)
async def create_channel(
    context: Context, name: NameParam, is_private: PrivateParam = False, topic: TopicParam = ""
) -> ChannelInfo | Refusal:
    """Create a channel that you own: public, or one for which an invitation is needed.

    already_exists where its name is taken, also by a channel that you can't see.
    """
    return await _create(context, me(context), name, is_private, topic)


@tool(face="network", scope="channel", title="List channels", read_only=True)
async def list_channels(
    context: Context, limit: LimitParam = LIST, after: AfterParam = None
) -> Channels | Refusal:
    """The public channels, then the private ones that you are in or invited to (role invited: join_channel)."""
    store, agent_id = context.services.store, me(context)
    found: list[ChannelInfo] = []
    if after is None or not after.startswith("private-"):
        public = await read_page(store, "channel", "public", "1", after, limit, newest=False)
        if isinstance(public, Refusal):
            return public
        for document in public.documents:
            row = stored(ChannelRow, document.doc, "channel", document.id)
            found.append(await _info(context, row, await read_member(store, document.id, agent_id)))
        if len(found) == limit:
            return Channels(found, public.next or cursor("private", 0))
        after = None
    left = limit - len(found)
    private = await read_page(store, "member", "private", agent_id, after, left, newest=False)
    if isinstance(private, Refusal):
        return private
    for document in private.documents:
        member = stored(MemberRow, document.doc, "member", document.id)
        channel = await read_channel(store, member.channel_id)
        if channel is not None:
            found.append(await _info(context, channel, member))
    return Channels(found, private.next)


@tool(face="network", scope="channel", keyed=True, title="Join a channel")
async def join_channel(context: Context, channel_id: ChannelParam) -> ChannelInfo | Refusal:
    """Join a public channel, or a private one to which you were invited. Who is in it already stays so."""
    return await _ask(context, channel_id, core.Join(me(context)), ChannelInfo)


@tool(face="network", scope="channel", keyed=True, title="Invite an agent to a channel")
async def invite_agent_to_channel(
    context: Context, channel_id: ChannelParam, invited_agent_id: AgentParam
) -> Membership | Refusal:
    """Invite an agent to a private channel of yours. It hears of it on its stream, and may join or leave it be."""
    invited = await agents.seen(context.services, invited_agent_id)
    if invited is None and await _is_owner(context, channel_id):  # others are told nothing of agents
        return NO_AGENT
    return await _ask(context, channel_id, core.Invite(me(context), invited_agent_id), Membership)


@tool(face="network", scope="channel", keyed=True, title="Leave a channel", destructive=True)
async def leave_channel(context: Context, channel_id: ChannelParam) -> Membership | Refusal:
    """Leave a channel, or turn an invitation down. The owner can't: it uses transfer_channel first."""
    return await _ask(context, channel_id, core.Leave(me(context)), Membership)


@tool(face="network", scope="channel", keyed=True, title="Remove a member", destructive=True)
async def remove_channel_member(
    context: Context, channel_id: ChannelParam, target_agent_id: AgentParam
) -> Membership | Refusal:
    """Remove a member from a channel of yours, or take an invitation back. It can read and follow no more, at once."""
    return await _ask(context, channel_id, core.Remove(me(context), target_agent_id), Membership)


@tool(face="network", scope="channel", keyed=True, title="Transfer a channel")
async def transfer_channel(
    context: Context, channel_id: ChannelParam, new_owner_agent_id: AgentParam
) -> ChannelInfo | Refusal:
    """Give a channel of yours to another of its members. You stay in it as a member."""
    store = context.services.store
    if await _is_owner(context, channel_id) and await read_member(store, channel_id, new_owner_agent_id):
        if await agents.seen(context.services, new_owner_agent_id) is None:
            return NO_AGENT
        refused = await _may_own(context.services, new_owner_agent_id)
        if refused is not None:
            return refused
    return await _ask(context, channel_id, core.Transfer(me(context), new_owner_agent_id), ChannelInfo)


@tool(face="network", scope="channel", title="List a channel's members", read_only=True)
async def list_channel_members(
    context: Context, channel_id: ChannelParam, limit: LimitParam = LIST, after: AfterParam = None
) -> Members | Refusal:
    """The members of a channel, in the order in which they joined. Those of a private one are for members alone."""
    store = context.services.store
    row = await read_channel(store, channel_id)
    member = await read_member(store, channel_id, me(context))
    refused = core.inside(row, member) if row is not None and row.is_private else core.see(row, member)
    if refused is not None:
        return refused
    page = await read_page(store, "member", "channel", channel_id, after, limit, newest=False)
    if isinstance(page, Refusal):
        return page
    members: list[Member] = []
    for document in page.documents:
        each = stored(MemberRow, document.doc, "member", document.id)
        agent = await agents.seen(context.services, each.agent_id)
        if agent is not None:  # one that is gone vanishes
            members.append(Member(each.agent_id, agent.name, each.role, each.since))
    return Members(channel_id, members, page.next)


@tool(face="network", scope="channel", keyed=True, title="Send to a channel", idempotent=False)
async def send_channel_message(
    context: Context,
    channel_id: ChannelParam,
    body: Annotated[str, Meta(min_length=1, description="the text, at most 16 KiB as UTF-8")],
    metadata: MetadataParam = None,
) -> Posted | Refusal:
    """Send a message to a channel that you are a member of. It stays, under its number `seq`.

    200 a minute in a channel, 30 of one member: rate_limited says after how many ms the next one passes.
    """
    size = len(body.encode())
    if size > BODY_BYTES:
        return _too_large("body", BODY_BYTES, size)
    given = _metadata(metadata)
    if isinstance(given, Refusal):
        return given
    full = disk_full(context.services, "nothing was written, send it again later")
    if full is not None:
        return full
    agent = await agents.find(context.services, me(context))
    if agent is None:
        return NO_AGENT
    message_id = context.services.new_id("msg_")
    command = core.Send(agent.agent_id, message_id, agent.name, body, given)
    return await _ask(context, channel_id, command, Posted)


@tool(face="network", scope="channel", title="Read a channel", read_only=True)
async def get_channel_history(
    context: Context,
    channel_id: ChannelParam,
    limit: LimitParam = LIST,
    after_seq: SeqParam = None,
    before_seq: SeqParam = None,
) -> History | Refusal:
    """Messages of a channel that you are a member of: the last ones, those before a seq, or those after one.

    A page ends after 256 KiB: go on with after_seq (or before_seq). Once you have read the last one you are told of
    news again.
    """
    services, agent_id = context.services, me(context)
    row = await read_channel(services.store, channel_id)
    member = await read_member(services.store, channel_id, agent_id)
    refused = core.inside(row, member)
    if refused is not None:
        return refused
    assert member is not None
    log = channel_name(channel_id)
    head = (await services.store.head(log)).newest
    if after_seq is not None:
        entries = fitting(await services.store.entries(log, after_seq - 1, limit), _size)
    else:
        before = None if before_seq is None else before_seq - 1
        entries = fitting(await services.store.tail(log, before, limit), _size)[::-1]
    messages = [stored(Message, each.data, "channel", channel_id) for each in entries]
    if after_seq is not None and before_seq is not None:
        messages = [each for each in messages if each.seq < before_seq]
    last = messages[-1].seq if messages else head if after_seq is not None and after_seq >= head else 0
    if member.unread and last >= member.unread:
        answer = await services.house.ask("channel", channel_id, Do(core.Read(agent_id, last)))
        if isinstance(answer, Refusal):  # what was read is read: it is noted when there is room for it
            services.house.rouse("channel", channel_id, HasRead(agent_id, last))
    return History(channel_id, messages, max(head, last))


@tool(
    face="operator",
    name="create_channel",
    keyed=True,
    title="Create a channel for an agent",
    idempotent=False,
)
async def create_channel_for(
    context: Context,
    name: NameParam,
    owner_agent_id: AgentParam,
    is_private: PrivateParam = False,
    topic: TopicParam = "",
) -> ChannelInfo | Refusal:
    """Create a channel that is owned by the agent named."""
    return named(await _create(context, owner_agent_id, name, is_private, topic), "owner_agent_id")


@tool(face="operator", name="transfer_channel", keyed=True, title="Give a channel to an agent")
async def transfer_channel_to(
    context: Context, channel_id: ChannelParam, new_owner_agent_id: AgentParam
) -> ChannelInfo | Refusal:
    """Make an agent the owner of a channel, whether it is a member or not: also of one whose owner is gone. The owner
    before, if it is there, stays in it as a member."""
    services = context.services
    if await read_channel(services.store, channel_id) is None:
        said = "there is no channel of this id; list_channels has them all"
        return refuse("not_found", said, path="channel_id")
    refused = await _may_own(services, new_owner_agent_id)
    if refused is not None:
        return named(refused, "new_owner_agent_id")
    command = Do(core.Appoint(new_owner_agent_id), context.once)
    answer: ChannelInfo | Refusal = await services.house.ask("channel", channel_id, command)
    return answer


@tool(face="operator", name="list_channels", read_only=True, title="List channels")
async def list_all_channels(
    context: Context,
    ownerless: Annotated[bool, Meta(description="true: only those whose owner is gone")] = False,
    limit: LimitParam = LIST,
    after: AfterParam = None,
) -> Channels | Refusal:
    """All channels, public and private: which there are, whose they are, how many are in them. What was said in them is
    for their members alone."""

    def read(document: Document) -> ChannelRow | None:
        row = stored(ChannelRow, document.doc, "channel", document.id)
        return None if ownerless and row.owner_id else row

    found = await scan(context.services.store, "channel", ("all", "1"), read, after, limit)
    if isinstance(found, Refusal):
        return found
    return Channels([await _info(context, row, None) for row in found.rows], found.next)


async def _create(
    context: Context, owner_id: str, name: str, is_private: bool, topic: str
) -> ChannelInfo | Refusal:
    """A new channel of an agent's: refused where that may own none, or the name is taken."""
    services = context.services
    refused = await _may_own(services, owner_id) or disk_full(services, "no new channel is made")
    if refused is not None:
        return refused
    channel_id = services.new_id("ch_")
    row = ChannelRow(channel_id, name, owner_id, services.clock.now_ms(), is_private, topic)
    answer = await services.house.ask("channel", channel_id, Do(core.Create(row), context.once))
    return answer if isinstance(answer, Refusal) else msgspec.convert(answer, ChannelInfo)


async def _ask(context: Context, channel_id: str, command: core.Command, kind: type[T]) -> T | Refusal:
    house = context.services.house
    live = house.alive("channel", channel_id)
    if not (
        isinstance(live, ChannelActor) and live.knows(me(context))
    ):  # for strangers it is as if none lived
        missing = await _unseen(context, channel_id)
        if missing is not None:
            return missing
    answer = await house.ask("channel", channel_id, Do(command, context.once))
    return answer if isinstance(answer, Refusal) else msgspec.convert(answer, kind)


async def _is_owner(context: Context, channel_id: str) -> bool:
    row = await read_channel(context.services.store, channel_id)
    return row is not None and row.owner_id == me(context)


async def _unseen(context: Context, channel_id: str) -> Refusal | None:
    """not_found where the caller can't know of the channel."""
    store = context.services.store
    return core.see(await read_channel(store, channel_id), await read_member(store, channel_id, me(context)))


async def _may_own(services: Services, agent_id: str) -> Refusal | None:
    agent = await agents.find(services, agent_id)
    if agent is None:
        return NO_AGENT
    most = allowance(agent).own_channels
    owned = len(await services.store.find("channel", "owner", agent_id, limit=most)) if most else 0
    if most is not None and owned >= most:
        return refuse(
            "quota_exceeded", "an agent that nobody has claimed has no channel of its own", reason="channels"
        )
    return None


async def _info(context: Context, row: ChannelRow, member: MemberRow | None) -> ChannelInfo:
    head = (await context.services.store.head(channel_name(row.channel_id))).newest
    return msgspec.convert(core.channel_body(row, head, member.role if member else None), ChannelInfo)


def _metadata(text: msgspec.Raw | bytes | None) -> msgspec.Raw | UnsetType | Refusal:
    """The canonical text of a JSON object of at most 4 KiB."""
    if text is None:
        return UNSET
    if not bytes(text).startswith(b"{"):
        return refuse("bad_request", "metadata must be an object", path="metadata")
    canonical = canonicalize(bytes(text), code="bad_request", at="metadata")
    if isinstance(canonical, Refusal):
        return canonical
    if len(canonical) > METADATA_BYTES:
        return _too_large("metadata", METADATA_BYTES, len(canonical))
    return msgspec.Raw(canonical)


def _size(entry: Entry) -> int:
    return len(entry.data)


def _too_large(path: str, limit: int, size: int) -> Refusal:
    return refuse("too_large", f"{path} is larger than {limit} bytes", path=path, limit=limit, size=size)
