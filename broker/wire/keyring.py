"""The wire's own keys (wire.md, Keys): one signs now, older ones go on signing in their old conversations.

1. In each conversation the wire signs with the key that was its own when the CALL was accepted.
2. `until` is set on a key that no longer opens conversations; its END and receipts stay good.
"""

from typing import Any

import msgspec

from broker.wire.ids import Pk
from broker.wire.keys import SigningKey


class WireKey(msgspec.Struct, frozen=True):
    """A key of the wire, with the wall milliseconds between which it was the one that opens conversations."""

    key: SigningKey
    since: int
    until: int | None = None


class Keyring:
    """The wire's keys, oldest first; the last one is the present one."""

    def __init__(self, keys: tuple[WireKey, ...]) -> None:
        if not keys:
            raise ValueError("a wire needs a key")
        self._keys = keys
        self._by_pk = {wire_key.key.pk: wire_key.key for wire_key in keys}
        self.current: SigningKey = keys[-1].key

    @property
    def pk(self) -> Pk:
        """The wire's present public key."""
        return self.current.pk

    @property
    def opening(self) -> tuple[Pk, ...]:
        """The keys that body.wire and statements may name: those without `until`."""
        return tuple(wire_key.key.pk for wire_key in self._keys if wire_key.until is None)

    def get(self, pk: str) -> SigningKey:
        """The wire's key with this pk; the present one if it is not there any more."""
        return self._by_pk.get(Pk(pk), self.current)

    def listing(self) -> list[dict[str, Any]]:
        """wire_keys as published: pk, from and, where over, until; wall milliseconds."""
        rows: list[dict[str, Any]] = []
        for wire_key in self._keys:
            row: dict[str, Any] = {"pk": wire_key.key.pk, "from": wire_key.since}
            if wire_key.until is not None:
                row["until"] = wire_key.until
            rows.append(row)
        return rows
