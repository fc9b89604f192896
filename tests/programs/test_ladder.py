"""The order of checks as a ladder: all that can be wrong is wrong, and is put right from the top; the first answers."""

import json
from typing import Any

import pytest

from broker.app import Caller
from broker.wire.canonical import encode
from broker.wire.envelope import bootstrap
from broker.wire.ids import ConvId
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.programs.flaky import FlakyMemory, flaky
from tests.support.broker import ANYONE, STRANGER, Bench, Party, code, open_bench, tuned

OPERATOR = Caller(operator=True)
NOBODY = "f" * 64

ENVELOPE = {
    "json": ("bad_request", None),
    "shape": ("bad_envelope", "extra"),
    "size": ("too_large", None),
    "self": ("bad_envelope", "to"),
    "params": ("bad_envelope", "n"),
    "conv": ("unknown_conv", None),
    "party": ("not_a_party", None),
    "guess": ("rate_limited", None),
    "sig": ("bad_signature", "sig"),
    "suspended": ("suspended", None),
    "ended": ("conv_ended", None),
    "conflict": ("conflict", None),
    "turn": ("out_of_turn", None),
    "type": ("bad_envelope", "type"),
    "prev_sig": ("bad_prev_sig", None),
    "clock": ("clock_skew", None),
    "tokens": ("rate_limited", None),
    "store": ("unavailable", None),
}
"""send_env: the rungs from the top, and what each is answered."""

CALL = {
    "json": ("bad_request", None),
    "shape": ("bad_envelope", "extra"),
    "size": ("too_large", None),
    "self": ("bad_envelope", "to"),
    "params": ("bad_envelope", "body.code_to"),
    "wire": ("bad_envelope", "body.wire"),
    "from unknown": ("unknown_desk", None),
    "to unknown": ("unknown_desk", None),
    "code_from": ("bad_envelope", "body.code_from"),
    "to": ("bad_envelope", "to"),
    "guess": ("rate_limited", None),
    "sig": ("bad_signature", "sig"),
    "suspended": ("suspended", None),
    "exists": ("conflict", None),
    "prev_sig": ("bad_prev_sig", None),
    "clock": ("clock_skew", None),
    "busy": ("desk_busy", None),
    "disk": ("unavailable", None),
    "store": ("unavailable", None),
}

STATEMENT = {
    "json": ("bad_request", None),
    "shape": ("bad_statement", "extra"),
    "wire": ("bad_statement", "wire"),
    "sig": ("bad_statement", "sig"),
    "new_sig": ("bad_statement", "new_sig"),
    "nonce": ("bad_statement", "nonce"),
    "ts": ("bad_statement", "ts"),
    "party": ("not_a_party", None),
    "exists": ("desk_exists", None),
    "store": ("unavailable", None),
}
"""move_desk: it has all the rungs of a statement."""


def faults_from(rungs: dict[str, Any], first: str) -> set[str]:
    """This fault and all that are judged after it."""
    names = list(rungs)
    return set(names[names.index(first) :])


async def guess(bench: Bench, params: dict[str, Any]) -> None:
    """Twenty bad signatures from the stranger's address."""
    for _ in range(20):
        assert code(await bench.call("send_env", STRANGER, **{**params, "sig": "0" * 128})) == "bad_signature"


def judged(answer: Any, expect: tuple[str, str | None]) -> None:
    assert isinstance(answer, Refusal), answer
    assert (answer.code, answer.detail.get("path")) == expect, answer


@pytest.mark.requirement("order.ladder")
@pytest.mark.parametrize("first", ENVELOPE)
async def test_of_all_that_is_wrong_with_an_envelope_the_first_of_the_order_answers(first: str) -> None:
    faults = faults_from(ENVELOPE, first)
    async with open_bench(tuned(limits={"envelopes": 2}), FlakyMemory()) as bench:
        stranger = await bench.open("CHAR")
        line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
        stopped = "guess" in faults and "conv" not in faults  # it stops looking up unknown ids as well
        if stopped:
            await guess(bench, line.next("CHAT"))
        if "ended" in faults:
            await line.send("END")
        n = line.n + (3 if "conflict" in faults else 1)
        right, wrong = (line.called, line.caller) if n % 2 else (line.caller, line.called)
        sender = stranger if "party" in faults else wrong if "turn" in faults else right
        if "suspended" in faults:
            for name in ("ALFA", "BRAV", "CHAR"):
                await bench.call("suspend_desk", OPERATOR, code=name)
        conv = "f" * 16 if "conv" in faults else line.conv
        members: dict[str, Any] = {
            "conv": conv,
            "n": n,
            "type": "CALL" if "type" in faults else "CHAT",
            "from": sender.pk,
            "to": sender.pk if "self" in faults else (wrong if sender is right else right).pk,
            "ts": bench.ts + (999 if "clock" in faults else 0),
            "prev_sig": "0" * 128 if "prev_sig" in faults else line.sig,
            "body": {"x": "x" * 9000} if "size" in faults else {},
            **({"extra": 1} if "shape" in faults else {}),
        }
        params = {
            "conv": conv,
            "n": n + (1 if "params" in faults else 0),
            "from_pk": sender.pk,
            "sig": "0" * 128 if "sig" in faults else sender.key.sign(encode(members)),
            "envelope": members,
        }
        flaky(bench.store).fail("unavailable", lambda unit: unit.append is not None)
        if "tokens" not in faults:
            bench.broker._services.house.actor("conversation", line.conv).state.spent.clear()  # type: ignore[union-attr]  # an actor with a state
        answer = await ask(bench, "send_env", params, faults, STRANGER if stopped else ANYONE)
        judged(answer, ENVELOPE[first])


async def ask(bench: Bench, tool: str, params: dict[str, Any], faults: set[str], caller: Caller) -> Any:
    text = json.dumps(params).encode()
    return await bench.broker.call(caller, tool, text[:-1] if "json" in faults else text)


@pytest.mark.requirement("order.ladder")
@pytest.mark.parametrize("first", CALL)
async def test_of_all_that_is_wrong_with_a_call_the_first_of_the_order_answers(first: str) -> None:
    faults = faults_from(CALL, first)
    async with open_bench(store=FlakyMemory()) as bench:
        alfa, brav, char = await bench.open("ALFA"), await bench.open("BRAV"), await bench.open("CHAR")
        line = await bench.dial(alfa, brav)
        if "guess" in faults:
            await guess(bench, line.next("PICKUP"))
        await rig(bench, faults, alfa, brav)
        conv = line.conv if "exists" in faults else "e" * 16
        code_from = "ZULU" if "from unknown" in faults else "CHAR" if "code_from" in faults else "ALFA"
        code_to = "YANK" if "to unknown" in faults else "BRAV"
        to = alfa.pk if "self" in faults else char.pk if "to" in faults else brav.pk
        body = {
            "code_from": code_from,
            "code_to": code_to,
            "wire": NOBODY if "wire" in faults else bench.broker.pk,
        }
        members: dict[str, Any] = {
            "conv": conv,
            "n": 0,
            "type": "CALL",
            "from": alfa.pk,
            "to": to,
            "ts": bench.ts + (999 if "clock" in faults else 0),
            "prev_sig": "0" * 64 if "prev_sig" in faults else bootstrap(ConvId(conv)),
            "body": {**body, **({"x": "x" * 9000} if "size" in faults else {})},
            **({"extra": 1} if "shape" in faults else {}),
        }
        params = {
            "to_code": "LIMA" if "params" in faults else code_to,
            "from_pk": alfa.pk,
            "sig": "0" * 128 if "sig" in faults else alfa.key.sign(encode(members)),
            "envelope": members,
        }
        answer = await ask(bench, "send_call", params, faults, STRANGER if "guess" in faults else ANYONE)
        judged(answer, CALL[first])


async def rig(bench: Bench, faults: set[str], alfa: Party, brav: Party) -> None:
    """What is wrong with the broker, not with the envelope."""
    if "suspended" in faults:
        await bench.call("suspend_desk", OPERATOR, code="ALFA")
    if "busy" in faults:
        screen = {"code": "BRAV", "allow": [], "deny": [alfa.pk], "mode": "all"}
        statement = brav.statement("screen_desk", bench.broker.pk, bench.ts, **screen)  # type: ignore[arg-type]  # members
        assert code(await bench.call("screen_desk", **statement)) == "accepted"
    if "disk" in faults:
        bench.store.free = 1  # type: ignore[attr-defined]  # the memory store's
    flaky(bench.store).fail("unavailable", lambda unit: unit.append is not None)


@pytest.mark.requirement("statements.ladder")
@pytest.mark.parametrize("first", STATEMENT)
async def test_of_all_that_is_wrong_with_a_statement_the_first_of_the_order_answers(first: str) -> None:
    faults = faults_from(STATEMENT, first)
    async with open_bench(store=FlakyMemory()) as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        by = brav if "party" in faults else alfa
        taker = SigningKey.generate()
        if "exists" in faults:
            other = Party("CHAR", taker)
            opening = other.statement("open_desk", bench.broker.pk, bench.ts, code="CHAR")
            assert code(await bench.call("open_desk", **opening)) == "accepted"
        nonce = "ab" * 16
        if "nonce" in faults:
            screen = {"code": by.code, "allow": [], "deny": [], "mode": "all"}
            used = by.statement("screen_desk", bench.broker.pk, bench.ts, nonce, **screen)
            assert code(await bench.call("screen_desk", **used)) == "accepted"
        members = {
            "do": "move_desk",
            "pk": by.pk,
            "nonce": nonce,
            "ts": bench.ts - (301 if "ts" in faults else 0),
            "wire": NOBODY if "wire" in faults else bench.broker.pk,
            "code": "ALFA",
            "new_pk": taker.pk,
            **({"extra": 1} if "shape" in faults else {}),
        }
        text = encode(members)
        params = {
            "statement": members,
            "sig": "0" * 128 if "sig" in faults else by.key.sign(text),
            "new_sig": "0" * 128 if "new_sig" in faults else taker.sign(text),
        }
        flaky(bench.store).fail("unavailable")
        judged(await ask(bench, "move_desk", params, faults, ANYONE), STATEMENT[first])
