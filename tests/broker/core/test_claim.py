"""Claim codes."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.claim import ENTROPY, new_code, read_code


@pytest.mark.requirement("identity.claim-code")
@given(st.binary(min_size=ENTROPY, max_size=ENTROPY))
def test_a_code_is_read_as_people_write_it(entropy: bytes) -> None:
    code = new_code(entropy)
    kept = read_code(code)
    assert kept is not None
    assert len(code) == 23
    plain = code.replace("-", "")
    for written in (
        code.lower(),
        plain,
        f" {plain[:7]} {plain[7:]} ",
        code.replace("0", "o").replace("1", "l"),
    ):
        assert read_code(written) == kept
    assert kept.selector == plain[:4]
    assert kept.digest == hashlib.sha256(plain.encode()).hexdigest()


@pytest.mark.requirement("identity.claim-code")
def test_each_of_100_bits_changes_the_code_and_80_of_them_are_secret() -> None:
    codes = {new_code((1 << bit).to_bytes(ENTROPY)) for bit in range(8 * ENTROPY)}
    assert len(codes) == 101  # the four bits that are left over make no difference
    assert len({code for code in codes if code.startswith("0000")}) == 81


@pytest.mark.parametrize("text", ["", "A", "0000-0000-0000-0000-000", "U" * 20, "0" * 21, "é" * 20])
def test_what_is_no_code_is_none(text: str) -> None:
    assert read_code(text) is None


def test_another_size_of_chance_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="13 bytes"):
        new_code(bytes(12))
