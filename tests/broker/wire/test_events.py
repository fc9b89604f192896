"""Cursors and the seam between a row and what its reader gets beside it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.wire.events import Cursor, Resume, read_cursor, splice, stream_tag


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


def test_a_resume_says_where_reading_goes_on() -> None:
    resume = Resume(recovered=False, from_="a.b.1", head="a.b.9", reason="trimmed")
    assert (resume.recovered, resume.from_, resume.head, resume.reason) == (
        False,
        "a.b.1",
        "a.b.9",
        "trimmed",
    )
