"""What the doors, the store and the client agree on."""

from typing import get_args

import msgspec

from broker.wire.task import OPEN, RESTING, Outcome, Part, State


def test_every_state_is_open_or_resting_and_one_is_both() -> None:
    states = set(get_args(State))
    assert states == OPEN | RESTING
    assert {"input-required"} == OPEN & RESTING
    assert set(get_args(Outcome)) < RESTING - OPEN


def test_a_part_of_null_is_no_part_of_nothing() -> None:
    assert msgspec.json.encode(Part(data=None)) == b'{"data":null}'
    assert msgspec.json.decode(b'{"data":null}', type=Part) == Part(data=None) != Part()
