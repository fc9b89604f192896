"""The life of a call: the whole product of phases and types, and whose turn it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.wire.call import (
    KINDS,
    NEXT,
    Phase,
    advance,
    in_turn,
    kind_of,
    next_phase,
    phase_at,
    speaker,
    type_fault,
)
from broker.wire.refusals import Refusal

TYPES = {"CALL": "CALL", "PICKUP": "PICKUP", "END": "END", "OTHER": "QUOTE"}


@pytest.mark.requirement("call.table")
@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("kind", KINDS)
def test_each_type_in_each_phase_leads_on_or_is_refused(phase: Phase, kind: str) -> None:
    found = advance(phase, TYPES[kind])
    after = NEXT.get((phase, kind_of(TYPES[kind])))
    if after is not None:
        assert found == next_phase(phase, TYPES[kind]) == after
        return
    assert isinstance(found, Refusal)
    with pytest.raises(LookupError):
        next_phase(phase, TYPES[kind])
    if phase is Phase.ENDED:
        assert (found.code, found.detail) == ("conv_ended", {})
    else:
        assert (found.code, found.detail) == ("bad_envelope", {"path": "type"})


@pytest.mark.requirement("call.types-in-place")
@pytest.mark.parametrize(
    ("n", "good"),
    [
        (0, {"CALL"}),
        (1, {"PICKUP", "END"}),
        (2, {"RFQ", "END", "CALLS"}),
        (3, {"QUOTE", "END"}),
        (99, {"HIT", "END"}),
    ],
)
def test_call_is_at_0_pickup_at_1_and_only_there(n: int, good: set[str]) -> None:
    for type in ("CALL", "PICKUP", "END", *good):
        fault = type_fault(n, type)
        assert (fault is None) == (type in good)
        if fault is not None:
            assert (fault.code, fault.detail) == ("bad_envelope", {"path": "type"})


def test_the_phase_of_an_open_call_follows_from_the_next_n() -> None:
    assert [phase_at(n) for n in (0, 1, 2, 3)] == [Phase.NEW, Phase.RINGING, Phase.OPEN, Phase.OPEN]
    phase = Phase.NEW
    for n, type in enumerate(["CALL", "PICKUP", "RFQ", "QUOTE"]):
        assert phase is phase_at(n)
        phase = next_phase(phase, type)


@pytest.mark.requirement("call.alternation")
@given(st.integers(0, 10_000), st.sampled_from(["CALL", "PICKUP", "RFQ", "END"]), st.sampled_from("AB"))
def test_even_n_are_the_callers_odd_n_the_others_and_end_is_anybodys(n: int, type: str, sender: str) -> None:
    assert speaker(n, "A", "B") == ("A" if n % 2 == 0 else "B")
    assert in_turn(n, type, sender, "A", "B") == (type == "END" or (sender == "A") == (n % 2 == 0))
