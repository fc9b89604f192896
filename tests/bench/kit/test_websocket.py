"""The client's frames, and what a broker may not say."""

import pytest
from websockets.utils import apply_mask

from bench.kit.websocket import Lost, control, frame, measure, request


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_a_frame_is_found_again(size: int) -> None:
    payload = b"x" * size
    masked = frame(payload)
    assert masked[1] & 0x80
    unmarked = masked[:1] + bytes([masked[1] & 0x7F]) + masked[2:]
    start, end = measure(unmarked, 0)
    assert end - start == size
    assert apply_mask(masked[start + 4 :], masked[start : start + 4]) == payload


def test_a_head_that_is_not_whole_is_waited_for() -> None:
    whole = b"\x81\x7f" + (70_000).to_bytes(8, "big")
    assert [measure(whole[:n], 0) for n in (0, 1, 2, 9)] == [(0, 0)] * 4
    assert measure(whole, 0) == (10, 70_010)
    assert measure(b"\x81\x7e\x01", 0) == (0, 0)


def test_a_request_is_json_rpc() -> None:
    assert request(1, "ping", {}) == b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}'
    assert request(1, "ping", b"{ }").endswith(b'"params":{ }}')


def test_control_frames_are_answered_or_end_it() -> None:
    assert control(0x8A, b"") == b""
    assert control(0x89, b"")[0] == 0x8A
    with pytest.raises(Lost, match="closed: 4008 slow"):
        control(0x88, (4008).to_bytes(2, "big") + b"slow")
    with pytest.raises(Lost, match="not expected"):
        control(0x82, b"")
