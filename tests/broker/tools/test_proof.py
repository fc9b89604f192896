"""Proofs: challenges serve one connection, follow statements one key, signatures are told apart from shape."""

import json
from typing import Any

import pytest

from broker.app import Caller
from broker.wire.refusals import Refusal
from tests.support.broker import STRANGER, Bench, code

CHALLENGE = "ab" * 16


def params(statement: dict[str, Any]) -> tuple[bytes, str]:
    return json.dumps(statement["statement"]).encode(), statement["sig"]


@pytest.mark.requirement("statements.authenticate")
async def test_an_authenticate_statement_serves_the_connection_of_its_challenge(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    text, sig = params(alfa.statement("authenticate", bench.broker.pk, bench.ts, CHALLENGE))
    admitted = await bench.broker.admit(STRANGER, text, sig, challenge=CHALLENGE)
    assert isinstance(admitted, Caller)
    assert (admitted.pk, admitted.authenticated, admitted.exempt) == (alfa.pk, True, True)
    again = await bench.broker.admit(STRANGER, text, sig, challenge=CHALLENGE)
    assert isinstance(again, Caller), "it is not stored, so it uses no nonce"
    other = await bench.broker.admit(STRANGER, text, sig, challenge="cd" * 16)
    assert isinstance(other, Refusal)
    assert (other.code, other.detail["path"]) == ("bad_statement", "nonce")


@pytest.mark.requirement("statements.authenticate")
async def test_an_authenticate_statement_is_for_this_wire_and_this_time(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    for wire, ts, path in (("f" * 64, bench.ts, "wire"), (bench.broker.pk, bench.ts - 301, "ts")):
        text, sig = params(alfa.statement("authenticate", wire, ts, CHALLENGE))
        refused = await bench.broker.admit(STRANGER, text, sig, challenge=CHALLENGE)
        assert isinstance(refused, Refusal)
        assert refused.detail["path"] == path


@pytest.mark.requirement("statements.follow")
async def test_a_follow_statement_admits_a_reader_that_is_not_authenticated(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    until = bench.ts + 60
    text, sig = params(alfa.statement("follow", bench.broker.pk, bench.ts, code="ALFA", until=until))
    admitted = await bench.broker.admit(STRANGER, text, sig)
    assert isinstance(admitted, Caller)
    assert (admitted.pk, admitted.code, admitted.until) == (alfa.pk, "ALFA", until)
    assert not admitted.exempt


@pytest.mark.requirement("statements.shape")
@pytest.mark.parametrize("sig", ["", "zz", "A" * 128, "0" * 127])
async def test_a_sig_of_the_wrong_form_beside_a_statement_is_refused(bench: Bench, sig: str) -> None:
    alfa = await bench.open("ALFA")
    statement = alfa.statement("close_desk", bench.broker.pk, bench.ts, code="ALFA")
    answer = await bench.call("close_desk", **{**statement, "sig": sig})
    assert code(answer) in ("bad_statement", "bad_envelope")
    assert answer.detail["path"] == "sig"


@pytest.mark.requirement("limits.guessing")
async def test_bad_signatures_of_statements_count_as_guesses(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    statement = alfa.statement("close_desk", bench.broker.pk, bench.ts, code="ALFA")
    bad = {**statement, "sig": "0" * 128}
    answers = [code(await bench.call("close_desk", STRANGER, **bad)) for _ in range(21)]
    assert answers == ["bad_statement"] * 20 + ["rate_limited"]
