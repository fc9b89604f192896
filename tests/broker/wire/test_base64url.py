"""Base64url without padding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.wire import base64url


@given(st.binary(max_size=40))
def test_bytes_survive_the_round_trip(data: bytes) -> None:
    text = base64url.encode(data)
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert base64url.decode(text) == base64url.decode(text + "=" * (-len(text) % 4)) == data


def test_the_bytes_of_rfc_7515_are_written_as_there() -> None:
    """Appendix C of RFC 7515."""
    assert base64url.encode(bytes([3, 236, 255, 224, 193])) == "A-z_4ME"


@pytest.mark.parametrize("text", ["A", "AAAAA", "é"])
def test_what_no_bytes_are_written_as_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        base64url.decode(text)
