"""The wire's rules for desks and their places, written a second time: what must be answered, and who holds what.

Keys are small numbers; the last one is everybody's recovery key. Times are wall milliseconds, but rings and
reservations end by `mono`, seconds of the test's clock. Written from the law, not from the broker.
"""

import msgspec

DAY_MS = 86_400_000
LAPSE_MS = 90 * DAY_MS
RING_S = 30.0
RESERVE_S = 5.0
RECOVERY = 5
"""The recovery key that desks may name."""
RESERVED = "WIRE"


class Limits(msgspec.Struct, frozen=True):
    """Small ones, so that a short program reaches them."""

    conversations: int = 3
    rings: int = 4
    rings_known: int = 2


class Desk(msgspec.Struct):
    """A desk and its screen: the mode, and one key that is turned away."""

    code: str
    used_at: int
    recovery: bool = False
    moving: tuple[int, int, int] | None = None
    """A recovery key's move that waits: when, the how many-th one, and to which key."""
    mode: str = "all"
    deny: int | None = None
    suspended: bool = False


class Talk(msgspec.Struct):
    """A call between two keys."""

    caller: int
    callee: int
    at: float
    answered: bool = False


class Model:
    """All desks and calls of one wire."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.desks: dict[int, Desk] = {}
        self.codes: dict[str, tuple[int, int | None]] = {}
        """Code → its key, and when it was closed."""
        self.talks: dict[str, Talk] = {}
        """Calls that have not ended."""
        self.open: dict[int, list[str]] = {key: [] for key in range(RECOVERY + 1)}
        """The calls that count, by key, oldest first."""
        self.held: dict[int, dict[str, float]] = {key: {} for key in self.open}
        self.held_rings: dict[int, dict[str, tuple[float, bool]]] = {key: {} for key in self.open}
        self.known_rings: dict[int, dict[str, bool]] = {key: {} for key in self.open}
        """Unanswered rings at each key, and whether the caller was known when it rang."""
        self.talked: set[frozenset[int]] = set()
        self._moves = 0
        self.events: dict[int, list[str]] = {key: [] for key in self.open}

    # ── who holds what ──

    def holder(self, code: str, now: int) -> int | None:
        """The key that a code resolves to."""
        key, closed = self.codes.get(code, (-1, 0))
        desk = self.live(key, now)
        return key if closed is None and desk is not None and desk.code == code else None

    def live(self, key: int, now: int) -> Desk | None:
        """The desk that a key holds and has not lost by not using it."""
        desk = self.desks.get(key)
        return desk if desk is not None and now - desk.used_at < LAPSE_MS else None

    def _reserved(self, code: str, now: int) -> bool:
        if code not in self.codes:
            return False
        key, closed = self.codes[code]
        if closed is None:
            desk = self.desks.get(key)
            closed = desk.used_at + LAPSE_MS if desk is not None and desk.code == code else now - LAPSE_MS
        return now < closed + LAPSE_MS

    def _lose(self, key: int, but: str) -> bool:
        """A desk that lapsed leaves its code closed; whether it was suspended."""
        old = self.desks.pop(key, None)
        if old is not None and old.code != but and self.codes[old.code] == (key, None):
            self.codes[old.code] = (key, old.used_at + LAPSE_MS)
        return old is not None and old.suspended

    # ── statements ──

    def open_desk(self, key: int, code: str, recovery: bool, now: int) -> str:
        mine = self.live(key, now)
        if mine is not None and mine.code == code:
            return "row"
        if code == RESERVED:
            return "code_reserved"
        if self.holder(code, now) is not None:
            return "code_taken"
        if self._reserved(code, now):
            return "code_reserved"
        if mine is not None:
            return "desk_exists"
        suspended = self._lose(key, code)
        self.desks[key] = Desk(code, now, recovery, suspended=suspended)
        self.codes[code] = (key, None)
        return "accepted"

    def move_desk(self, by: int, code: str, to: int, now: int) -> str:
        key = self.holder(code, now)
        if key is None:
            return "unknown_desk"
        desk = self.desks[key]
        if by != key and not (by == RECOVERY and desk.recovery):
            return "not_a_party"
        if to == key:
            return "bad_statement"
        if self.live(to, now) is not None:
            return "desk_exists"
        if by == key:
            self.hand_over(key, to, now)
            return "accepted"
        if desk.moving is not None:
            return "conflict"
        self._moves += 1
        desk.moving = (now + DAY_MS, self._moves, to)
        self.events[key].append("moving")
        return "accepted"

    def hand_over(self, key: int, to: int, now: int) -> None:
        desk = self.desks.pop(key)
        suspended = self._lose(to, desk.code)
        self.desks[to] = desk
        desk.moving, desk.used_at, desk.suspended = None, now, desk.suspended or suspended
        self.codes[desk.code] = (to, None)
        self.events[key].append("desk_moved")

    def own(self, key: int, code: str, now: int) -> Desk | str:
        """The desk for a statement of its own key alone, or how that is refused."""
        holder = self.holder(code, now)
        if holder is None:
            return "unknown_desk"
        return self.desks[key] if holder == key else "not_a_party"

    def close_desk(self, key: int, code: str, now: int) -> str:
        desk = self.own(key, code, now)
        if isinstance(desk, str):
            return desk
        if desk.suspended:
            return "suspended"
        del self.desks[key]
        self.codes[code] = (key, now)
        self.events[key].append("desk_closed")
        return "accepted"

    def cancel_move(self, key: int, code: str, now: int) -> str:
        desk = self.own(key, code, now)
        if isinstance(desk, str):
            return desk
        if desk.moving is None:
            return "not_found"
        self._stay(key)
        return "accepted"

    def moves(self, now: int) -> None:
        """What recovery keys asked for and is due, in the order of its times."""
        waiting = [(desk.moving, key) for key, desk in self.desks.items() if desk.moving is not None]
        for (at, _, to), key in sorted(waiting):
            desk = self.desks.get(key)
            if at > now or desk is None or desk.moving is None:
                continue
            if self.live(to, now) is None and self.live(key, now) is not None:
                self.hand_over(key, to, now)
            else:
                self._stay(key)

    def _stay(self, key: int) -> None:
        """A move that was waiting is off, and that is told."""
        self.desks[key].moving = None
        self.events[key].append("moving")

    # ── calls ──

    def dial(self, caller: int, callee: int, now: int, mono: float) -> str | list[str]:
        """How a CALL between two keys is refused, or the calls that end for it."""
        one, other = self.live(caller, now), self.live(callee, now)
        if one is None or other is None:
            return "unknown_desk"
        if one.suspended or other.suspended:
            return "suspended"
        if self._busy(caller, callee, other, mono):
            return "desk_busy"
        return self.place(caller, "", mono)

    def place(self, key: int, conv: str, mono: float) -> str | list[str]:
        """The calls that must end for one more."""
        held = {each for each, until in self.held[key].items() if until > mono}
        excess = len(self.open[key]) + len(held | {conv}) - self.limits.conversations
        if excess > len(self.open[key]):
            return "overloaded"
        return self.open[key][: max(0, excess)]

    def _busy(self, caller: int, callee: int, desk: Desk, mono: float) -> bool:
        known = frozenset((caller, callee)) in self.talked
        screened = desk.deny == caller or desk.mode == "nobody" or (desk.mode == "known" and not known)
        held = [known for until, known in self.held_rings[callee].values() if until > mono]
        rings = [*self.known_rings[callee].values(), *held]
        strangers = rings.count(False)
        full = not known and strangers >= self.limits.rings - self.limits.rings_known
        return screened or len(rings) >= self.limits.rings or full

    def called(self, conv: str, caller: int, callee: int, now: int, mono: float) -> None:
        """A CALL was committed."""
        self.talks[conv] = Talk(caller, callee, mono)
        self.open[caller].append(conv)
        self.known_rings[callee][conv] = frozenset((caller, callee)) in self.talked
        self._given(conv)
        self._used(caller, now)

    def answered(self, conv: str, now: int) -> None:
        """A PICKUP was committed."""
        talk = self.talks[conv]
        talk.answered = True
        self.open[talk.callee].append(conv)
        del self.known_rings[talk.callee][conv]
        self._given(conv)
        self.talked.add(frozenset((talk.caller, talk.callee)))
        self._used(talk.callee, now)

    def finished(self, conv: str) -> None:
        """An END was committed."""
        talk = self.talks.pop(conv)
        for key in (talk.caller, talk.callee):
            if conv in self.open[key]:
                self.open[key].remove(conv)
        self.known_rings[talk.callee].pop(conv, None)
        self._given(conv)

    def unanswered(self, mono: float) -> list[str]:
        """Calls that have rung long enough."""
        return [conv for conv, talk in self.talks.items() if not talk.answered and talk.at + RING_S <= mono]

    def restarted(self) -> None:
        """What was held in memory is gone, and who is known is looked up again."""
        for key in self.open:
            self.held[key].clear()
            self.held_rings[key].clear()
            for conv in self.known_rings[key]:
                self.known_rings[key][conv] = frozenset((self.talks[conv].caller, key)) in self.talked

    def _given(self, conv: str) -> None:
        for key in self.open:
            self.held[key].pop(conv, None)
            self.held_rings[key].pop(conv, None)

    def _used(self, key: int, now: int) -> None:
        desk = self.live(key, now)
        if desk is not None and now - desk.used_at >= DAY_MS:
            desk.used_at = now
