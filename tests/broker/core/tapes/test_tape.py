"""A tape, its bytes and its name."""

import hashlib
import tracemalloc
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.tapes.synthetic import KINDS, make
from broker.core.tapes.tape import About, Tape, read_tape

ABOUT = About("EURUSD", 1_767_225_600_000, 1000, 10, 2, False)
SIZED = About("USDSEK", 1_767_225_600_000, 1000, 10, 5, True)
BYTES = (
    b'{"fee":2,"instrument":"EURUSD","sized":false,"start":1767225600000,"step":1000,"tick":10}\n'
    b"108419,108421\n108420,108421\n"
)


def tape(*rows: tuple[int, ...], about: About = ABOUT) -> Tape:
    columns = [array("q", column) for column in zip(*rows, strict=True)]
    return Tape(about, columns[0], columns[1], columns[2] if about.sized else array("q"))


@pytest.mark.requirement("tape.one-form")
def test_a_tape_has_one_form_and_the_hash_of_it_is_its_name() -> None:
    made = tape((108419, 108421), (108420, 108421))
    assert made.content() == BYTES
    assert made.ref() == hashlib.sha256(BYTES).hexdigest()
    assert len(made) == 2


@pytest.mark.requirement("tape.one-form")
@given(
    st.booleans(),
    st.lists(st.tuples(st.integers(1, 10**12), st.integers(0, 99), st.integers(0, 10**12)), min_size=1),
)
def test_what_is_written_is_read_back(sized: bool, rows: list[tuple[int, int, int]]) -> None:
    made = tape(*[(bid, bid + wide, size) for bid, wide, size in rows], about=SIZED if sized else ABOUT)
    again = read_tape(made.content())
    assert (again.about, again.bids, again.asks, again.sizes) == (
        made.about,
        made.bids,
        made.asks,
        made.sizes,
    )
    assert again.ref() == made.ref()


@pytest.mark.requirement("tape.one-form")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        BYTES[:-1],
        BYTES.replace(b"108419", b"0108419"),
        BYTES.replace(b"108419,", b" 108419,"),
        BYTES.replace(b'"fee":2,', b'"fee": 2,'),
        BYTES + b"1,2,3\n",
        BYTES + b"1\n",
        BYTES + b"a,b\n",
        BYTES + b"1,99999999999999999999\n",
        BYTES.replace(b"EURUSD", b"EURUSD\xff"),
    ],
)
def test_what_is_written_otherwise_is_no_tape(content: bytes) -> None:
    with pytest.raises((ValueError, OverflowError)):
        read_tape(content)


@pytest.mark.requirement("tape.one-form")
def test_a_tape_is_read_in_some_times_the_room_that_it_takes() -> None:
    content = make(KINDS["trend"], 1, 5_000).content()
    tracemalloc.start()
    try:
        read_tape(content)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 18 * len(content)
