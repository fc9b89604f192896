"""What is a tape of the catalog, and how it is cut and put together."""

import hashlib
import json
from array import array
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from broker.config import Settings
from broker.core.tapes import catalog
from broker.core.tapes.catalog import PART, PARTS, TapeRow, fault, index_of, item_of, parts_of, whole
from broker.core.tapes.tape import MAX_PRICE, MAX_SIZE, MAX_TICKS, Tape
from tests.support.imports import foreign

pytestmark = pytest.mark.requirement("catalog.whole")


def test_parts_are_cut_where_lines_end_and_are_the_tape_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = foreign()
    monkeypatch.setattr(catalog, "PART", 200)
    parts = list(parts_of(tape))
    assert len(parts) > 5
    assert all(part.endswith(b"\n") and len(part) <= 200 for part in parts)
    found = whole(parts, tape.ref())
    assert isinstance(found, Tape)
    assert found.content() == tape.content()


def test_what_has_another_hash_or_is_none_is_no_tape() -> None:
    tape = foreign()
    (part,) = parts_of(tape)
    assert whole([part[:-4] + b"1\n"], tape.ref()) == "its bytes have another hash"
    for text in (b"", b"{}\n1,2\n", part.replace(b",", b";"), part.replace(b"\n", b"\r\n")):
        assert str(whole([text], hashlib.sha256(text).hexdigest())).startswith("it is no tape"), text


def test_parts_that_read_well_and_are_no_book_are_no_tape() -> None:
    tape = foreign()
    _crossed(tape)
    assert str(whole(list(parts_of(tape)), tape.ref())).startswith("tick 7: ")


def _about(**members: object) -> Callable[[Tape], None]:
    def change(tape: Tape) -> None:
        tape.about = replace(tape.about, **members)

    return change


def _crossed(tape: Tape) -> None:
    tape.bids[7] = tape.asks[7] + 1


def _short(tape: Tape) -> None:
    tape.bids, tape.asks, tape.sizes = (array("q", each[:1]) for each in (tape.bids, tape.asks, tape.sizes))


def _sizeless(tape: Tape) -> None:
    tape.sizes[3] = -1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_about(instrument="a b"), "an instrument"),
        (_about(instrument="A" * 33), "an instrument"),
        (_about(step=0), "its start or its step"),
        (_about(start=-1), "its start or its step"),
        (_about(tick=0), "its tick or its fee"),
        (_about(fee=MAX_PRICE + 1), "its tick or its fee"),
        (_crossed, "tick 7: "),
        (_short, "a tape has 2 to"),
        (_sizeless, "a size"),
    ],
)
def test_what_no_import_lets_pass_is_named(change: Callable[[Tape], None], words: str) -> None:
    tape = foreign()
    assert fault(tape) is None
    change(tape)
    assert str(fault(tape)).startswith(words)


@pytest.mark.requirement("catalog.entry")
def test_only_a_tape_that_is_here_is_found_and_shown() -> None:
    tape = foreign()
    coming = TapeRow(tape.ref(), "importing", 0, 1, 5, due=9)
    assert index_of(coming) == (("due", 9),)
    assert index_of(replace(coming, state="gone", due=None, index=101)) == ()
    here = replace(
        coming, state="here", due=None, index=101, about=tape.about, ticks=len(tape), title="t", licence="l"
    )
    assert index_of(here) == (("all", "1"), ("index", "101"))
    shown = item_of(here, {"free": True})
    assert (shown.index, shown.ticks, shown.instrument, shown.sized) == (101, len(tape), "USDSEK", True)


def test_a_part_fits_into_a_request_of_the_operators_port() -> None:
    tape = foreign(ticks=9_000)
    parts = list(parts_of(tape))
    assert len(parts) > 3
    longest = max(len(json.dumps({"rows": part.decode()})) for part in parts)
    assert longest + 1_000 < Settings().limits.frame_bytes
    largest = f"{MAX_PRICE},{MAX_PRICE},{MAX_SIZE}\n"
    assert MAX_TICKS * len(largest) / (PART - len(largest)) < PARTS
