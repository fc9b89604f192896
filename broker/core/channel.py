"""One channel: who is in it, who may do what, and who is to be told that there is news (network.md, Channels).

1. `decide` answers a command with a Change or a Refusal and changes nothing; `fold` puts a committed Change in.
2. Messages are numbered 1, 2, … without a gap, in one order for all. What a message costs does not grow with the
   members: they read the channel itself.
3. A member has at most one unread `channel` event: it is told of the first news, and of no more until it has read.
   Who follows the channel meanwhile needs none.
4. To who is not in it a private channel looks missing.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from broker.core.machine import Now
from broker.core.pace import PACE, Pace, Spent, wait
from broker.wire.refusals import Refusal, refuse

Role = Literal["owner", "member", "invited"]
MAX_MEMBERS: Final = 10_000
MAX_INVITED: Final = 100
"""Invitations of one channel that wait: it must not be a way to write to everybody."""
BODY_BYTES: Final = 16_384
METADATA_BYTES: Final = 4_096


class ChannelRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A channel as stored (kind "channel", id = channel_id). `created_at`: wall milliseconds."""

    channel_id: str
    name: str
    owner_id: str
    """Empty: its owner is gone, and operators have given it to nobody yet."""
    created_at: int
    is_private: bool = False
    topic: str = ""
    members: int = 1
    """The owner among them; who is merely invited is none."""
    invited: int = 0
    due: int | None = None
    """Wall milliseconds at which somebody is to be told of news, if that was not done before."""


class MemberRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A member or an invited agent as stored (kind "member", id = `<channel_id>:<agent_id>`)."""

    channel_id: str
    agent_id: str
    role: Role
    since: int
    """Wall milliseconds at which it joined or was invited."""
    unread: int = 0
    """The seq that its `channel` event named, until it has read that far; 0: it may be told."""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message as its row has it, and the event `channel_message`."""

    channel_id: str
    seq: int
    message_id: str
    agent_id: str
    name: str
    """The sender's, at that time."""
    body: str
    at: int
    """Wall milliseconds; never less than the message before."""
    metadata: Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "object"})] | UnsetType = UNSET
    """A JSON object, canonical; absent: none."""
    hops: int = 0
    """How many messages this one is an answer to, one after the other (network.md, Loop guard)."""


class Channel:
    """The state: rows as stored, where the log stands, and what was sent within the last window."""

    def __init__(self, pace: Pace = PACE) -> None:
        self.pace = pace
        self.row: ChannelRow | None = None
        self.members: dict[str, MemberRow] = {}
        self.head = 0
        self.last_at = 0
        self.spent: deque[Spent] = deque(maxlen=pace.channel)

    def in_it(self, agent_id: str) -> bool:
        """Whether an agent is a member, the owner among them."""
        member = self.members.get(agent_id)
        return member is not None and member.role != "invited"


class Create(msgspec.Struct, frozen=True):
    """A new channel. The name is claimed by the actor."""

    row: ChannelRow


class Join(msgspec.Struct, frozen=True):
    agent_id: str


class Invite(msgspec.Struct, frozen=True):
    agent_id: str
    invited_id: str


class Leave(msgspec.Struct, frozen=True):
    agent_id: str


class Remove(msgspec.Struct, frozen=True):
    agent_id: str
    target_id: str


class Transfer(msgspec.Struct, frozen=True):
    agent_id: str
    new_owner_id: str


class Appoint(msgspec.Struct, frozen=True):
    """Operators make an agent the owner, a member or not. The owner before stays in it as a member."""

    new_owner_id: str


class Send(msgspec.Struct, frozen=True):
    """A message; the core gives `seq` and `at`."""

    agent_id: str
    message_id: str
    name: str
    body: str
    metadata: msgspec.Raw | UnsetType = UNSET


class Read(msgspec.Struct, frozen=True):
    """An agent has read all up to `seq`."""

    agent_id: str
    seq: int


Command = Create | Join | Invite | Leave | Remove | Transfer | Appoint | Send | Read


class Change(msgspec.Struct, frozen=True):
    """What a command makes of a channel."""

    answer: dict[str, Any]
    row: ChannelRow | None = None
    """The channel's row, where it changes."""
    members: tuple[tuple[str, MemberRow | None], ...] = ()
    """Rows that change; None: the agent is in it no more."""
    message: Message | None = None
    notices: tuple[tuple[str, dict[str, Any]], ...] = ()
    """What agents are told of it: `what`, and members of its own."""
    told: tuple[tuple[str, int], ...] = ()
    """Who gets a `channel` event, and the seq that it names."""


def decide(state: Channel, command: Command, now: Now) -> Change | Refusal:
    """What a command makes of the channel, or why it may not be."""
    return _DECIDE[type(command)](state, command, now)


def fold(state: Channel, change: Change, now: Now) -> None:
    """Put a committed change in."""
    if change.row is not None:
        state.row = change.row
    for agent_id, row in change.members:
        if row is None:
            state.members.pop(agent_id, None)
        else:
            state.members[agent_id] = row
    message = change.message
    if message is not None:
        state.head, state.last_at = message.seq, message.at
        state.spent.append(Spent(message.seq, message.agent_id, now.mono))


def missing() -> Refusal:
    """For a channel that there is none of, and for a private one to who is not in it."""
    return refuse("not_found", "there is no channel of this id")


def see(row: ChannelRow | None, member: MemberRow | None) -> Refusal | None:
    """Why an agent (its row, if it has one) may not know of a channel."""
    return missing() if row is None or (row.is_private and member is None) else None


def inside(row: ChannelRow | None, member: MemberRow | None) -> Refusal | None:
    """Why an agent may not read and write there: members alone may."""
    refused = see(row, member)
    if refused is None and (member is None or member.role == "invited"):
        return refuse("not_a_party", "you are not a member of this channel; join_channel first")
    return refused


def _create(state: Channel, command: Create, now: Now) -> Change | Refusal:
    row = command.row
    if state.row is not None:
        return refuse("already_exists", "there is a channel of this id")
    owner = MemberRow(row.channel_id, row.owner_id, "owner", row.created_at)
    return Change(channel_body(row, 0, "owner"), row, ((row.owner_id, owner),))


def _join(state: Channel, command: Join, now: Now) -> Change | Refusal:
    row, member = state.row, state.members.get(command.agent_id)
    if (refused := see(row, member)) is not None:
        return refused
    assert row is not None
    if member is not None and member.role != "invited":
        return Change(channel_body(row, state.head, member.role))
    if row.members >= MAX_MEMBERS:
        return refuse("quota_exceeded", f"a channel has at most {MAX_MEMBERS} members", reason="members")
    made = MemberRow(row.channel_id, command.agent_id, "member", now.wall_ms)
    row = _counted(row, +1, 0 if member is None else -1)
    return Change(channel_body(row, state.head, "member"), row, ((command.agent_id, made),))


def _invite(state: Channel, command: Invite, now: Now) -> Change | Refusal:
    row = _owned(state, command.agent_id)
    if isinstance(row, Refusal):
        return row
    if not row.is_private:
        return refuse("bad_request", "a public channel needs no invitation: anybody may join it")
    invited = command.invited_id
    answer = {"channel_id": row.channel_id, "agent_id": invited, "role": "invited"}
    if state.in_it(invited):
        return refuse("already_exists", "this agent is a member already")
    if invited in state.members:
        return Change(answer)
    if row.invited >= MAX_INVITED:
        return refuse(
            "quota_exceeded",
            f"at most {MAX_INVITED} invitations of a channel may wait; remove_channel_member takes one back",
            reason="invitations",
        )
    made = MemberRow(row.channel_id, invited, "invited", now.wall_ms)
    told = _notice("channel_invited", row, at=now.wall_ms, by=command.agent_id)
    return Change(answer, _counted(row, 0, +1), ((invited, made),), notices=((invited, told),))


def _leave(state: Channel, command: Leave, now: Now) -> Change | Refusal:
    row, member = state.row, state.members.get(command.agent_id)
    if (refused := see(row, member)) is not None:
        return refused
    assert row is not None
    if member is None:
        return inside(row, member) or missing()
    if member.role == "owner":
        return refuse("bad_request", "the owner can't leave: transfer_channel to another member first")
    answer = {"channel_id": row.channel_id, "agent_id": command.agent_id, "left": True}
    return Change(answer, _without(row, member), ((command.agent_id, None),))


def _remove(state: Channel, command: Remove, now: Now) -> Change | Refusal:
    row = _owned(state, command.agent_id)
    if isinstance(row, Refusal):
        return row
    member = state.members.get(command.target_id)
    if member is None:
        return _no_member()
    if member.role == "owner":
        return refuse("bad_request", "the owner can't be removed: transfer_channel to another member first")
    answer = {"channel_id": row.channel_id, "agent_id": command.target_id, "removed": True}
    told = _notice("channel_removed", row, at=now.wall_ms, by=command.agent_id)
    notices = ((command.target_id, told),)
    return Change(answer, _without(row, member), ((command.target_id, None),), notices=notices)


def _transfer(state: Channel, command: Transfer, now: Now) -> Change | Refusal:
    row = _owned(state, command.agent_id)
    if isinstance(row, Refusal):
        return row
    old, new = state.members[command.agent_id], state.members.get(command.new_owner_id)
    if new is None or new.role == "invited":
        return _no_member()
    if new.role == "owner":
        return Change(channel_body(row, state.head, "owner"))
    row = msgspec.structs.replace(row, owner_id=command.new_owner_id)
    members = (
        (command.agent_id, msgspec.structs.replace(old, role="member")),
        (command.new_owner_id, msgspec.structs.replace(new, role="owner")),
    )
    told = _notice("channel_transferred", row, at=now.wall_ms, by=command.agent_id)
    notices = ((command.new_owner_id, told),)
    return Change(channel_body(row, state.head, "member"), row, members, notices=notices)


def _appoint(state: Channel, command: Appoint, now: Now) -> Change | Refusal:
    row, chosen = state.row, command.new_owner_id
    if row is None:
        return missing()
    old, new = state.members.get(row.owner_id), state.members.get(chosen)
    if new is not None and new.role == "owner":
        return Change(channel_body(row, state.head, None))
    joins = new is None or new.role == "invited"
    if joins and row.members >= MAX_MEMBERS:
        return refuse("quota_exceeded", f"a channel has at most {MAX_MEMBERS} members", reason="members")
    row = _counted(row, +1 if joins else 0, -1 if new is not None and joins else 0)
    row = msgspec.structs.replace(row, owner_id=chosen)
    if new is None or joins:
        owner = MemberRow(row.channel_id, chosen, "owner", now.wall_ms)
    else:
        owner = msgspec.structs.replace(new, role="owner")
    members: list[tuple[str, MemberRow]] = [(chosen, owner)]
    if old is not None:
        members.append((old.agent_id, msgspec.structs.replace(old, role="member")))
    told = _notice("channel_transferred", row, at=now.wall_ms, by="operator")
    notices = tuple((agent_id, told) for agent_id, _ in members)
    return Change(channel_body(row, state.head, None), row, tuple(members), notices=notices)


def _send(state: Channel, command: Send, now: Now) -> Change | Refusal:
    row = state.row
    if (refused := inside(row, state.members.get(command.agent_id))) is not None:
        return refused
    assert row is not None
    pace = state.pace
    left = wait(state.spent, command.agent_id, now.mono, pace)
    if left:
        return refuse(
            "rate_limited",
            f"a channel takes {pace.channel} messages in {pace.window_s:g} s, {pace.member} of one member",
            retry_after_ms=left,
        )
    made = Message(
        channel_id=row.channel_id,
        seq=state.head + 1,
        message_id=command.message_id,
        agent_id=command.agent_id,
        name=command.name,
        body=command.body,
        at=max(now.wall_ms, state.last_at),
        metadata=command.metadata,
    )
    answer = {"channel_id": row.channel_id, "seq": made.seq, "message_id": made.message_id, "at": made.at}
    return Change(answer, message=made)


def _read(state: Channel, command: Read, now: Now) -> Change | Refusal:
    row, member = state.row, state.members.get(command.agent_id)
    if (refused := inside(row, member)) is not None:
        return refused
    assert row is not None
    assert member is not None
    change = settle(state, {command.agent_id: command.seq} if member.unread else {}, ())
    return msgspec.structs.replace(change, answer={"channel_id": row.channel_id, "seq": command.seq})


def settle(state: Channel, read: Mapping[str, int], owed: Iterable[str], seq: int | None = None) -> Change:
    """Who is told now that there is news, and whose `channel` event is read.

    `read`: how far agents have read. `owed`: who has not been told of what came last. `seq`: what they are told, the
    head if not given.
    """
    head = state.head if seq is None else seq
    rows: dict[str, MemberRow] = {}
    for agent_id in {**read, **dict.fromkeys(owed)}:
        if not state.in_it(agent_id):
            continue
        member, upto = state.members[agent_id], read.get(agent_id, 0)
        if upto >= member.unread if member.unread else upto < head:
            unread = head if upto < head else 0  # what has come since is told anew
            rows[agent_id] = msgspec.structs.replace(member, unread=unread)
    told = tuple((agent_id, row.unread) for agent_id, row in rows.items() if row.unread)
    return Change({}, members=tuple(rows.items()), told=told)


_DECIDE: Final[dict[type[Any], Callable[[Channel, Any, Now], Change | Refusal]]] = {
    Create: _create,
    Join: _join,
    Invite: _invite,
    Leave: _leave,
    Remove: _remove,
    Transfer: _transfer,
    Appoint: _appoint,
    Send: _send,
    Read: _read,
}


def channel_body(row: ChannelRow, head: int, role: Role | None) -> dict[str, Any]:
    """A channel as the tools show it; `head`: the last message's seq."""
    shown = {
        "channel_id": row.channel_id,
        "name": row.name,
        "is_private": row.is_private,
        "topic": row.topic,
        "owner_agent_id": row.owner_id or None,
        "created_at": row.created_at,
        "members": row.members,
        "head": head,
    }
    return shown if role is None else {**shown, "role": role}


def _owned(state: Channel, agent_id: str) -> ChannelRow | Refusal:
    row, member = state.row, state.members.get(agent_id)
    if (refused := see(row, member)) is not None:
        return refused
    assert row is not None
    if row.owner_id != agent_id:
        return refuse("not_a_party", "only the channel's owner may do this")
    return row


def _no_member() -> Refusal:
    return refuse("not_found", "no such agent is in this channel")


def _notice(what: str, row: ChannelRow, *, at: int, by: str) -> dict[str, Any]:
    return {"what": what, "at": at, "channel_id": row.channel_id, "name": row.name, "by": by}


def _counted(row: ChannelRow, members: int, invited: int) -> ChannelRow:
    return msgspec.structs.replace(row, members=row.members + members, invited=row.invited + invited)


def without(row: ChannelRow, member: MemberRow) -> ChannelRow:
    """The row without a member that is gone: what it owned is nobody's."""
    owner_id = "" if member.role == "owner" else row.owner_id
    return msgspec.structs.replace(_without(row, member), owner_id=owner_id)


def _without(row: ChannelRow, member: MemberRow) -> ChannelRow:
    return _counted(row, 0, -1) if member.role == "invited" else _counted(row, -1, 0)
