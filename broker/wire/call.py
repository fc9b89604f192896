"""The life of a call as a table: CALL, PICKUP, END, and whose turn it is (wire.md, Life of a call).

1. What the table does not hold is refused.
2. This file knows numbers, types and the two parties; it knows no clock, no desk and no signature.
"""

from enum import StrEnum
from typing import Final, Literal

from broker.wire.refusals import Refusal, refuse


class Phase(StrEnum):
    """Where a call stands. NEW: no envelope yet."""

    NEW = "new"
    RINGING = "ringing"
    OPEN = "open"
    ENDED = "ended"


Kind = Literal["CALL", "PICKUP", "END", "OTHER"]
KINDS: Final[tuple[Kind, ...]] = ("CALL", "PICKUP", "END", "OTHER")

NEXT: Final[dict[tuple[Phase, Kind], Phase]] = {
    (Phase.NEW, "CALL"): Phase.RINGING,
    (Phase.RINGING, "PICKUP"): Phase.OPEN,
    (Phase.RINGING, "END"): Phase.ENDED,
    (Phase.OPEN, "OTHER"): Phase.OPEN,
    (Phase.OPEN, "END"): Phase.ENDED,
}
"""n = 0 is CALL, n = 1 is PICKUP or END, after END there is nothing."""

_EXPECTED: Final[dict[Phase, str]] = {
    Phase.NEW: "n = 0 is CALL",
    Phase.RINGING: "n = 1 is PICKUP or END",
    Phase.OPEN: "CALL is n = 0 and PICKUP is n = 1, and only there",
    Phase.ENDED: "after END there is nothing",
}


def kind_of(type: str) -> Kind:
    """What the wire makes of a type: three have its meaning, the rest are the parties' own."""
    if type == "END":
        return "END"
    if type == "CALL":
        return "CALL"
    return "PICKUP" if type == "PICKUP" else "OTHER"


def phase_at(n: int) -> Phase:
    """The phase of a conversation that has not ended and whose next envelope is `n`."""
    return Phase.NEW if n == 0 else Phase.RINGING if n == 1 else Phase.OPEN


def next_phase(phase: Phase, type: str) -> Phase:
    """The phase after an envelope of this type. Raises LookupError where the table has none."""
    return NEXT[phase, kind_of(type)]


def advance(phase: str, type: str) -> Phase | Refusal:
    """The phase after an envelope of this type; bad_envelope (path type) out of its place, conv_ended after END."""
    here = phase if isinstance(phase, Phase) else Phase(phase)
    after = NEXT.get((here, kind_of(type)))
    if after is not None:
        return after
    if here is Phase.ENDED:
        return refuse("conv_ended", _EXPECTED[here])
    return refuse("bad_envelope", _EXPECTED[here], path="type")


def type_fault(n: int, type: str) -> Refusal | None:
    """What `advance` refuses at `n`, in a conversation that has not ended."""
    after = advance(phase_at(n), type)
    return after if isinstance(after, Refusal) else None


def speaker(n: int, caller: str, called: str) -> str:
    """The party whose turn n is: even from the caller, odd from the other."""
    return called if n % 2 else caller


def in_turn(n: int, type: str, sender: str, caller: str, called: str) -> bool:
    """Whether `sender`, a party, may write envelope n of this type. Either may hang up at any time."""
    return type == "END" or sender == speaker(n, caller, called)
