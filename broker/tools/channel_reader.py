"""How a channel is followed: the reader that the broker's verb `follow_channel` opens (network.md, Channels).

A reader is held by two rights, that of its token and that of a member: it ends at once where either ends.
"""

from contextlib import ExitStack
from functools import partial

import msgspec

from broker.actors.channel import FollowBegan, HasRead, channel_name, read_channel, read_member
from broker.actors.streams import Reader
from broker.core.channel import inside
from broker.tools.access import allowed, me, open_reader
from broker.tools.context import Context
from broker.wire.events import Cursor, read_cursor, stream_tag
from broker.wire.refusals import Refusal, refuse

SCOPE = "channel"


async def follow_channel(
    context: Context, channel_id: str, after: str | None, after_seq: int | None, reads: bool
) -> Reader | Refusal:
    """A reader of the channel's messages: after a cursor, after a seq (0: from the first), or from now.

    What it is handed counts as read by the agent, unless `reads` is false.

    Its `resume` says from which seq it goes on and what the last one is. Raises what the store raises; cancelling
    subscribes nothing.
    """
    refused = await allowed(context, SCOPE, True) or await _outside(context, channel_id)
    if refused is not None:
        return refused
    if after is not None and after_seq is not None:
        return refuse("bad_request", "after and after_seq say the same: give one of them", path="after_seq")
    services, agent_id = context.services, me(context)
    stream = channel_name(channel_id)
    if after_seq is not None:
        epoch = (await services.store.head(stream)).epoch
        after = Cursor(stream_tag(stream), epoch, after_seq).text()
    held = ExitStack()
    reader = await open_reader(context, stream, after, held=held)
    if isinstance(reader, Refusal):
        return reader
    try:
        # Last in, first out: when the actor hears that it has ended, nobody follows any more.
        if reads:
            held.callback(
                lambda: services.house.rouse("channel", channel_id, HasRead(agent_id, reader.position))
            )
        end = partial(reader.end, at_once=True)
        held.enter_context(services.followers.hold(channel_id, agent_id, end, reads=reads))
        services.house.tell("channel", channel_id, FollowBegan(agent_id))
        refused = await _outside(context, channel_id)  # it may have been removed before it was held
    except BaseException:
        reader.close()
        raise
    if refused is not None:
        reader.close()
        return refused
    reader.resume = msgspec.structs.replace(
        reader.resume, from_seq=_seq(reader.resume.from_), head_seq=_seq(reader.resume.head)
    )
    return reader


async def _outside(context: Context, channel_id: str) -> Refusal | None:
    store = context.services.store
    row = await read_channel(store, channel_id)
    return inside(row, await read_member(store, channel_id, me(context)))


def _seq(cursor: str) -> int:
    read = read_cursor(cursor)
    assert read is not None  # the broker's own
    return read.position
