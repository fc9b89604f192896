"""Windows, guessing and who is counted: state and now in, a wait out (wire.md, Limits).

1. Nothing here reads a clock. `now` is monotonic seconds; a wait is whole milliseconds, and waiting it is enough.
2. What is refused spends nothing and prolongs nothing.
3. Memory is bounded: where too many addresses are counted, the one longest not seen is forgotten.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, Literal

ADDRESSES: Final = 10_000
"""Addresses that a keyed limiter remembers; an attacker with more of them is not stopped by counting addresses."""


def _us(seconds: float) -> int:
    """Whole microseconds: distances of floats are not exact, those of integers are."""
    return round(seconds * 1e6)


class Window:
    """At most `limit` spends in any `window_ms`: each comes back exactly that long after it was spent.

    `wait(now)` asks, `spend(now)` counts. What is not counted (END, resubmitted rows) is not spent.
    """

    __slots__ = ("_spent", "_window_us", "limit")

    def __init__(self, limit: int = 30, window_ms: int = 10_000) -> None:
        self.limit = limit
        self._window_us = window_ms * 1000
        self._spent: deque[int] = deque(maxlen=limit)

    def wait(self, now: float) -> int:
        """Milliseconds until the next may be spent, rounded up; 0: at once."""
        if len(self._spent) < self.limit:
            return 0
        left = self._spent[0] + self._window_us - _us(now)
        # Two roundings may cost a microsecond, and a caller that waited as told must not be refused for it.
        return 0 if left <= 1 else min(-(-left // 1000), self._window_us // 1000)

    def spend(self, now: float) -> None:
        """Count one. The caller has asked `wait`, or must count what it accepted all the same."""
        self._spent.append(_us(now))

    def restore(self, accepted_at: Iterable[int], wall_ms: int, now: float) -> None:
        """Count entries from before the start, oldest first, by their distance on the wall clock.

        Where that clock lies behind an entry its distance is 0: the wait is one window after the start, no more.
        """
        start = _us(now)
        self._spent.extend(start - max(0, wall_ms - at) * 1000 for at in accepted_at)

    def idle(self, now: float) -> bool:
        """Whether nothing is left to remember: every spend has come back."""
        return not self._spent or self._spent[-1] + self._window_us <= _us(now)


class Keyed:
    """A Window for each key (opens by address, rings by address …), at most `keys` of them."""

    __slots__ = ("_keys", "_limit", "_window_ms", "_windows")

    def __init__(self, limit: int, window_ms: int, keys: int = ADDRESSES) -> None:
        self._limit = limit
        self._window_ms = window_ms
        self._keys = keys
        self._windows: OrderedDict[str, Window] = OrderedDict()

    def wait(self, key: str, now: float) -> int:
        """Milliseconds until `key` may spend again; 0: at once."""
        window = self._windows.get(key)
        return 0 if window is None else window.wait(now)

    def spend(self, key: str, now: float) -> None:
        """Count one for `key`."""
        window = self._windows.get(key)
        if window is None:
            self._forget(now)
            window = self._windows[key] = Window(self._limit, self._window_ms)
        self._windows.move_to_end(key)
        window.spend(now)

    def __len__(self) -> int:
        return len(self._windows)

    def _forget(self, now: float) -> None:
        """Drop what has come back, and the oldest where there is no place. Ordered by the last spend."""
        while self._windows:
            oldest = next(iter(self._windows.values()))
            if len(self._windows) < self._keys and not oldest.idle(now):
                return
            self._windows.popitem(last=False)


Guess = Literal["bad_signature", "unknown_conv"]


class Guard:
    """Stops an address that guesses: `limit` of one kind in `window_ms` block it for `window_ms`.

    Before a signature check or the answer to a read of an unknown id: `blocked(key, now)`. After one that failed:
    `note(key, kind, now)`. Asking while blocked changes nothing; after the block all is forgotten.
    """

    __slots__ = ("_addresses", "_keys", "_limit", "_window_us")

    def __init__(self, limit: int = 20, window_ms: int = 10_000, keys: int = ADDRESSES) -> None:
        self._limit = limit
        self._window_us = window_ms * 1000
        self._keys = keys
        self._addresses: OrderedDict[str, _Guesses] = OrderedDict()

    def blocked(self, key: str, now: float) -> int:
        """Milliseconds until `key` may try again; 0: it may."""
        guesses = self._addresses.get(key)
        if guesses is None or guesses.until is None:
            return 0
        left = guesses.until - _us(now)
        if left <= 1:
            del self._addresses[key]
            return 0
        return -(-left // 1000)

    def note(self, key: str, kind: Guess, now: float) -> None:
        """Count a failed guess; one that was under way while the block fell is not counted."""
        if self.blocked(key, now):
            return
        guesses = self._addresses.get(key)
        if guesses is None:
            while len(self._addresses) >= self._keys:
                self._addresses.popitem(last=False)
            guesses = self._addresses[key] = _Guesses(self._limit)
        self._addresses.move_to_end(key)
        at = _us(now)
        times = guesses.times[kind]
        times.append(at)
        if len(times) == self._limit and at - times[0] < self._window_us:
            guesses.until = at + self._window_us

    def __len__(self) -> int:
        return len(self._addresses)


class _Guesses:
    """One address: when it guessed, by kind, and until when it is blocked (µs)."""

    __slots__ = ("times", "until")

    def __init__(self, limit: int) -> None:
        self.times: dict[str, deque[int]] = {
            "bad_signature": deque(maxlen=limit),
            "unknown_conv": deque(maxlen=limit),
        }
        self.until: int | None = None


def counted_as(address: str) -> str:
    """What a client address is counted as: IPv4 as it is (also mapped into IPv6), IPv6 by its /64."""
    text = address.partition("%")[0]
    try:
        return str(IPv4Address(text))
    except AddressValueError:
        pass
    try:
        six = IPv6Address(text)
    except AddressValueError:
        return address
    if six.ipv4_mapped is not None:
        return str(six.ipv4_mapped)
    return f"{IPv6Address(int(six) >> 64 << 64)}/64"


def is_loopback(address: str) -> bool:
    """Whether an address is this machine's own, which is exempt from counting by address."""
    text = address.partition("%")[0]
    for family in (IPv4Address, IPv6Address):
        try:
            own = family(text)
        except AddressValueError:
            continue
        mapped = own.ipv4_mapped if isinstance(own, IPv6Address) else None
        return (mapped or own).is_loopback
    return False
