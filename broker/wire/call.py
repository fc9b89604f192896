"""The life of a call as a table: CALL, PICKUP, END, and whose turn it is (wire.md, Life of a call).

1. What the table does not hold is refused.
2. This file knows numbers, types and the two parties; it knows no clock, no desk and no signature.
"""

from typing import Final, Literal

from broker.wire.refusals import Refusal, refuse

Phase = Literal["new", "ringing", "open", "ended"]
Kind = Literal["CALL", "PICKUP", "END", "OTHER"]

PHASES: Final[tuple[Phase, ...]] = ("new", "ringing", "open", "ended")
KINDS: Final[tuple[Kind, ...]] = ("CALL", "PICKUP", "END", "OTHER")

NEXT: Final[dict[tuple[Phase, Kind], Phase]] = {
    ("new", "CALL"): "ringing",
    ("ringing", "PICKUP"): "open",
    ("ringing", "END"): "ended",
    ("open", "OTHER"): "open",
    ("open", "END"): "ended",
}
"""Before n = 0 a call is new; CALL makes it ring; n = 1 is PICKUP or END; after END there is nothing."""

_EXPECTED: Final[dict[Phase, str]] = {
    "new": "CALL is n = 0, and only there",
    "ringing": "n = 1 is PICKUP or END",
    "open": "CALL is n = 0 and PICKUP is n = 1, and only there",
    "ended": "the conversation has ended",
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
    return "new" if n == 0 else "ringing" if n == 1 else "open"


def advance(phase: Phase, type: str) -> Phase | Refusal:
    """The phase after an envelope of this type; bad_envelope (path type) out of its place, conv_ended after END."""
    after = NEXT.get((phase, kind_of(type)))
    if after is not None:
        return after
    if phase == "ended":
        return refuse("conv_ended", _EXPECTED["ended"])
    return refuse("bad_envelope", _EXPECTED[phase], path="type")


def speaker(n: int, caller: str, called: str) -> str:
    """The party whose turn n is: even from the caller, odd from the other."""
    return called if n % 2 else caller


def in_turn(n: int, type: str, sender: str, caller: str, called: str) -> bool:
    """Whether `sender`, a party, may write envelope n of this type. Either may hang up at any time."""
    return type == "END" or sender == speaker(n, caller, called)
