"""What `turret check` finds in channels: messages without a gap in their order, members as the channel counts them.

1. A log's row and a message's seq say the same; who reads by one reads by the other.
2. A channel is what its document says and its members' documents say together: one owner, so many in it.
"""

from collections.abc import Iterator

import msgspec

from broker.actors.channel import channel_name
from broker.core.channel import ChannelRow, MemberRow, Message
from broker.store.port import Entry, Fault, Snapshot


def check_channels(snapshot: Snapshot) -> Iterator[tuple[str, int, list[Fault]]]:
    """Each channel's log, how many messages it has, and what is wrong with it. Raises what reading raises."""
    roles: dict[str, dict[str, str]] = {}
    for document in snapshot.documents("member"):
        channel_id, _, agent_id = document.id.partition(":")
        try:
            roles.setdefault(channel_id, {})[agent_id] = msgspec.json.decode(
                document.doc, type=MemberRow
            ).role
        except msgspec.MsgspecError:
            roles.setdefault(channel_id, {})[agent_id] = "unreadable"
    for document in snapshot.documents("channel"):
        log = channel_name(document.id)
        entries = snapshot.rows(log)
        faults = [*_messages(document.id, entries)]
        try:
            row = msgspec.json.decode(document.doc, type=ChannelRow)
        except msgspec.MsgspecError as error:
            faults.append(Fault("document", document.id, f"is no channel's: {error}"))
        else:
            faults += _document(snapshot, row, roles.pop(document.id, {}))
        yield log, len(entries), faults
    for channel_id in sorted(roles):
        yield "", 0, [Fault("document", channel_id, "has members, and no document of a channel")]


def _messages(channel_id: str, entries: list[Entry]) -> Iterator[Fault]:
    last = 0
    for number, entry in enumerate(entries):
        try:
            message = msgspec.json.decode(entry.data, type=Message)
        except msgspec.MsgspecError as error:
            yield Fault("channel", channel_id, f"no message: {error}", number + 1)
            continue
        if (message.channel_id, message.seq, entry.n) != (channel_id, number + 1, number):
            yield Fault("channel", channel_id, f"is {message.seq} of {message.channel_id}", number + 1)
        if message.at != entry.at or message.at < last:
            yield Fault("channel", channel_id, "its time is not the row's, or goes back", number + 1)
        last = message.at


def _document(snapshot: Snapshot, row: ChannelRow, roles: dict[str, str]) -> Iterator[Fault]:
    said = (row.owner_id, row.members, row.invited)
    invited = sum(role == "invited" for role in roles.values())
    owners = [agent_id for agent_id, role in roles.items() if role == "owner"]
    nobody = "" if not owners else None  # its owner is gone
    found = (owners[0] if len(owners) == 1 else nobody, len(roles) - invited, invited)
    if said != found:
        yield Fault(
            "document", row.channel_id, f"owner, members, invited are {said}, its members say {found}"
        )
    claim = snapshot.document("channelname", row.name)
    if claim is None or msgspec.json.decode(claim.doc).get("channel_id") != row.channel_id:
        yield Fault("document", row.channel_id, f"its name {row.name} is not claimed by it")
