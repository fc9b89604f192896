"""What the sign-in keeps in memory: requests that wait for an owner, who may ask how often, and who was refused.

1. A request for consent comes from anybody, so it takes no room on the disk, and little here: an address has at most
   64 of them, and beyond 4,096 the oldest goes. A restart forgets them; the client's user starts again.
2. Refusals are summed by address and minute, so that nobody can fill what they are written to.
"""

from collections import OrderedDict
from typing import Final

import msgspec

from broker.actors.guard import CAP, HOUR_S, Times, place_of
from broker.clock import Clock
from broker.core.audit import OTHERS, Sum
from broker.core.grant import ASK_MS
from broker.store.port import Unit
from broker.wire.refusals import Refusal, refuse

REGISTRATIONS: Final = 20
"""Clients registered from one address in an hour, as many as desks are opened."""
MOST_ASKS: Final = 4096
ASKS: Final = 64
"""Requests for consent from one address that may wait at once."""
SPARE: Final = 64
"""Sums that fit beside the bound: those of others."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A client asks an owner for consent."""

    ask: str
    client_id: str
    client_name: str
    client_uri: str | None
    redirect_uri: str
    named: bool
    """Whether the client named its redirect itself."""
    state: str | None
    challenge: str
    scopes: tuple[str, ...]
    resource: str
    issuer: str
    until: int
    """Wall milliseconds."""
    place: str | None = None


class SignIn:
    """See above; nothing in it waits."""

    def __init__(self, clock: Clock, *, asks: int = MOST_ASKS, cap: int = CAP) -> None:
        self._clock = clock
        self._most = asks
        self._cap = cap
        self._asks: OrderedDict[str, Ask] = OrderedDict()
        self._waiting: dict[str, int] = {}
        self._registrations = Times(REGISTRATIONS, HOUR_S, cap)
        self._refused: dict[tuple[int, str, str], int] = {}
        self.unwritten: Unit | None = None
        """Sums that were taken from here, and that the store has not said yes to so far."""

    def ask(self, ask: Ask, address: str) -> Refusal | None:
        """Have a request wait for its owner. rate_limited: too many of this address do."""
        self._drop_over()
        place = place_of(address)
        if place is not None and self._waiting.get(place, 0) >= ASKS:
            return refuse(
                "rate_limited", "too many sign-ins of this address wait already", retry_after_ms=ASK_MS // 10
            )
        while len(self._asks) >= self._most:
            self._drop(next(iter(self._asks)))
        self._asks[ask.ask] = msgspec.structs.replace(ask, place=place)
        if place is not None:
            self._waiting[place] = self._waiting.get(place, 0) + 1
        return None

    def find(self, name: str) -> Ask | None:
        """A request that still waits."""
        ask = self._asks.get(name)
        return ask if ask is not None and ask.until > self._clock.now_ms() else None

    def take(self, name: str) -> Ask | None:
        """The same, and it waits no more."""
        ask = self.find(name)
        if ask is not None:
            self._drop(name)
        return ask

    def register(self, address: str, exempt: bool) -> Refusal | None:
        """Before a client is registered: rate_limited, or None, and it counts."""
        place = None if exempt else place_of(address)
        if place is None:
            return None
        why = "too many clients registered from this address"
        return self._registrations.spend(self._clock.monotonic(), why, place)

    def refused(self, address: str, kind: str) -> None:
        """Count a refused sign-in."""
        minute, place = self._clock.now_ms() // 60_000, place_of(address) or "loopback"
        key = (minute, place, kind)
        if key not in self._refused and len(self._refused) >= self._cap:
            key = (minute, OTHERS, kind)
            if len(self._refused) >= self._cap + SPARE:  # nobody takes them
                del self._refused[next(iter(self._refused))]
        self._refused[key] = self._refused.get(key, 0) + 1

    def take_refused(self, *, all: bool = False) -> list[Sum]:
        """The sums of all minutes that are over (or, at a stop, of `all`), oldest first; they are forgotten here."""
        this = self._clock.now_ms() // 60_000
        over = sorted(key for key in self._refused if all or key[0] != this)
        return [Sum(*key, self._refused.pop(key)) for key in over]

    def _drop(self, name: str) -> None:
        place = self._asks.pop(name).place
        if place is not None:
            self._waiting[place] -= 1
            if not self._waiting[place]:
                del self._waiting[place]

    def _drop_over(self) -> None:
        now = self._clock.now_ms()
        while self._asks and next(iter(self._asks.values())).until <= now:
            self._drop(next(iter(self._asks)))
