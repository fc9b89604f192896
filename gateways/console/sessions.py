"""Who is signed in at the console: sessions in memory, which end with the process.

1. A session is a secret in a cookie, of which a digest is kept. It ends two hours unused, after twelve in any case,
   when it is signed out, or when a newer one needs its place.
2. What a session has open is told of its end at once: a live page must not outlive it.
"""

import hashlib
import secrets
from collections.abc import Callable
from typing import Final

import trio

from broker.app import Caller

IDLE_S: Final = 2 * 3600.0
LIFE_S: Final = 12 * 3600.0
MOST: Final = 64
"""Sessions at once; the one used longest ago goes first."""


class Session:
    """One browser of an operator's. Made by Sessions.open."""

    def __init__(self, operator: Caller) -> None:
        now = trio.current_time()
        self.operator = operator
        """Who signed in, as the gate admitted it."""
        self.over = False
        self._used = now
        self._last = now + LIFE_S
        self._ends: dict[Callable[[], None], None] = {}

    @property
    def until(self) -> float:
        """When it ends by itself, on Trio's clock."""
        return min(self._last, self._used + IDLE_S)

    def use(self) -> None:
        """A person did something."""
        self._used = trio.current_time()

    def on_end(self, end: Callable[[], None]) -> None:
        """`end` is called once, when the session ends, unless it is forgotten before."""
        self._ends[end] = None

    def forget(self, end: Callable[[], None]) -> None:
        """`end` need not be called any more."""
        self._ends.pop(end, None)

    def close(self) -> None:
        """It is over. Closing twice is fine."""
        self.over = True
        ends, self._ends = self._ends, {}
        for end in ends:
            end()


class Sessions:
    """All sessions of one console."""

    def __init__(self) -> None:
        self._kept: dict[bytes, Session] = {}

    def open(self, operator: Caller) -> str:
        """A new session's secret, for whom the gate has admitted."""
        self._sweep()
        secret = secrets.token_urlsafe(32)
        self._kept[_digest(secret)] = Session(operator)
        while len(self._kept) > MOST:
            self._end(min(self._kept, key=lambda each: self._kept[each].until))
        return secret

    def find(self, secret: str) -> Session | None:
        """The session of a secret, where it still lasts; it counts as used now."""
        self._sweep()
        session = self._kept.get(_digest(secret))
        if session is not None:
            session.use()
        return session

    def close(self, secret: str) -> None:
        """Sign out."""
        self._end(_digest(secret))

    def _sweep(self) -> None:
        now = trio.current_time()
        for key in [key for key, each in self._kept.items() if each.until <= now]:
            self._end(key)

    def _end(self, key: bytes) -> None:
        session = self._kept.pop(key, None)
        if session is not None:
            session.close()


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
