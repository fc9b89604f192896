"""The public keys of an agent as it and its operators see them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from broker.actors.agentdocs import read_keys
from broker.tools.context import Context
from broker.wire.jwk import Jwk, jwk_of

KidParam = Annotated[
    str, Meta(pattern=r"^[!-~]{1,64}$(?!\n)", description="a key's kid: its RFC 7638 thumbprint")
]


class PublicKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """A key that the agent has or had. Times are Unix milliseconds."""

    kid: str
    public_jwk: Jwk
    pk: str
    added_at: int
    revoked_at: int | None = None


class PublicKeys(msgspec.Struct, frozen=True):
    """Keys in the order in which they joined."""

    keys: list[PublicKey]


class RevokedKey(msgspec.Struct, frozen=True):
    """The key signs for the agent no more."""

    agent_id: str
    kid: str
    revoked_at: int


async def keys_of(context: Context, agent_id: str) -> PublicKeys:
    """All keys that an agent has or had."""
    rows = await read_keys(context.services.store, agent_id)
    return PublicKeys(
        [PublicKey(row.kid, jwk_of(row.pk), row.pk, row.added_at, row.revoked_at) for row in rows]
    )
