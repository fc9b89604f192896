"""Limits by client address: guessing, desks opened (wire.md, Limits and Keys, desks, codes), and agents that register
themselves (network.md, Sign-in).

1. Who has authenticated or comes from loopback is exempt; the caller of the guard says so.
2. An address is an IPv4 address or an IPv6 /64: whoever has one address of a /64 has them all.
3. Memory is bounded: what is over is dropped, and beyond the cap the address that was quiet longest.
"""

import ipaddress
from collections import OrderedDict, deque
from functools import lru_cache
from typing import Final

import msgspec

from broker.actors.latest import Latest
from broker.clock import Clock
from broker.config import Limits
from broker.wire.limits import wait_ms
from broker.wire.refusals import Refusal, refuse

CAP: Final = 16_384
"""Addresses remembered by each limit (about 10 MB at worst)."""
HOUR_S: Final = 3600.0


@lru_cache(maxsize=4096)
def place_of(address: str) -> str | None:
    """What counts as one client: an IPv4 address, an IPv6 /64, a text that is no address. None: loopback."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is None:
            return None if ip.is_loopback else str(ipaddress.IPv6Network((int(ip) >> 64 << 64, 64)))
        ip = ip.ipv4_mapped
    return None if ip.is_loopback else str(ip)


class GuardStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """A moment: addresses remembered, and how often one was stopped."""

    guessing: int
    opening: int
    stopped: int


class Times:
    """Monotonic seconds of the last events of each address: at most `most`, none older than `window_s`."""

    def __init__(self, most: int, window_s: float, cap: int) -> None:
        self._most = most
        self._window_s = window_s
        self._places: Latest[str, deque[float]] = Latest(cap)

    def __len__(self) -> int:
        return len(self._places)

    def add(self, place: str, now: float) -> bool:
        """Count one; whether the window is full with it."""
        self._drop_over(now)
        times = self._places[place] = self._places.get(place) or deque(maxlen=self._most)
        times.append(now)
        return len(times) == self._most and now - times[0] < self._window_s

    def spend(self, now: float, why: str, *places: str) -> Refusal | None:
        """Count one at each of these places; or, where one of them is full, rate_limited, and none is counted."""
        left_ms = max(self.wait_ms(place, now) for place in places)
        if left_ms > 0:
            return refuse("rate_limited", f"{why}; wait retry_after_ms", retry_after_ms=left_ms)
        for place in places:
            self.add(place, now)
        return None

    def take_back(self, place: str) -> None:
        """Forget the last one counted."""
        times = self._places.get(place)
        if times:
            times.pop()
            if not times:
                del self._places[place]

    def clear(self, place: str) -> None:
        """Forget all of an address."""
        self._places.pop(place, None)

    def wait_ms(self, place: str, now: float) -> int:
        """Milliseconds until another one fits in the window; 0: at once."""
        return wait_ms(self._places.get(place, ()), now, self._most, self._window_s)

    def _drop_over(self, now: float) -> None:
        """Drop addresses that have been quiet for a window; each is dropped once, so this is cheap."""
        while self._places:
            place, times = next(iter(self._places.items()))
            if now - times[-1] < self._window_s:
                return
            del self._places[place]


class Guard:
    """The limits by address of one broker. Nothing in it waits."""

    def __init__(self, limits: Limits, clock: Clock, *, cap: int = CAP) -> None:
        window_s = limits.guess_window_ms / 1000
        self._clock = clock
        self._stop_s = window_s
        self._cap = cap
        self._signatures = Times(limits.guesses, window_s, cap)
        self._convs = Times(limits.guesses, window_s, cap)
        self._opens = Times(limits.opens_per_hour, HOUR_S, cap)
        self._registrations = Times(limits.registrations_per_hour, HOUR_S, cap)
        self._stopped: OrderedDict[str, float] = OrderedDict()  # place → since when; rising
        self._stops = 0

    @property
    def alert(self) -> bool:
        """Whether any address is stopped, so that `check` can refuse at all."""
        return bool(self._stopped)

    def check(self, address: str, exempt: bool) -> Refusal | None:
        """Before a signature is checked or an unknown id answered: rate_limited while the address is stopped.

        `exempt`: it has authenticated, carries a valid token, or is loopback.
        """
        if exempt or not self._stopped:
            return None
        place = place_of(address)
        since = self._stopped.get(place) if place is not None else None
        if since is None:
            return None
        left_ms = wait_ms((since,), self._clock.monotonic(), 1, self._stop_s)
        if left_ms == 0:
            return None
        return refuse(
            "rate_limited",
            "too many bad signatures or unknown ids from this address; wait retry_after_ms",
            retry_after_ms=left_ms,
        )

    def bad_signature(self, address: str) -> None:
        """A signature from this address did not verify. Call it for those who are not exempt."""
        self._count(self._signatures, address)

    def unknown_conv(self, address: str) -> None:
        """A conversation that does not exist was asked for from this address, by one who is not exempt."""
        self._count(self._convs, address)

    def open_desk(self, address: str, exempt: bool) -> Refusal | None:
        """Right before an opening is committed: rate_limited (spends nothing), or None (spends one).

        Give it back with `unopened` when the desk was certainly not opened after all.
        """
        return self._spend(self._opens, address, exempt, "desks opened")

    def unopened(self, address: str, exempt: bool) -> None:
        """The opening that `open_desk` let through was refused or certainly not written."""
        self._give_back(self._opens, address, exempt)

    def register_agent(self, address: str, exempt: bool) -> Refusal | None:
        """Right before an agent registers itself; give it back with `unregistered`, as for desks."""
        return self._spend(self._registrations, address, exempt, "agents registered")

    def unregistered(self, address: str, exempt: bool) -> None:
        """The registration that `register_agent` let through was refused or certainly not written."""
        self._give_back(self._registrations, address, exempt)

    def statistics(self) -> GuardStatistics:
        """A frozen moment."""
        return GuardStatistics(
            guessing=max(len(self._signatures), len(self._convs), len(self._stopped)),
            opening=len(self._opens),
            stopped=self._stops,
        )

    def _spend(self, times: Times, address: str, exempt: bool, what: str) -> Refusal | None:
        place = None if exempt else place_of(address)
        if place is None:
            return None
        return times.spend(self._clock.monotonic(), f"too many {what} from this address in an hour", place)

    @staticmethod
    def _give_back(times: Times, address: str, exempt: bool) -> None:
        place = None if exempt else place_of(address)
        if place is not None:
            times.take_back(place)

    def _count(self, times: Times, address: str) -> None:
        place = place_of(address)
        if place is None:
            return
        now = self._clock.monotonic()
        if not times.add(place, now):
            return
        self._signatures.clear(place)
        self._convs.clear(place)
        self._stopped[place] = now
        self._stopped.move_to_end(place)
        self._stops += 1
        while len(self._stopped) > self._cap or next(iter(self._stopped.values())) + self._stop_s <= now:
            self._stopped.popitem(last=False)
