"""What a dealer signs besides envelopes: statements, for one wire alone.

1. The wire's pk in a statement is the pinned one (wire.md, Signed statements).
2. A follow statement is a capability, so that it lives for an hour here, not for the day that it may.
"""

import secrets
from typing import Any, Final

import msgspec

from broker.wire.ids import Pk, Sig
from broker.wire.keys import SigningKey
from broker.wire.refusals import refuse
from broker.wire.statement import build_statement
from gateways.client.clockwork import WireClock
from gateways.client.errors import Refused

FOLLOW_S: Final = 3600
"""Seconds that a read capability of ours is good for; a new one is signed when half of them are over."""


class Signer:
    """A key, the wire that it deals on, and the time there."""

    def __init__(self, key: SigningKey, wire: Pk, clock: WireClock) -> None:
        self.key = key
        self.wire = wire
        self.clock = clock
        self._follow: tuple[int, bytes] | None = None

    @property
    def pk(self) -> Pk:
        return self.key.pk

    def statement(self, do: str, *, nonce: str | None = None, **members: Any) -> bytes:
        """The members `statement` and `sig` of a tool's params, as the JSON text of an object."""
        text, sig = self.sign(do, nonce=nonce, **members)
        return join_params({"statement": msgspec.Raw(text), "sig": sig})

    def sign(self, do: str, *, nonce: str | None = None, **members: Any) -> tuple[bytes, Sig]:
        """A statement's canonical text and its signature. None as a member's value leaves it out.

        Raises Refused (bad_statement) where the wire would refuse it.
        """
        ts, nonce = self.clock.now_s(), nonce or secrets.token_hex(16)
        try:
            return build_statement(do, self.key, self.wire, ts, nonce, **members)
        except ValueError as fault:
            raise Refused(refuse("bad_statement", str(fault))) from None

    def follow(self) -> dict[str, Any]:
        """The read capability as the params that carry it; the same one for half an hour."""
        now = self.clock.now_s()
        if self._follow is None or not -60 <= now - self._follow[0] < FOLLOW_S // 2:
            self._follow = (now, self.statement("follow", until=now + FOLLOW_S))
        return msgspec.json.decode(self._follow[1], type=dict[str, msgspec.Raw])


def join_params(members: dict[str, Any]) -> bytes:
    """The JSON text of params. Raw members (an envelope, a statement) are copied as they are."""
    return msgspec.json.encode(members)
