"""How often somebody may try to sign in (network.md, Sign-in): by e-mail, and by address.

1. A try counts from its beginning, so that many at once are not more than one after the other; a good one is taken
   back at its end.
2. What is stopped does not count: waiting as told is enough.
3. An e-mail that nobody has is counted like any other.
"""

from typing import Final

from broker.actors.guard import CAP, HOUR_S, Times, place_of
from broker.clock import Clock
from broker.wire.refusals import Refusal, refuse

BY_EMAIL: Final = 5
BY_ADDRESS: Final = 20
WINDOW_S: Final = 60.0
CLAIMS: Final = 5
"""Claim codes that may be entered in a minute: by one owner, from one address, and of those that begin alike, whether
there are such or not (network.md, Sign-in)."""
OPERATORS: Final = 20
"""Wrong tokens of the operators from one address in a minute that are told so; those beyond are told to wait."""
SIGN_UPS: Final = 10
"""New owners from one address in an hour; each costs a hash, and tells whether an e-mail is taken."""


class Attempts:
    """The tries of one broker. Nothing in it waits; its memory is bounded as the guard's is."""

    def __init__(self, clock: Clock, *, cap: int = CAP) -> None:
        self._clock = clock
        self._emails = Times(BY_EMAIL, WINDOW_S, cap)
        self._places = Times(BY_ADDRESS, WINDOW_S, cap)
        self._claims = Times(CLAIMS, WINDOW_S, cap)
        self._sign_ups = Times(SIGN_UPS, HOUR_S, cap)
        self._operators = Times(OPERATORS, WINDOW_S, cap)

    def begin(self, email: str, address: str) -> Refusal | None:
        """Before a password is looked at: None, and it counts; or rate_limited. Loopback is not counted by address."""
        now, place = self._clock.monotonic(), place_of(address)
        left_ms = self._emails.wait_ms(email, now)
        if place is not None:
            left_ms = max(left_ms, self._places.wait_ms(place, now))
        if left_ms > 0:
            why = "too many tries to sign in; wait retry_after_ms"
            return refuse("rate_limited", why, retry_after_ms=left_ms)
        self._emails.add(email, now)
        if place is not None:
            self._places.add(place, now)
        return None

    def take_back(self, email: str, address: str) -> None:
        """The try was good, or nobody looked at the password: it does not count."""
        place = place_of(address)
        self._emails.take_back(email)
        if place is not None:
            self._places.take_back(place)

    def claim(self, owner_id: str, selector: str | None, address: str) -> Refusal | None:
        """Before a claim code is looked for: None, and it counts, whether it is one or not; or rate_limited.

        `selector`: how the code begins; None: it can't be one. Loopback is not counted by address.
        """
        place, counted = place_of(address), [owner_id]
        if selector is not None:
            counted.append(f"code {selector}")
        if place is not None:
            counted.append(f"from {place}")
        return self._claims.spend(self._clock.monotonic(), "too many claim codes were tried", *counted)

    def sign_up(self, address: str) -> Refusal | None:
        """Before a new owner is made: None, and it counts; or rate_limited."""
        place = place_of(address)
        if place is None:
            return None
        return self._sign_ups.spend(self._clock.monotonic(), "too many sign up from this address", place)

    def operator(self, address: str) -> Refusal | None:
        """After a wrong token of the operators: None, and it counts; or rate_limited. Loopback counts as one address:
        the operators' port is on it."""
        place = place_of(address) or "loopback"
        return self._operators.spend(self._clock.monotonic(), "too many wrong tokens of the operators", place)
