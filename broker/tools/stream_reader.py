"""How the stream of an agent or of a key is followed: the reader that the broker's verb `follow` opens (wire.md,
Streams).

A reader counts as presence while it is open, and ends at once where its caller's right to speak ends.
"""

from contextlib import ExitStack

from broker.actors.calls import agent_stream, stream_name
from broker.actors.streams import Reader
from broker.core.desk import DeskRow
from broker.tools.access import may_listen, open_reader, unheard
from broker.tools.context import Caller, Context, Services
from broker.tools.lookup import keep_in_use, resolve, unknown_desk
from broker.wire.ids import Pk
from broker.wire.refusals import Refusal, refuse


async def follow_stream(context: Context, code: str | None, after: str | None) -> Reader | Refusal:
    """A reader of the stream of the caller's agent or key; with a code of the key that it resolves to now.

    Enter or close the reader. Raises what the store raises; cancelling subscribes nothing.
    """
    services, caller = context.services, context.caller
    refused = await services.standing.judge(caller)
    if refused is not None:
        return refused
    code = code or caller.code
    if code is None and caller.agent is not None:
        stream = agent_stream(caller.agent)
        return may_listen(caller) or await _read(context, stream, caller.agent, after)
    row = await resolve(services, code) if code is not None else None
    if code is not None and row is None:
        return unknown_desk(code)
    pk = _reads_as(services, caller, row)
    if isinstance(pk, Refusal):
        return pk
    reader = await _read(context, stream_name(pk), pk, after, code)
    if isinstance(reader, Refusal):
        return reader
    try:
        await keep_in_use(services, pk)
        row = await resolve(services, code) if code is not None else None
    except BaseException:
        reader.close()
        raise
    if code is not None and (row is None or row.pk != pk):  # it moved before we had subscribed
        reader.end(gone(code, row.pk if row is not None else None))
    return reader


def gone(code: str, new_pk: str | None) -> Refusal:
    """Why a stream that was followed through a desk's code ends."""
    if new_pk is not None:
        return refuse("desk_moved", f"{code} has moved to another key", pk=new_pk)
    return refuse("unknown_desk", f"{code} was closed")


def _reads_as(services: Services, caller: Caller, row: DeskRow | None) -> Pk | Refusal:
    """The key whose stream the caller reads: its own, that of the desk named (`row`) where it may."""
    if caller.pk is None and caller.agent is None:
        said = "following a stream needs a proof of its key, or a token: authenticate first"
        return unheard(caller, said)
    if row is None:
        assert caller.pk is not None  # an agent without a code reads its own stream
        return caller.pk
    if row.pk == caller.pk and caller.code in (None, row.code):
        return Pk(row.pk)
    if caller.agent is not None and services.standing.holder(row.pk) == caller.agent:
        return may_listen(caller) or Pk(row.pk)
    return refuse("not_a_party", "the code does not resolve to your key")


async def _read(
    context: Context, stream: str, reads_as: str, after: str | None, code: str | None = None
) -> Reader | Refusal:
    held = ExitStack()
    held.enter_context(context.services.presence.attach(reads_as))
    return await open_reader(context, stream, after, code=code, held=held)
