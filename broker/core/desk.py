"""One desk: whose code it is, who may ring it, and the eight conversations of its key (wire.md, Keys, Limits).

1. The actor's key is the pk; a code is a claimed name that resolves to one pk.
2. Counts are folded from committed CALL, PICKUP and END; a reservation is a place held in memory for seconds.
3. A dialling desk that is refused evicts nobody: places are given before anything is written.
"""

from typing import Any, Literal

import msgspec

from broker.wire.ids import Pk
from broker.wire.refusals import Refusal, refuse

DAY_MS = 86_400_000


class Screen(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who may ring (screen_desk): keys always let in, keys turned away, and the mode for all others."""

    mode: Literal["all", "known", "nobody"] = "all"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class Moving(msgspec.Struct, frozen=True):
    """A recovery key's move that waits for its time (wall milliseconds)."""

    new_pk: str
    effective_at: int


class DeskRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A desk as stored (kind "desk", id = pk)."""

    code: str
    pk: str
    opened_at: int
    used_at: int
    recovery_pk: str | None = None
    moving: Moving | None = None
    screen: Screen = Screen()
    suspended: bool = False


class CodeRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A code as stored (kind "code", id = code): the key that it resolves to, or when it was closed."""

    pk: str
    closed_at: int | None = None


def lapsed(row: DeskRow, now_ms: int, lapse_days: int) -> bool:
    """Whether a desk was unused for so long that its code lapsed into the reserved time."""
    return now_ms - row.used_at >= lapse_days * DAY_MS


def reserved_until(code: CodeRow, row: DeskRow | None, lapse_days: int) -> int:
    """Until when a code that was closed or has lapsed stays reserved, wall milliseconds."""
    if code.closed_at is not None:
        return code.closed_at + lapse_days * DAY_MS
    return row.used_at + 2 * lapse_days * DAY_MS if row is not None else 0


class Ring(msgspec.Struct, frozen=True):
    """An unanswered ring: from whom, from which address (None: exempt), and whether they talked before."""

    sender: str
    address: str | None
    known: bool


class Capacity(msgspec.Struct, frozen=True):
    """The settings that a desk's places are judged by."""

    conversations: int
    rings: int
    rings_per_address: int
    rings_known: int
    reservation_s: float


class Places(msgspec.Struct):
    """The conversations and rings of one pk, in memory; oldest first.

    What is held belongs to one asker, by its token, who alone gives it back; it ends by itself after seconds.
    """

    pk: Pk
    open: dict[str, None] = msgspec.field(default_factory=dict)
    rings: dict[str, Ring] = msgspec.field(default_factory=dict)
    held: dict[int, tuple[str, float]] = msgspec.field(default_factory=dict)
    """Token → the conversation that a place is held for, and the monotonic second at which that is over."""
    held_rings: dict[int, tuple[str, float, Ring]] = msgspec.field(default_factory=dict)
    doubtful: dict[str, float] = msgspec.field(default_factory=dict)
    """Calls with a commit in doubt: conv → monotonic second until which it may still land."""

    def taken(self) -> set[str]:
        """The conversations that count: open ones, and those that a place is held for."""
        return {*self.open, *(conv for conv, _ in self.held.values())}


class Place(msgspec.Struct, frozen=True):
    """A conversation place is held; the wire first ends the conversations in `evict`."""

    evict: tuple[str, ...]


def reserve_place(places: Places, conv: str, token: int, mono: float, capacity: Capacity) -> Place | Refusal:
    """Hold a place for a conversation that the pk dials or picks up; names the oldest where it is one too many."""
    _forget_held(places, mono)
    if conv in places.open:
        return Place(())
    excess = len(places.taken() | {conv}) - capacity.conversations
    if excess > len(places.open):
        return refuse(
            "overloaded", "as many calls as this key may have are being dialled", retry_after_ms=1000
        )
    places.held[token] = (conv, mono + capacity.reservation_s)
    return Place(tuple(list(places.open)[: max(excess, 0)]))


def reserve_ring(
    places: Places, conv: str, token: int, ring: Ring, screen: Screen, mono: float, capacity: Capacity
) -> Refusal | None:
    """Hold a place for a ring at the desk called, or say desk_busy."""
    _forget_held(places, mono)
    if conv in places.rings:
        return None
    waiting = {**{held: ring for held, _, ring in places.held_rings.values()}, **places.rings}
    waiting.pop(conv, None)
    others = list(waiting.values())
    from_address = sum(1 for other in others if ring.address is not None and other.address == ring.address)
    strangers = sum(1 for other in others if not other.known)
    busy = (
        _screened(screen, ring)
        or len(others) >= capacity.rings
        or from_address >= capacity.rings_per_address
        or (not ring.known and strangers >= capacity.rings - capacity.rings_known)
    )
    if busy:
        return refuse("desk_busy", "the desk takes no more rings now; dial again later", retry_after_ms=5000)
    places.held_rings[token] = (conv, mono + capacity.reservation_s, ring)
    return None


def release(places: Places, token: int) -> None:
    """Give back what this asker held for a conversation that was not written."""
    places.held.pop(token, None)
    places.held_rings.pop(token, None)


def dialled(places: Places, conv: str) -> None:
    """A CALL by this pk, or its PICKUP, was committed."""
    _settled(places, conv)
    places.rings.pop(conv, None)
    places.open.setdefault(conv)


def rung(places: Places, conv: str, ring: Ring) -> None:
    """A CALL to this pk was committed; what was held for it knows more of the caller than `ring` does."""
    held = [kept for held, _, kept in places.held_rings.values() if held == conv]
    _settled(places, conv)
    places.rings.setdefault(conv, held[0] if held else ring)


def finished(places: Places, conv: str) -> None:
    """An END was committed."""
    _settled(places, conv)
    places.open.pop(conv, None)
    places.rings.pop(conv, None)


def _settled(places: Places, conv: str) -> None:
    """What was held for a conversation is not needed any more: it is written."""
    for token in [token for token, (held, _) in places.held.items() if held == conv]:
        del places.held[token]
    for token in [token for token, (held, _, _) in places.held_rings.items() if held == conv]:
        del places.held_rings[token]


def _screened(screen: Screen, ring: Ring) -> bool:
    if ring.sender in screen.allow:
        return False
    if ring.sender in screen.deny or screen.mode == "nobody":
        return True
    return screen.mode == "known" and not ring.known


def _forget_held(places: Places, mono: float) -> None:
    for token in [token for token, (_, until) in places.held.items() if until <= mono]:
        del places.held[token]
    for token in [token for token, (_, until, _) in places.held_rings.items() if until <= mono]:
        del places.held_rings[token]


def row_result(row: DeskRow) -> dict[str, Any]:
    """The answer of the desk tools: code, pk, opened_at."""
    return {"code": row.code, "pk": row.pk, "opened_at": row.opened_at}
