"""State that travels through a client and back: readable there, and unchanged when it is taken again.

1. A seal names whom it was given to, for which request, and until when; all three must hold.
2. The key lives with the process: after a restart nothing that was sealed before is taken.
3. It binds state to a request and does not count how often it comes: who needs "once" must keep it itself.

Source: MCP 2026-07-28, Multi Round-Trip Requests (server requirements 4 and 5).
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final

import msgspec
import trio

STATE_S: Final = 900.0
"""Seconds that a person may take to answer."""
_MAC_BYTES: Final = 32


class _Sealed(msgspec.Struct, frozen=True, array_like=True):
    until: float
    owner: str
    request: str
    state: str


class Seal:
    """Seals and opens state. `now`: monotonic seconds."""

    def __init__(
        self,
        key: bytes | None = None,
        *,
        now: Callable[[], float] = trio.current_time,
        kept_s: float = STATE_S,
    ) -> None:
        self._key = key or secrets.token_bytes(32)
        self._now = now
        self._kept_s = kept_s

    def close(self, state: str, owner: str, request: str) -> str:
        """The state as an opaque text. `owner`: who may bring it back; `request`: a digest of what it is of."""
        payload = msgspec.json.encode(_Sealed(self._now() + self._kept_s, owner, request, state))
        return base64.urlsafe_b64encode(self._mac(payload) + payload).decode()

    def open(self, text: str, owner: str, request: str) -> str | None:
        """The state, or None where the text is not ours, of another owner or request, or too old."""
        try:
            data = base64.b64decode(text, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        mac, payload = data[:_MAC_BYTES], data[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(payload)):
            return None
        if base64.urlsafe_b64encode(data).decode() != text:  # other letters for the same bytes
            return None
        found = msgspec.json.decode(payload, type=_Sealed)
        good = found.owner == owner and found.request == request and self._now() <= found.until
        return found.state if good else None

    def _mac(self, payload: bytes) -> bytes:
        return hmac.digest(self._key, payload, hashlib.sha256)
