"""What becomes a row of the audit, and how many rows refused sign-ins can be."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core import audit as core
from broker.core.audit import LARGEST, OTHERS, OWN_A_MINUTE, OWN_AN_HOUR, AuditEvent, RefusedSums, Sum
from broker.wire.canonical import encode

EVENT = AuditEvent(at=1, actor="operator", kind="purge_expired_unclaimed")


def test_what_says_nothing_is_left_out() -> None:
    assert msgspec.json.encode(EVENT) == b'{"at":1,"actor":"operator","kind":"purge_expired_unclaimed"}'
    assert core.members_of(3, "au_1", EVENT) == {"n": 3, "id": "au_1", **msgspec.to_builtins(EVENT)}


@pytest.mark.requirement("audit.never-stops")
@pytest.mark.parametrize(
    "detail", [{"n": 2**60}, {"x": "\ud800"}, {"x": "y" * LARGEST}, {"x": [[[None]]] * LARGEST}]
)
def test_what_has_no_canonical_form_or_is_too_large_is_a_row_all_the_same(detail: dict[str, object]) -> None:
    event = msgspec.structs.replace(EVENT, subject="\ud800", detail=detail)
    members = core.members_of(1, "au_1", event)
    assert list(members["detail"]) == ["left_out"]
    assert len(encode(members)) <= LARGEST


@given(
    st.dictionaries(
        st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5) | st.floats(), max_size=3
    )
)
def test_any_event_becomes_a_row(detail: dict[str, object]) -> None:
    encode(core.members_of(1, "au_1", msgspec.structs.replace(EVENT, detail=detail)))


def test_a_row_is_found_by_who_did_what_to_whom() -> None:
    members = {"actor": "operator", "kind": "suspend_agent", "subject": "ag_1"}
    index = dict(core.index_of(members))
    assert index == {
        "all": "1",
        "actor": "operator",
        "kind": "suspend_agent",
        "kind actor": "suspend_agent operator",
        "subject": "ag_1",
    }
    assert "subject" not in dict(core.index_of({**members, "subject": None}))


@pytest.mark.requirement("audit.refused")
def test_refused_sign_ins_are_a_row_an_address_and_minute() -> None:
    events = RefusedSums().events(
        [Sum(7, "203.0.113.1", "password", 3), Sum(8, "203.0.113.1", "password", 1)], 99
    )
    assert [(each.subject, each.at, each.detail) for each in events] == [
        ("203.0.113.1", 99, {"minute": 7, "kind": "password", "count": 3}),
        ("203.0.113.1", 99, {"minute": 8, "kind": "password", "count": 1}),
    ]


@pytest.mark.requirement("audit.refused")
def test_a_flood_from_many_addresses_is_few_rows_and_no_count_is_lost() -> None:
    refusals, rows, told = RefusedSums(), 0, 0
    for minute in range(1440):
        sums = [Sum(minute, f"10.0.{n}.0", "password", 1 + n) for n in range(40)]
        sums.append(Sum(minute, OTHERS, "token", 5))
        events = refusals.events(sums, 0)
        assert len(events) <= OWN_A_MINUTE + 1
        rows += len(events)
        told += sum(
            each.detail.get("count", 0) + sum(each.detail.get("counts", {}).values()) for each in events
        )
    assert rows == 24 * OWN_AN_HOUR + 1440
    assert told == 1440 * (sum(range(1, 41)) + 5)


@pytest.mark.requirement("audit.refused")
def test_the_largest_sums_have_rows_of_their_own() -> None:
    sums = [Sum(1, f"10.0.{n}.0", "password", 1) for n in range(40)] + [Sum(1, "203.0.113.1", "password", 9)]
    events = RefusedSums().events(sums, 0)
    assert events[0].subject == "203.0.113.1"
    assert (events[-1].subject, events[-1].detail["counts"]) == (OTHERS, {"password": 21})
