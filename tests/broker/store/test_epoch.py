"""Epochs: told by name and secret alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.store.epoch import SECRET_BYTES, epoch_of, new_secret


@pytest.mark.requirement("store.epoch")
@given(st.text(), st.text())
def test_an_epoch_is_16_hex_characters_of_the_name_and_the_secret(name: str, other: str) -> None:
    secret = b"s" * SECRET_BYTES
    epoch = epoch_of(secret, name)
    assert len(epoch) == 16
    assert set(epoch) <= set("0123456789abcdef")
    assert epoch_of(secret, name) == epoch
    assert (epoch_of(secret, other) == epoch) is (other == name)
    assert epoch_of(b"t" * SECRET_BYTES, name) != epoch


def test_no_two_secrets_are_alike() -> None:
    made = {new_secret() for _ in range(100)}
    assert len(made) == 100
    assert {len(each) for each in made} == {SECRET_BYTES}
