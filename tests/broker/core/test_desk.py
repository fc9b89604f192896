"""The desk's places: eight conversations, rings, screening, reservations that end by themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.desk import (
    DAY_MS,
    Capacity,
    CodeRow,
    DeskRow,
    Place,
    Places,
    Ring,
    Screen,
    dialled,
    finished,
    lapsed,
    release,
    reserve_place,
    reserve_ring,
    reserved_until,
    row_result,
    rung,
)
from broker.wire.ids import Pk
from broker.wire.refusals import Refusal

CAP = Capacity(conversations=8, rings=64, rings_per_address=16, rings_known=32, reservation_s=5.0)


def full() -> Places:
    places = Places(Pk("a" * 64))
    for i in range(8):
        dialled(places, f"conv{i}")
    return places


@pytest.mark.requirement("limits.eight")
def test_the_ninth_names_the_oldest() -> None:
    places = full()
    assert reserve_place(places, "ninth", 1, 0.0, CAP) == Place(("conv0",))
    assert reserve_place(places, "ninth", 2, 0.0, CAP) == Place(("conv0",)), "asked twice it holds one place"
    assert reserve_place(places, "tenth", 3, 0.0, CAP) == Place(("conv0", "conv1"))
    assert reserve_place(places, "conv3", 4, 0.0, CAP) == Place(()), "an open one holds none beside"


@pytest.mark.requirement("limits.reservation")
def test_a_reservation_ends_by_itself_or_is_given_back() -> None:
    places = full()
    reserve_place(places, "x", 1, 0.0, CAP)
    assert reserve_place(places, "y", 2, 5.0, CAP) == Place(("conv0",))
    release(places, 2)
    assert places.held == {}


@pytest.mark.requirement("limits.reservation")
def test_only_who_holds_a_place_gives_it_back() -> None:
    places = Places(Pk("a" * 64))
    reserve_place(places, "x", 1, 0.0, CAP)
    reserve_place(places, "x", 2, 0.0, CAP)
    release(places, 2)
    assert places.taken() == {"x"}
    release(places, 1)
    assert places.taken() == set()


def test_as_many_reservations_as_places_are_refused_not_evicted() -> None:
    places = Places(Pk("a" * 64))
    for i in range(8):
        assert reserve_place(places, f"c{i}", i, 0.0, CAP) == Place(())
    refused = reserve_place(places, "ninth", 9, 0.0, CAP)
    assert isinstance(refused, Refusal)
    assert refused.code == "overloaded"


@pytest.mark.requirement("limits.eight")
@given(st.lists(st.tuples(st.sampled_from(["dial", "end"]), st.integers(0, 20)), max_size=60))
def test_obeying_the_named_evictions_never_leaves_more_than_eight(steps: list[tuple[str, int]]) -> None:
    places = Places(Pk("a" * 64))
    for step, number in steps:
        conv = f"conv{number}"
        if step == "end":
            finished(places, conv)
            continue
        place = reserve_place(places, conv, 0, 0.0, CAP)
        assert isinstance(place, Place)
        for oldest in place.evict:
            assert oldest == next(iter(places.open))
            finished(places, oldest)
        dialled(places, conv)
        assert len(places.open) <= 8


@pytest.mark.requirement("limits.rings", "limits.rings-per-address")
def test_rings_are_counted_in_all_by_address_and_by_acquaintance() -> None:
    places = Places(Pk("a" * 64))

    def ring(i: int, address: str | None = None, known: bool = False) -> bool:
        made = Ring(f"{i:064x}", address, known)
        return reserve_ring(places, f"conv{i}", i, made, Screen(), 0.0, CAP) is None

    assert sum(ring(i, "203.0.113.1") for i in range(20)) == 16
    assert sum(ring(100 + i) for i in range(20)) == 16, "32 of the 64 are kept for those it knows"
    assert sum(ring(200 + i, known=True) for i in range(40)) == 32


@pytest.mark.requirement("desk.screen")
@pytest.mark.parametrize(
    ("screen", "known", "let_in"),
    [
        (Screen("all"), False, True),
        (Screen("all", deny=("f" * 64,)), True, False),
        (Screen("known"), False, False),
        (Screen("known"), True, True),
        (Screen("nobody"), True, False),
        (Screen("nobody", allow=("f" * 64,), deny=("f" * 64,)), False, True),
    ],
)
def test_the_screen_lets_in_or_turns_away(screen: Screen, known: bool, let_in: bool) -> None:
    refused = reserve_ring(Places(Pk("a" * 64)), "c", 1, Ring("f" * 64, None, known), screen, 0.0, CAP)
    assert (refused is None) is let_in
    assert refused is None or refused.code == "desk_busy"


def test_a_ring_becomes_a_conversation_when_it_is_picked_up_and_goes_with_its_end() -> None:
    places = Places(Pk("a" * 64))
    reserve_ring(places, "c", 1, Ring("f" * 64, "203.0.113.1", False), Screen(), 0.0, CAP)
    rung(places, "c", Ring("f" * 64, None, True))
    assert places.rings["c"].address == "203.0.113.1"
    dialled(places, "c")
    assert (list(places.open), places.rings) == (["c"], {})
    finished(places, "c")
    assert (places.open, places.rings, places.held_rings) == ({}, {}, {})


@pytest.mark.requirement("desk.lapse", "desk.cool-down")
def test_a_code_lapses_and_stays_reserved_by_days() -> None:
    row = DeskRow(code="ALFA", pk="a" * 64, opened_at=0, used_at=10)
    assert not lapsed(row, 90 * DAY_MS + 9, 90)
    assert lapsed(row, 90 * DAY_MS + 10, 90)
    assert reserved_until(CodeRow("a" * 64), row, 90) == 180 * DAY_MS + 10
    assert reserved_until(CodeRow("a" * 64, closed_at=5), None, 90) == 90 * DAY_MS + 5
    assert row_result(row) == {"code": "ALFA", "pk": "a" * 64, "opened_at": 0}
