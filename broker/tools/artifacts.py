"""Artifacts for whoever has their ref (docs/reference/arena.md, Artifacts).

1. No token is asked for: a ref is 256 bits, so that who has one was given it, or has the bytes already.
2. What is given out has the hash that it was asked by. Whatever else lies there is `unavailable`.
3. It is no tool: an artifact has an address, and is read there (decision 0038).
"""

from broker.actors.artifacts import NO_ARTIFACT, read_artifact
from broker.core.artifact import MAX_BYTES
from broker.tools.context import Context
from broker.tools.lookup import guessed
from broker.wire.ids import REF
from broker.wire.refusals import Refusal, refuse


async def artifact(context: Context, ref: str) -> bytes | Refusal:
    """The exact bytes of an artifact, at most MAX_BYTES; NOT_FOUND, or rate_limited for an address that guesses.

    Raises Unavailable where the bytes are not those that the ref names. Cancelling is safe.
    """
    content = await read_artifact(context.services.store, ref) if REF.fullmatch(ref) else None
    if content is None:
        return guessed(context, NO_ARTIFACT)
    if len(content) > MAX_BYTES:
        return refuse("too_large", "the artifact is larger than any door gives out", limit=MAX_BYTES)
    return content
