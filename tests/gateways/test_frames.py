"""Bytes become messages: the quick reader and the codec agree, however the bytes are cut."""

import base64
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from gateways.frames import FRAGMENTS, Messages

MOST = 2_000


def opened() -> ServerProtocol:
    """A codec after its handshake, with nothing left to send."""
    protocol = ServerProtocol(max_size=MOST)
    key = base64.b64encode(b"k" * 16).decode()
    lines = ["GET / HTTP/1.1", "Host: here", "Upgrade: websocket", "Connection: Upgrade"]
    lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]
    protocol.receive_data("\r\n".join(lines).encode())
    (request,) = protocol.events_received()
    assert isinstance(request, Request)
    protocol.send_response(protocol.accept(request))
    protocol.data_to_send()
    return protocol


def frame(opcode: Opcode, data: bytes, *, fin: bool = True, mask: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=mask)


def by_codec(data: bytes) -> tuple[list[bytes | None], State, int | None]:
    """What the codec alone makes of it: messages until the first violation, how it stands, its close code."""
    protocol = opened()
    protocol.receive_data(data)
    messages: list[bytes | None] = []
    parts: list[bytes] = []
    binary = False
    for event in protocol.events_received():
        assert isinstance(event, Frame)
        if event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            if event.opcode is not Opcode.CONT:
                parts, binary = [], event.opcode is Opcode.BINARY
            parts.append(bytes(event.data))
            if event.fin:
                messages.append(None if binary else b"".join(parts))
    return messages, protocol.state, sent_code(protocol)


def sent_code(protocol: ServerProtocol) -> int | None:
    return protocol.close_sent.code if protocol.close_sent is not None else None


texts = st.text(max_size=300).map(str.encode)
frames = st.one_of(
    texts.map(lambda data: frame(Opcode.TEXT, data)),
    st.binary(max_size=200).map(lambda data: frame(Opcode.BINARY, data)),
    st.binary(max_size=125).map(lambda data: frame(Opcode.PING, data)),
    texts.map(lambda data: frame(Opcode.TEXT, data, fin=False)),
    texts.map(lambda data: frame(Opcode.CONT, data)),
    texts.map(lambda data: frame(Opcode.CONT, data, fin=False)),
    texts.map(lambda data: frame(Opcode.TEXT, data, mask=False)),
    st.just(frame(Opcode.TEXT, b"x" * (MOST + 1))),
    st.just(frame(Opcode.CLOSE, b"\x03\xe8")),
    st.binary(min_size=1, max_size=20),
)


@given(st.lists(frames, max_size=8).map(b"".join), st.lists(st.integers(0, 3_000), max_size=6))
def test_however_the_bytes_are_cut_the_messages_are_those_of_the_codec(data: bytes, cuts: list[int]) -> None:
    expected, state, code = by_codec(data)
    protocol = opened()
    messages = Messages(protocol, MOST)
    found: list[bytes | None] = []
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, end in itertools.pairwise(edges):
        found += messages.read(data[start:end])
    if sent_code(protocol) == CloseCode.INVALID_DATA:
        assert found == expected[: len(found)], "the codec leaves UTF-8 to its user"
        return
    assert found == expected
    if sent_code(protocol) == CloseCode.NORMAL_CLOSURE and code == CloseCode.PROTOCOL_ERROR:
        return  # a close amid fragments, which the codec refuses
    incomplete = state is not State.OPEN and protocol.state is State.OPEN
    if not incomplete:  # what is forbidden is judged when its frame is there whole
        assert (protocol.state, sent_code(protocol)) == (state, code)


@pytest.mark.requirement("ws.utf8")
@pytest.mark.parametrize("text", [b"\xff", b"\xc3", b"\xed\xa0\x80"])
def test_a_text_that_is_not_utf8_fails_with_1007(text: bytes) -> None:
    for sent in (
        frame(Opcode.TEXT, text),
        frame(Opcode.TEXT, text[:1], fin=False) + frame(Opcode.CONT, text[1:]),
    ):
        protocol = opened()
        assert Messages(protocol, MOST).read(sent + frame(Opcode.TEXT, b"late")) == []
        assert sent_code(protocol) == CloseCode.INVALID_DATA


def test_a_frame_too_large_is_refused_by_its_head_alone() -> None:
    protocol = opened()
    assert Messages(protocol, MOST).read(b"\x81\xff" + (2**40).to_bytes(8, "big")) == []
    assert sent_code(protocol) == CloseCode.MESSAGE_TOO_BIG


@pytest.mark.requirement("ws.close-amid-fragments")
@pytest.mark.parametrize("reason", [b"\x03\xe8bye", b"\x03\xe8"])
def test_a_close_amid_fragments_is_a_close_and_the_message_is_dropped(reason: bytes) -> None:
    protocol, close = opened(), frame(Opcode.CLOSE, reason)
    fragment = frame(Opcode.TEXT, b"never", fin=False)
    assert Messages(protocol, MOST).read(fragment + close + frame(Opcode.CONT, b"whole")) == []
    assert sent_code(protocol) == CloseCode.NORMAL_CLOSURE
    assert protocol.close_rcvd_then_sent


def test_a_forbidden_close_amid_fragments_is_refused_as_any_other() -> None:
    for close in (frame(Opcode.CLOSE, b"\x03\xe8", mask=False), b"\x08\x80\x00\x00\x00\x00"):
        protocol = opened()
        assert Messages(protocol, MOST).read(frame(Opcode.TEXT, b"never", fin=False) + close) == []
        assert sent_code(protocol) == CloseCode.PROTOCOL_ERROR


def test_fragments_without_end_are_too_many() -> None:
    protocol = opened()
    messages = Messages(protocol, MOST)
    messages.read(frame(Opcode.TEXT, b"", fin=False))
    messages.read(frame(Opcode.CONT, b"", fin=False) * FRAGMENTS)
    assert sent_code(protocol) == CloseCode.MESSAGE_TOO_BIG


def test_what_waits_for_its_end_is_no_more_than_a_frame() -> None:
    messages = Messages(opened(), MOST)
    whole = frame(Opcode.TEXT, b"x" * MOST)
    for byte in whole[:-1]:
        assert messages.read(bytes([byte])) == []
        assert len(messages._rest) < len(whole)
    assert messages.read(whole[-1:]) == [b"x" * MOST]
    assert messages._rest == b""


def test_what_is_large_is_coming_from_its_head_until_its_end() -> None:
    messages = Messages(opened(), 100)
    messages.widen(MOST, lambda: True)
    large, small = frame(Opcode.TEXT, b"x" * 500), frame(Opcode.TEXT, b"x" * 50)
    for data, coming in ((small, False), (large[:3], False), (large[3:8], True), (large[8:-1], True)):
        messages.read(data)
        assert messages.coming is coming
    assert messages.read(large[-1:]) == [b"x" * 500]
    assert not messages.coming
    messages.read(frame(Opcode.TEXT, b"x" * 90, fin=False))
    assert not messages.coming
    messages.read(frame(Opcode.CONT, b"x" * 90, fin=False))
    assert messages.coming
    assert messages.read(frame(Opcode.CONT, b"", fin=True)) == [b"x" * 180]
    assert not messages.coming
