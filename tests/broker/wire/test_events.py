"""Cursors and the seam between a row and what its reader gets beside it."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.wire.events import Cursor, read_cursor, resume_at, splice, stream_tag


@given(
    st.from_regex(r"[0-9a-f]{8}", fullmatch=True),
    st.from_regex(r"[0-9a-f]{16}", fullmatch=True),
    st.integers(0, 10**17),
)
def test_a_cursor_reads_back_from_its_text(tag: str, epoch: str, position: int) -> None:
    cursor = Cursor(tag, epoch, position)
    assert read_cursor(cursor.text()) == cursor


@pytest.mark.parametrize(
    "text", ["", "0", "a.b", "a.b.c", "a.b.-1", "a.b.1.2", "a.b.", "a.b.٣", "a.b.1 ", "a.b." + "9" * 19]
)
def test_a_text_that_no_broker_gave_is_no_cursor(text: str) -> None:
    assert read_cursor(text) is None


@given(st.text(max_size=90))
def test_any_text_is_a_cursor_or_none(text: str) -> None:
    cursor = read_cursor(text)
    assert cursor is None or cursor.position >= 0


def test_a_streams_tag_tells_streams_apart_and_does_not_name_them() -> None:
    tags = {stream_tag(f"pk:{each:064x}") for each in range(50)}
    assert len(tags) == 50
    assert all(len(tag) == 8 and set(tag) <= set("0123456789abcdef") for tag in tags)


def test_a_row_is_spliced_with_its_cursor_and_whose_it_is() -> None:
    for own in (True, False):
        text = splice(b'{"conv":"x","n":3}', "a.b.7", own)
        assert json.loads(text) == {"cursor": "a.b.7", "own": own, "conv": "x", "n": 3}
        text = splice(b'{"conv":"x","n":3}', "a.b.7", own, 17)
        assert json.loads(text) == {"cursor": "a.b.7", "own": own, "accepted_at": 17, "conv": "x", "n": 3}
        assert json.loads(splice(b"{}", "a.b.7", own)) == {"cursor": "a.b.7", "own": own}


STREAM = "pk:" + "ab" * 32
EPOCH = "0123456789abcdef"


def after(position: int, *, stream: str = STREAM, epoch: str = EPOCH) -> str:
    return Cursor(stream_tag(stream), epoch, position).text()


@pytest.mark.parametrize(
    ("cursor", "position", "reason"),
    [
        (None, 9, None),
        ("0", 3, None),
        (after(9), 9, None),
        (after(5), 5, None),
        (after(3), 3, None),
        (after(2), 3, "trimmed"),
        (after(0), 3, "trimmed"),
        (after(10), 9, "future"),
        (after(5, epoch="f" * 16), 9, "epoch_changed"),
        (after(5, stream="pk:other"), 9, "unknown"),
        ("nonsense", 9, "unknown"),
        ("", 9, "unknown"),
    ],
)
def test_reading_goes_on_after_what_the_reader_has_and_it_is_told_when_it_cannot(
    cursor: str | None, position: int, reason: str | None
) -> None:
    told, found = resume_at(STREAM, cursor, EPOCH, oldest=4, newest=9)
    assert found == position
    assert (told.recovered, told.reason) == (reason is None, reason)
    assert (told.from_, told.head) == (after(position), after(9))
    assert set(msgspec.json.decode(msgspec.json.encode(told))) == {"recovered", "from", "head"} | (
        {"reason"} if reason else set()
    )
