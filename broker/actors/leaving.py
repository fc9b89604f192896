"""An agent that goes leaves its channels: nobody counts it, and what it owned is nobody's until operators give it to
somebody (network.md, Channels).

The documents are those of the channels: a channel's actor that has read them before sees a conflict, and reads them
again (broker.actors.record).
"""

from typing import Final

import msgspec

from broker.actors.channel import index_of_channel
from broker.core.channel import ChannelRow, MemberRow, without
from broker.store.port import Put, Store
from broker.store.stored import stored

AT_ONCE: Final = 50
"""Channels that are left in one commit; an agent may be in any number of them."""


async def leave_channels(store: Store, agent_id: str) -> list[Put]:
    """What takes an agent out of some of its channels; nothing where it is in none. Ask again after the commit. Raises
    what the store raises."""
    puts: list[Put] = []
    for document in await store.find("member", "agent", agent_id, limit=AT_ONCE):
        member = stored(MemberRow, document.doc, "member", document.id)
        puts.append(Put("member", document.id, document.version, None))
        found = await store.get("channel", member.channel_id)
        if found is not None:
            row = without(stored(ChannelRow, found.doc, "channel", found.id), member)
            index = index_of_channel(row)
            puts.append(Put("channel", found.id, found.version, msgspec.json.encode(row), index))
    return puts
