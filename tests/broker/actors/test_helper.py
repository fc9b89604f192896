"""The helper's program, run in the test's own process; tests/broker/actors/test_helpers.py runs it as a process."""

import socket
import struct

import pytest

from broker.actors.helper import BAD, BATCH, GOOD, LENGTH, READY, serve, verdicts
from tests.broker.wire.test_keys import SPECCHECK, WYCHEPROOF
from tests.support.vectors import KEYS


def record(pk: str, message: bytes, sig: str) -> bytes:
    return LENGTH.pack(len(message)) + pk.encode() + sig.encode() + message


def answers(*requests: bytes) -> bytes:
    """What a helper says to these before it ends."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"".join(requests))
        ours.shutdown(socket.SHUT_WR)
        serve(theirs)
        theirs.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: ours.recv(4096), b""))


def batch(number: int, *records: bytes) -> bytes:
    body = b"".join(records)
    return BATCH.pack(number, len(body)) + body


@pytest.mark.requirement("keys.helpers-strict")
def test_every_case_of_the_vectors_is_judged_as_the_wire_judges_it() -> None:
    cases = [
        (pk, bytes.fromhex(each["msg"]), each["sig"]) for pk, each in WYCHEPROOF if len(each["sig"]) == 128
    ]
    judged = verdicts(b"".join(record(*each) for each in cases))
    expected = [each["result"] == "valid" for _, each in WYCHEPROOF if len(each["sig"]) == 128]
    assert [each == GOOD for each in judged] == expected
    assert set(judged) == {GOOD, BAD}
    edges = [(each["pub_key"], bytes.fromhex(each["message"]), each["signature"]) for each in SPECCHECK]
    judged = verdicts(b"".join(record(*each) for each in edges))
    assert [each == GOOD for each in judged] == [index == 3 for index in range(12)]


@pytest.mark.requirement("keys.helpers-strict")
def test_only_lower_case_hex_is_good() -> None:
    key = KEYS["alpha"]
    sig = key.sign(b"deal")
    forms = [
        (key.pk, sig),
        (key.pk.upper(), sig),
        (key.pk, sig.upper()),
        (key.pk, " " * 128),
        (key.pk, "?" * 128),
    ]
    judged = verdicts(b"".join(record(pk, b"deal", each) for pk, each in forms))
    assert [each == GOOD for each in judged] == [True, False, False, False, False]


def test_batches_are_answered_in_order_each_by_its_number() -> None:
    key = KEYS["alpha"]
    good, bad = record(key.pk, b"deal", key.sign(b"deal")), record(key.pk, b"no deal", key.sign(b"deal"))
    said = answers(batch(7, good, bad, good), batch(8), batch(9, bad))
    assert said == READY + BATCH.pack(7, 3) + b"101" + BATCH.pack(8, 0) + BATCH.pack(9, 1) + b"0"


def test_a_batch_that_never_ends_is_not_answered() -> None:
    key = KEYS["alpha"]
    whole = batch(1, record(key.pk, b"deal", key.sign(b"deal")))
    for cut in range(len(whole)):
        assert answers(whole[:cut]) == READY


@pytest.mark.parametrize("cut", [1, 3, 100, 195, 197])
def test_a_record_that_is_cut_short_is_a_fault(cut: int) -> None:
    key = KEYS["alpha"]
    with pytest.raises(struct.error):
        verdicts(record(key.pk, b"deal", key.sign(b"deal"))[:cut])
