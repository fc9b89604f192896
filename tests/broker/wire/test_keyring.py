"""The wire's own keys: one opens conversations, older ones go on in theirs."""

import pytest

from broker.wire.keyring import Keyring, WireKey
from tests.support.vectors import KEYS

OLD, NEW = KEYS["alpha"], KEYS["wire"]


@pytest.mark.requirement("keys.rotation")
def test_the_last_key_is_the_present_one_and_an_older_one_is_found_by_its_pk() -> None:
    ring = Keyring((WireKey(OLD, since=1, until=5), WireKey(NEW, since=5)))
    assert ring.pk == NEW.pk
    assert ring.current is NEW
    assert ring.get(OLD.pk) is OLD
    assert ring.get(NEW.pk) is NEW
    assert ring.opening == (NEW.pk,)


@pytest.mark.requirement("keys.rotation")
def test_the_keys_are_listed_with_their_times_and_without_their_seeds() -> None:
    ring = Keyring((WireKey(OLD, since=1, until=5), WireKey(NEW, since=5)))
    assert ring.listing() == [{"pk": OLD.pk, "from": 1, "until": 5}, {"pk": NEW.pk, "from": 5}]
    assert OLD.seed not in repr(ring.listing()) + repr(WireKey(OLD, since=1))


def test_a_wire_without_a_key_is_none() -> None:
    with pytest.raises(ValueError, match="key"):
        Keyring(())
