"""What a dealer signs besides envelopes."""

import msgspec
import pytest

from broker.wire.ids import Pk
from broker.wire.keys import SigningKey, verify
from broker.wire.statement import Statement, read_statement
from gateways.client.clockwork import WireClock
from gateways.client.errors import Refused
from gateways.client.signer import FOLLOW_S, Signer, join_params

KEY = SigningKey.from_seed("a1" * 32)
WIRE = Pk("57" * 32)


class Hand:
    """A clock that a test moves."""

    ms = 1_782_345_678_000


@pytest.fixture
def signer() -> Signer:
    Hand.ms = 1_782_345_678_000
    return Signer(KEY, WIRE, WireClock(lambda: Hand.ms))


@pytest.mark.requirement("client.statements")
def test_a_statement_is_for_the_pinned_wire_by_the_wires_time(signer: Signer) -> None:
    signer.clock.correct(Hand.ms + 60_000)
    text, sig = signer.sign("open_desk", code="ALFA", recovery_pk=None)
    read = read_statement(text, do="open_desk")
    assert isinstance(read, Statement)
    assert (read.wire, read.pk, read.ts) == (WIRE, KEY.pk, 1_782_345_738)
    assert read.members == {"code": "ALFA"}
    assert verify(KEY.pk, text, sig)


@pytest.mark.requirement("client.statements")
def test_each_statement_has_a_nonce_of_its_own_unless_one_is_given(signer: Signer) -> None:
    nonces = {msgspec.json.decode(signer.sign("open_desk", code="ALFA")[0])["nonce"] for _ in range(20)}
    assert len(nonces) == 20
    text, _ = signer.sign("authenticate", nonce="ab" * 16)
    assert msgspec.json.decode(text)["nonce"] == "ab" * 16


def test_params_carry_the_statement_as_it_was_signed(signer: Signer) -> None:
    params = msgspec.json.decode(signer.statement("close_desk", code="ALFA"), type=dict[str, msgspec.Raw])
    assert verify(KEY.pk, bytes(params["statement"]), msgspec.json.decode(params["sig"]))


def test_what_the_wire_would_refuse_is_not_signed(signer: Signer) -> None:
    with pytest.raises(Refused, match="bad_statement"):
        signer.sign("open_desk", code="lower")
    with pytest.raises(Refused, match="bad_statement"):
        signer.sign("open_desk")


@pytest.mark.requirement("client.statements")
def test_a_read_capability_lasts_an_hour_and_is_used_for_half_of_it(signer: Signer) -> None:
    first = signer.follow()
    statement = msgspec.json.decode(first["statement"])
    assert statement["until"] - statement["ts"] == FOLLOW_S
    Hand.ms += 1799_000
    assert signer.follow() == first
    Hand.ms += 2_000
    second = signer.follow()
    assert second != first
    signer.clock.correct(Hand.ms - 7_200_000)  # the clock turns out to be fast: an `until` in the far future
    assert signer.follow() != second


def test_raw_members_are_copied_byte_for_byte() -> None:
    assert join_params({"envelope": msgspec.Raw(b'{"b":1.50,"a":1}')}) == b'{"envelope":{"b":1.50,"a":1}}'
