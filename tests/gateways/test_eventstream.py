"""text/event-stream: nothing gets out of its field, and any cut of the bytes reads the same."""

from itertools import pairwise

import httpx_sse
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateways import eventstream
from gateways.eventstream import Decoder, Event, Oversize, encode

SHARP = [
    "\r",
    "\n",
    "\r\n",
    "\0",
    "\n\nevent: x",
    "\u0085",
    "\u2028",
    "\u2029",
    "\ndata: y",
    "\x0b\x0c\x1c",
    "é",
]
TEXT = st.lists(st.sampled_from(SHARP) | st.text(max_size=5), max_size=6).map("".join)


def decode(*chunks: bytes) -> list[Event]:
    decoder = Decoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)]


def test_an_event_has_its_fields_in_lines_and_ends_with_an_empty_one() -> None:
    written = encode(b'{"a":1}', event="env", id="f00d.1.2", retry_ms=1500)
    assert written == b'event: env\nid: f00d.1.2\nretry: 1500\ndata: {"a":1}\n\n'


@pytest.mark.parametrize("bad", ["a\r", "a\nevent: x", "a\0"])
def test_event_and_id_can_not_hold_line_ends_or_nul(bad: str) -> None:
    with pytest.raises(ValueError, match="line end"):
        encode(b"{}", event=bad)
    with pytest.raises(ValueError, match="line end"):
        encode(b"{}", id=bad)


@pytest.mark.requirement("streams.sse-no-injection")
@given(TEXT, TEXT)
def test_whatever_a_party_writes_is_one_event_for_every_reader(name: str, body: str) -> None:
    value = {"name": name, "body": body}
    written = encode(msgspec.json.encode(value), event="env", id="c.1.1")
    (event,) = decode(written)
    assert (event.event, event.id, msgspec.json.decode(event.data)) == ("env", "c.1.1", value)
    # A reader that also breaks lines at U+0085, U+2028 and U+2029, as Python's splitlines does.
    assert [line[:4] for line in written.decode().splitlines()] == ["even", "id: ", "data", ""]
    other = httpx_sse._decoders.SSEDecoder()
    read = [found for line in written.decode()[:-1].split("\n") if (found := other.decode(line)) is not None]
    assert [(each.event, each.id, each.json()) for each in read] == [("env", "c.1.1", value)]


@given(TEXT)
def test_text_with_line_ends_is_split_and_joined_again(text: str) -> None:
    (event,) = decode(encode(text.encode()))
    for mark, escape in (("\u0085", r"\u0085"), ("\u2028", r"\u2028"), ("\u2029", r"\u2029")):
        text = text.replace(mark, escape)
    assert event.data == text.replace("\r\n", "\n").replace("\r", "\n")


@given(TEXT)
def test_a_comment_is_no_event_whatever_it_holds(text: str) -> None:
    assert decode(eventstream.comment(text)) == []
    assert decode(eventstream.comment(text) + encode(b"1")) == [Event("message", "1", "")]


STREAM = (
    b"\xef\xbb\xbf: hello\r\n\r\nevent: ring\rid: 1\rdata: a\rdata:b\r\rretry: 250\n"
    b"data\n\nid\ndata:  c\r\n\r\nid: x\0y\nretry: 1x\nunknown: z\ndata: d\n\nevent: lost\ndata: never"
)
EXPECTED = [
    Event("ring", "a\nb", "1"),
    Event("message", "", "1"),
    Event("message", " c", ""),
    Event("message", "d", ""),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_any_cut_of_the_bytes_reads_the_same(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert decode(*(STREAM[a:b] for a, b in pairwise(edges))) == EXPECTED


def test_byte_by_byte_reads_the_same_and_retry_is_kept() -> None:
    decoder = Decoder()
    found = [event for byte in STREAM for event in decoder.feed(bytes([byte]))]
    assert found == EXPECTED
    assert decoder.retry_ms == 250


def test_an_id_without_data_moves_the_position_and_fires_nothing() -> None:
    decoder = Decoder()
    assert decoder.feed(b"id: 5\n\n") == []
    assert decoder.last_id == "5"
    assert decoder.feed(b"data: a\n\n") == [Event("message", "a", "5")]


@pytest.mark.parametrize("data", [b"data: " + b"x" * 200, b"data: xxxxxxxx\n" * 30])
def test_an_event_beyond_the_bound_raises(data: bytes) -> None:
    with pytest.raises(Oversize):
        Decoder(max_bytes=100).feed(data)


def test_many_small_events_and_comments_are_within_the_bound() -> None:
    decoder = Decoder(max_bytes=100)
    assert len(decoder.feed((eventstream.comment("x" * 50) + encode(b"1" * 50)) * 50)) == 50


def test_bytes_that_are_not_utf8_raise() -> None:
    with pytest.raises(UnicodeDecodeError):
        Decoder().feed(b"data: \xff\n\n")
