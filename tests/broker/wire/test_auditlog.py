"""The audit log's form: each damage is found, and named by its first row."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.wire.auditlog import ALARM, NAME, RESTORED, SHOWN, Verdict, Verifier, read_head, read_row, seal
from broker.wire.keys import SigningKey
from tests.support.audits import AT, DAMAGES, WIRE, Kept, event, linked, made


def verified(kept: Kept, **told: bool) -> Verdict:
    verifier = Verifier({WIRE.pk}, kept.head, kept.beside, **told)
    for n in sorted(kept.rows):
        verifier.row(n, kept.rows[n])
    return verifier.end()


def test_a_log_that_nobody_touched_holds() -> None:
    verdict = verified(made())
    assert (verdict.ok, verdict.rows, verdict.faults, verdict.remarks) == (True, 6, [], [])
    assert verdict.head is not None
    assert verdict.head.count == 6
    assert verified(Kept({}, None, None)) == Verdict(ok=True, rows=0)


@pytest.mark.requirement("audit.chain", "audit.heads")
@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_is_found_and_named(name: str) -> None:
    kept = made()
    damage, first, words = DAMAGES[name]
    damage(kept)
    verdict = verified(kept)
    assert not verdict.ok
    assert verdict.first == first
    assert any(words in fault.message for fault in verdict.faults), verdict.faults
    assert verdict.count == len(verdict.faults) or verdict.count > SHOWN


@pytest.mark.requirement("audit.chain")
def test_one_changed_row_is_one_fault() -> None:
    kept = made()
    DAMAGES["the text of a row was changed"][0](kept)
    assert verified(kept).count == 1
    DAMAGES["the seal of a row was changed"][0](kept)
    assert verified(kept).count == 1


@pytest.mark.requirement("audit.heads")
def test_an_older_head_beside_a_newer_store_is_behind_and_no_fault() -> None:
    kept = made()
    assert kept.older is not None
    kept.beside = kept.older.head
    verdict = verified(kept)
    assert verdict.ok
    assert verdict.remarks == ["the head beside the store is behind by 3: the next change brings it up"]


def test_what_has_no_head_apart_is_held_against_its_own() -> None:
    kept = made()
    kept.beside = None
    assert verified(kept, apart=False).ok


@pytest.mark.requirement("audit.heads")
def test_a_broker_remembers_the_head_that_it_made() -> None:
    kept = made()
    known = read_head(kept.head or b"")
    assert kept.older is not None
    older = kept.older
    verifier = Verifier({WIRE.pk}, older.head, older.head, known=known)
    for n, text in older.rows.items():
        verifier.row(n, text)
    verdict = verifier.end()
    assert verdict.first == 4
    assert "the head that the broker remembers knows 6" in verdict.faults[0].message


@pytest.mark.requirement("audit.rotation")
def test_rows_and_heads_by_a_key_that_was_the_wires_before_stay_good() -> None:
    kept, newer = made(), SigningKey(b"n" * 32)
    linked(kept, 7, [event(7)], key=newer)
    kept.beside = kept.head
    verifier = Verifier({WIRE.pk, newer.pk}, kept.head, kept.beside)
    for n in sorted(kept.rows):
        verifier.row(n, kept.rows[n])
    verdict = verifier.end()
    assert verdict.ok
    assert verdict.head is not None
    assert verdict.head.wire == newer.pk
    assert verified(kept).first == 7  # who does not know the newer key


@pytest.mark.requirement("audit.rotation")
def test_a_key_that_another_one_has_followed_seals_no_more_rows() -> None:
    kept, newer = made(), SigningKey(b"n" * 32)
    linked(kept, 7, [event(7)], key=newer)
    linked(kept, 8, [event(8)], key=WIRE)
    kept.beside = kept.head
    verifier = Verifier({WIRE.pk, newer.pk}, kept.head, kept.beside)
    for n in sorted(kept.rows):
        verifier.row(n, kept.rows[n])
    verdict = verifier.end()
    assert (verdict.first, verdict.faults[0].message.partition(":")[0]) == (
        8,
        "row 8 has no seal of the wire's",
    )


@pytest.mark.requirement("audit.alarm", "audit.restored")
def test_an_alarm_is_a_fault_for_ever_and_a_restore_is_told() -> None:
    kept = made()
    told = [
        event(7, kind=ALARM, detail={"what": "an older store was put back"}),
        event(8, kind=RESTORED, detail={"former": {"count": 9}}),
    ]
    linked(kept, 7, told, key=WIRE)
    kept.beside = kept.head
    verdict = verified(kept)
    assert (verdict.first, verdict.count) == (7, 1)
    assert verdict.remarks == ["row 8: the store was made of a backup; 9 rows were known before"]


@pytest.mark.requirement("audit.restored")
def test_a_restored_store_that_nobody_served_yet_may_lack_rows() -> None:
    kept = made()
    DAMAGES["the tail was cut off, the head with it"][0](kept)
    assert verified(kept, restored=True).ok
    assert "not served since" in verified(kept, restored=True).remarks[0]
    DAMAGES["the text of a row was changed"][0](kept)
    assert verified(kept, restored=True).first == 3


def test_a_row_kept_twice_and_one_that_can_not_be_read_are_named() -> None:
    kept = made()
    verifier = Verifier({WIRE.pk}, kept.head, kept.beside)
    for n in (1, 2, 2, 3, 4, 5, 6):
        verifier.row(n, kept.rows[n] if n != 4 else None)
    messages = [fault.message for fault in verifier.end().faults]
    assert messages == ["row 2 is there twice", "row 4 can't be read"]


def test_faults_beyond_the_listed_are_counted() -> None:
    verifier = Verifier({WIRE.pk}, None)
    for n in range(1, 40):
        verifier.row(n, b"junk")
    verdict = verifier.end()
    assert len(verdict.faults) == SHOWN < verdict.count


@pytest.mark.requirement("audit.chain")
def test_what_is_signed_can_be_nothing_else() -> None:
    assert not NAME.startswith(b"{")
    text, head = seal(WIRE, "0" * 64, event(1), AT)
    assert read_row(text) == (event(1), head)
    assert head.is_signed({WIRE.pk})
    assert not head.is_signed(set())
    assert not msgspec.structs.replace(head, at=AT + 1).is_signed({WIRE.pk})


@given(
    st.binary(max_size=80)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda x: json.dumps(x).encode())
)
def test_any_bytes_are_a_row_or_none(text: bytes) -> None:
    assert read_row(text) is None
    assert read_head(text) is None
