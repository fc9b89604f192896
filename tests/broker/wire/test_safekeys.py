"""The keys of agents' secrets."""

import pytest
from nacl.secret import SecretBox

from broker.wire.safekeys import SafeKeys, key_id

OLD, NEW = b"o" * 32, b"n" * 32
NONCE = b"1" * 24


@pytest.mark.requirement("trial.secret-sealed")
def test_a_secret_opens_in_its_own_place_alone() -> None:
    keys = SafeKeys([NEW])
    sealed = keys.seal("ow_1", "NAME", "a value", NONCE)
    assert b"a value".hex() not in sealed
    assert keys.open("ow_1", "NAME", sealed, keys.current) == "a value"
    assert keys.open("ow_2", "NAME", sealed, keys.current) is None
    assert keys.open("ow_1", "OTHER", sealed, keys.current) is None


@pytest.mark.requirement("trial.secret-sealed")
def test_it_is_nacls_secretbox() -> None:
    sealed = bytes.fromhex(SafeKeys([NEW]).seal("ow_1", "NAME", "a value", NONCE))
    assert SecretBox(NEW).decrypt(sealed) == b'["ow_1","NAME","a value"]'


@pytest.mark.requirement("trial.secret-key-lost")
def test_older_keys_open_and_strange_ones_do_not() -> None:
    sealed = SafeKeys([OLD]).seal("ow_1", "NAME", "a value", NONCE)
    assert SafeKeys([OLD, NEW]).open("ow_1", "NAME", sealed, key_id(OLD)) == "a value"
    assert SafeKeys([NEW]).open("ow_1", "NAME", sealed, key_id(OLD)) is None
    assert SafeKeys([NEW]).open("ow_1", "NAME", sealed, key_id(NEW)) is None
    assert SafeKeys([OLD, NEW]).current == key_id(NEW) != key_id(OLD)


@pytest.mark.parametrize("damaged", ["", "zz", "00", "0" * 200])
def test_what_is_damaged_opens_nowhere(damaged: str) -> None:
    assert SafeKeys([NEW]).open("ow_1", "NAME", damaged, key_id(NEW)) is None


@pytest.mark.requirement("trial.secret-hidden")
def test_no_text_shows_a_key() -> None:
    keys = SafeKeys([NEW])
    assert NEW.decode() not in repr(keys) + str(keys) + keys.current
    assert NEW.hex() not in repr(keys) + str(keys) + keys.current
