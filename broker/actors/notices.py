"""What the network itself writes into an agent's inbox: a report that was looked at, a webhook that was ended
(network.md, Messages).

1. It is a message like any other, from `NETWORK`, which is no agent's id: read, counted, paged and marked as read as
   those of agents are. Nobody answers it.
2. Whoever changes something puts the message into the commit of that change: both are there, or neither is. Its
   documents are those of the pair of the agent and the network; whoever has read the pair before sees a conflict, and
   reads it again (broker.actors.record).
3. An event `notice` says the same in members, for programs.
4. An inbox keeps MOST of them. One that is gone is written nothing.
"""

from typing import Any, Final, NamedTuple

import msgspec

from broker.actors.agentdocs import read_agent, version_of
from broker.actors.calls import agent_stream
from broker.actors.pairdocs import FRESH, find_overfull, index_of_pair, put_message
from broker.actors.record import Told
from broker.core import agreement as core
from broker.core.agreement import PairRow, pair_key
from broker.core.loops import Trace
from broker.core.message import MessageRow, shown
from broker.store.port import Put, Store
from broker.store.stored import stored

NETWORK: Final = "network"
"""From whom these messages are (`from_agent_id`)."""
NAME: Final = "The network"
MOST: Final = 1000


class Notice(NamedTuple):
    """What goes into the unit of the change."""

    puts: tuple[Put, ...]
    events: tuple[Told, ...]


async def write_notice(
    store: Store,
    agent_id: str,
    message_id: str,
    body: str,
    what: str,
    members: dict[str, Any],
    now: int,
) -> Notice:
    """A message of the network's for an agent's inbox, its event `message`, and the event `notice` {what, at, members}.
    Empty for an agent that is gone. `now`: wall milliseconds. Raises what the store raises; writes nothing itself."""
    if await read_agent(store, agent_id, now) is None:
        return Notice((), ())
    key = pair_key(NETWORK, agent_id)
    document = await store.get("pair", key)
    one, _, other = key.partition(":")
    row = PairRow((one, other)) if document is None else stored(PairRow, document.doc, "pair", key)
    message = MessageRow(message_id, NETWORK, agent_id, body, now, Trace(message_id, now), NAME)
    dropped = await find_overfull(store, row, agent_id, MOST)
    unread = sum(each.read_at is None for each, _ in dropped)
    row = core.sent(row, agent_id, dropped=len(dropped), dropped_unread=unread)
    pair = Put("pair", key, version_of(document), msgspec.json.encode(row), index_of_pair(row))
    gone = (Put("dm", each.message_id, version, None) for each, version in dropped)
    return Notice(
        (pair, put_message(message, FRESH), *gone),
        (
            Told(agent_stream(agent_id), "message", shown(message)),
            Told(agent_stream(agent_id), "notice", {"what": what, "at": now, **members}),
        ),
    )
