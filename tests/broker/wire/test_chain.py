"""The chain, and the offline walk: what holds, and the first step that does not."""

import hashlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.wire.canonical import canonicalize
from broker.wire.chain import (
    Verdict,
    chain_next,
    chain_start,
    receipt_text,
    row_text,
    verify_transcript,
)
from broker.wire.envelope import bootstrap, build
from broker.wire.keys import SigningKey
from tests.support.vectors import KEYS, VALID, envelope_rows, export_lines

ALPHA, BRAVO, MALLORY, WIRE = (KEYS[name] for name in ("alpha", "bravo", "mallory", "wire"))
CONV = "0f0f0f0f0f0f0f0f"
TS = 1_782_345_678
CODES = {"code_from": "ALFA", "code_to": "BRAV"}


class Talk:
    """Rows signed one by one; each may be wrong in the way that it is told to be."""

    def __init__(self, **body: Any) -> None:
        self.rows: list[dict[str, Any]] = []
        self.chain = chain_start(CONV)
        self.say("CALL", {**CODES, **body})

    def say(self, type: str, body: dict[str, Any] | None = None, **wrong: Any) -> "Talk":
        n = len(self.rows)
        key: SigningKey = wrong.get("key", BRAVO if n % 2 else ALPHA)
        to = wrong.get("to", (ALPHA if key is BRAVO else BRAVO).pk)
        prev_sig = wrong.get("prev_sig", self.rows[-1]["sig"] if n else bootstrap(CONV))
        text = build(
            conv=wrong.get("conv", CONV), n=wrong.get("n", n), type=type, sender=wrong.get("sender", key.pk), to=to,
            ts=TS + n, prev_sig=prev_sig, body=body or {},
        )  # fmt: skip
        sig = key.sign(text)
        if n:
            self.chain = chain_next(self.chain, sig)
        row = {
            "n": n,
            "sig": sig,
            "envelope": json.loads(text),
            "chain": self.chain.hex(),
            "accepted_at": (TS + n) * 1000,
        }
        self.rows.append(
            {name: each for name, each in {**row, **wrong.get("row", {})}.items() if each is not ...}
        )
        return self

    def broken(self, *wires: str) -> tuple[int, str]:
        """The n and the code of the first broken step, which must be the last row."""
        verdict = verify_transcript(self.rows, wires)
        assert verdict.broken is not None
        assert (verdict.ok, verdict.rows, verdict.broken.line) == (False, len(self.rows) - 1, len(self.rows))
        text = verify_transcript([json.dumps(row) for row in self.rows], wires)
        assert text == verdict
        return verdict.broken.n, verdict.broken.code

    def holds(self, *wires: str) -> Verdict:
        verdict = verify_transcript(self.rows, wires)
        assert verdict.ok, verdict.broken
        assert verdict.rows == len(self.rows)
        assert verdict.chain == self.chain.hex()
        return verdict


def open_talk(**body: Any) -> Talk:
    return Talk(**body).say("PICKUP")


@pytest.mark.requirement("chain.value")
@pytest.mark.parametrize("name", VALID)
def test_the_chain_of_the_vectors_is_the_hash_of_each_sig_upon_the_last(name: str) -> None:
    value = chain_start(VALID[name]["conv"])
    for row in envelope_rows(name):
        if row["n"]:
            assert chain_next(value, row["sig"]) == hashlib.sha256(value + bytes.fromhex(row["sig"])).digest()
            value = chain_next(value, row["sig"])
        assert value.hex() == row["chain"]
    assert chain_start(VALID[name]["conv"]).hex() == envelope_rows(name)[0]["envelope"]["prev_sig"]


@pytest.mark.requirement("chain.verify")
@pytest.mark.parametrize("name", VALID)
def test_a_valid_transcript_holds_as_rows_as_an_export_and_by_sig_and_envelope_alone(name: str) -> None:
    wires = [VALID[name]["wire"]] if "wire" in VALID[name] else []
    rows = envelope_rows(name)
    bare = [{"sig": row["sig"], "envelope": row["envelope"]} for row in rows]
    spaced = [f" {json.dumps(row)}\r\n" for row in rows]
    first = rows[0]["envelope"]
    for lines in (rows, bare, spaced, export_lines(name), [*export_lines(name), b"\n", b""]):
        verdict = verify_transcript(lines, wires)
        assert verdict.ok, verdict.broken
        assert (verdict.rows, verdict.conv, verdict.chain) == (
            len(rows),
            VALID[name]["conv"],
            rows[-1]["chain"],
        )
        assert verdict.parties == (first["from"], first["to"])
        assert (verdict.ended is None) == (rows[-1]["envelope"]["type"] != "END")
        assert verdict.ended_by_wire == (name == "ended_by_the_wire")


@pytest.mark.requirement("chain.any-byte")
def test_any_byte_of_an_export_changed_is_refused_at_its_step() -> None:
    lines = export_lines("deal")[:4]
    for index, line in enumerate(lines):
        for at in range(len(line)):
            changed = line[:at] + bytes([line[at] ^ (1 << at % 7)]) + line[at + 1 :]
            verdict = verify_transcript([*lines[:index], changed, *lines[index + 1 :]])
            if verdict.ok:
                # accepted_at is the wire's word alone: only a receipt proves it.
                assert msgspec.json.decode(changed) | {"accepted_at": 0} == msgspec.json.decode(line) | {
                    "accepted_at": 0
                }
                continue
            assert verdict.broken is not None
            assert (verdict.broken.n, verdict.broken.line, verdict.rows) == (index, index + 1, index), changed


@pytest.mark.requirement("chain.any-byte")
@given(st.data())
def test_lines_lost_repeated_or_moved_are_noticed(data: st.DataObject) -> None:
    lines = export_lines("deal")
    order = data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=9))
    verdict = verify_transcript([lines[each] for each in order])
    assert verdict.ok == (order == list(range(len(order))) and order != [])
    agreed = next((at for at, each in enumerate(order) if at != each), len(order))
    assert verdict.rows == agreed


@pytest.mark.requirement("chain.verify")
def test_a_transcript_without_an_envelope_proves_nothing() -> None:
    for lines in ([], [b""], ["\n", "  "]):
        verdict = verify_transcript(lines)
        assert not verdict.ok
        assert verdict.broken is not None
        assert verdict.broken.code == "not_found"
        assert verdict.conv is None


@pytest.mark.requirement("chain.first-broken-step")
def test_each_step_that_does_not_hold_is_named_by_its_code() -> None:
    assert open_talk().say("RFQ", key=BRAVO).broken() == (2, "out_of_turn")
    assert open_talk().say("RFQ", key=MALLORY).broken() == (2, "not_a_party")
    assert open_talk().say("RFQ", to=MALLORY.pk).broken() == (2, "not_a_party")
    assert open_talk().say("RFQ", key=MALLORY, sender=ALPHA.pk).broken() == (2, "bad_signature")
    assert open_talk().say("RFQ", prev_sig="ab" * 64).broken() == (2, "bad_prev_sig")
    assert open_talk().say("RFQ", n=4).broken() == (2, "conflict")
    assert open_talk().say("RFQ", conv="f" * 16).broken() == (2, "bad_envelope")
    assert open_talk().say("CALL").broken() == (2, "bad_envelope")
    assert open_talk().say("PICKUP").broken() == (2, "bad_envelope")
    assert Talk().say("RFQ").broken() == (1, "bad_envelope")
    assert Talk().say("PICKUP", key=ALPHA).broken() == (1, "out_of_turn")
    assert open_talk().say("END").say("RFQ").broken() == (3, "conv_ended")
    assert open_talk().say("END").say("END").broken() == (3, "conv_ended")


@pytest.mark.requirement("chain.first-broken-step")
def test_what_stands_beside_an_envelope_must_agree_with_it() -> None:
    def with_row(**row: Any) -> tuple[int, str]:
        return open_talk().say("RFQ", row=row).broken()

    assert with_row(chain="00" * 32) == (2, "bad_chain")
    assert with_row(chain=None) == (2, "bad_chain")
    assert with_row(n=3) == (2, "bad_request")
    assert Talk().say("PICKUP", row={"n": True}).broken() == (1, "bad_request")
    assert with_row(conv="f" * 16) == (2, "bad_request")
    assert with_row(accepted_at="now") == (2, "bad_request")
    assert with_row(accepted_at=-1) == (2, "bad_request")
    assert with_row(sig="00") == (2, "bad_signature")
    assert with_row(sig=...) == (2, "bad_signature")
    assert with_row(sig="00" * 64) == (2, "bad_signature")
    assert with_row(envelope=...) == (2, "bad_envelope")
    assert with_row(envelope={}) == (2, "bad_envelope")
    assert with_row(envelope=[]) == (2, "bad_envelope")
    assert with_row(canonical="{}") == (2, "bad_envelope")
    assert with_row(chian="00" * 32) == (2, "bad_request")
    open_talk().say("RFQ", row={"resubmitted": True, "conv": CONV, "own": False, "cursor": "x"}).holds()
    open_talk().say("RFQ", row={"n": ..., "chain": ..., "accepted_at": ...}).holds()


@pytest.mark.requirement("chain.first-broken-step")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{", "bad_request"),
        ("[]", "bad_request"),
        ('{"sig":1,"sig":2,"envelope":{}}', "bad_request"),
        ('{"envelope":{"n":1,"n":1},"sig":""}', "bad_envelope"),
        ('{"envelope":{},"sig":"a","n":1e99}', "bad_request"),
        ('{"envelope":{},"\x1b":1}', "bad_request"),
        ("\ud800", "bad_request"),
        (b"\xff", "bad_request"),
        ({"envelope": {"n": 2**60}}, "bad_envelope"),
        ({"envelope": {1: 2}}, "bad_envelope"),
        ({}, "bad_envelope"),
        ({"envelope": object()}, "bad_envelope"),
        ({7: 1, "envelope": {}}, "bad_request"),
    ],
)
def test_a_line_that_is_no_row_breaks_the_walk(line: Any, code: str) -> None:
    verdict = verify_transcript([line])
    assert verdict.broken is not None
    assert (verdict.broken.n, verdict.broken.line, verdict.broken.code) == (0, 1, code)


@given(st.lists(st.binary(max_size=80), max_size=3), st.integers(0, 2))
@pytest.mark.requirement("chain.hostile-bytes")
def test_any_lines_give_a_verdict(lines: list[bytes], start: int) -> None:
    verdict = verify_transcript([*export_lines("deal")[:start], *lines])
    assert verdict.rows == start or not lines
    assert verdict.ok == (start > 0 and not any(each.strip() for each in lines))


@pytest.mark.requirement("chain.hang-up")
def test_either_party_may_hang_up_out_of_turn() -> None:
    for key in (ALPHA, BRAVO):
        assert Talk().say("END", key=key).holds().ended == ""
        verdict = open_talk().say("RFQ").say("END", {"reason": "lunch\x1b[2J"}, key=key).holds()
        assert (verdict.ended, verdict.ended_by_wire) == ("lunch?[2J", False)
    assert open_talk().say("END", {"reason": 7}).holds().ended == ""


@pytest.mark.requirement("chain.wire-end")
def test_the_wires_end_is_good_where_the_call_or_the_verifier_names_the_wire() -> None:
    reason = {"reason": "no_answer"}
    assert Talk().say("END", reason, key=WIRE, to=BRAVO.pk).broken() == (1, "unknown_wire_key")
    assert Talk().say("END", reason, key=WIRE, to=BRAVO.pk).broken(MALLORY.pk) == (1, "unknown_wire_key")
    verdict = Talk().say("END", reason, key=WIRE, to=BRAVO.pk).holds(MALLORY.pk, WIRE.pk)
    assert (verdict.ended, verdict.ended_by_wire) == ("no_answer", True)
    assert Talk(wire=WIRE.pk).say("END", reason, key=WIRE, to=BRAVO.pk).holds().ended_by_wire
    assert Talk(wire=MALLORY.pk).say("END", reason, key=WIRE, to=BRAVO.pk).broken() == (1, "unknown_wire_key")
    assert open_talk(wire=WIRE.pk).say("RFQ").say("END", reason, key=WIRE, to=BRAVO.pk).holds().ended_by_wire


@pytest.mark.requirement("chain.wire-end")
def test_the_wire_may_write_nothing_but_the_last_end() -> None:
    for wires in ((), (WIRE.pk,)):
        assert open_talk(wire=WIRE.pk).say("RFQ", key=WIRE, to=BRAVO.pk).broken(*wires) == (2, "not_a_party")
        ended = open_talk(wire=WIRE.pk).say("END", key=WIRE, to=ALPHA.pk)
        assert ended.say("QUOTE").broken(*wires) == (3, "conv_ended")
        assert open_talk(wire=WIRE.pk).say("END", key=WIRE, to=MALLORY.pk).broken(*wires) == (
            2,
            "not_a_party",
        )
    assert Talk(wire=WIRE.pk).say("PICKUP", key=WIRE, to=BRAVO.pk).broken() == (1, "not_a_party")


@pytest.mark.requirement("call.valid-until")
def test_taking_up_what_is_over_is_warned_of_and_still_holds() -> None:
    until = (TS + 3) * 1000
    quoted = open_talk().say("RFQ").say("QUOTE", {"valid_until_ms": until - 1})
    for kind in ("HIT", "ACCEPT", "CONFIRM"):
        talk = Talk.__new__(Talk)
        talk.rows, talk.chain = list(quoted.rows), quoted.chain
        late = talk.say(kind, row={"accepted_at": until + 41}).holds()
        assert [(each.n, each.message) for each in late.warnings] == [
            (4, f"{kind} came 42 ms after valid_until_ms")
        ]
    for kind, accepted_at in (("CHAT", until + 41), ("HIT", until - 1)):
        talk = Talk.__new__(Talk)
        talk.rows, talk.chain = list(quoted.rows), quoted.chain
        assert talk.say(kind, row={"accepted_at": accepted_at}).holds().warnings == ()


@pytest.mark.requirement("call.valid-until")
def test_without_accepted_at_the_envelopes_own_time_tells_and_a_chat_between_renews_nothing() -> None:
    talk = open_talk().say("RFQ").say("QUOTE", {"valid_until_ms": TS * 1000}).say("CHAT").say("CHAT")
    verdict = talk.say("HIT", row={"accepted_at": ...}).holds()
    assert [(each.n, each.message) for each in verdict.warnings] == [
        (6, "HIT came 6000 ms after valid_until_ms")
    ]
    renewed = open_talk().say("RFQ").say("QUOTE", {"valid_until_ms": 1}).say("CHAT").say("QUOTE").say("HIT")
    assert renewed.holds().warnings == ()


def receipt(row: dict[str, Any], key: SigningKey = WIRE, **wrong: Any) -> dict[str, Any]:
    """What the tool `receipt` answers for a row, signed over what it says."""
    text = receipt_text(key.pk, CONV, row["n"], row["sig"], row["chain"], row["accepted_at"])
    said = canonicalize(json.dumps({**json.loads(text), **wrong}).encode())
    assert isinstance(said, bytes)
    return {"receipt": json.loads(said), "sig": key.sign(said)}


@pytest.mark.requirement("chain.receipts")
def test_a_receipt_of_a_known_wire_proves_when_a_row_was_received() -> None:
    talk = open_talk().say("RFQ")
    for row in talk.rows[1:]:
        row["receipt"] = receipt(row)
    assert talk.holds(WIRE.pk).received == (None, (TS + 1) * 1000, (TS + 2) * 1000)
    assert talk.holds().received == (None, None, None)
    named = Talk(wire=WIRE.pk)
    named.rows[0]["receipt"] = receipt(named.rows[0])
    assert named.holds().received == (TS * 1000,)
    del named.rows[0]["accepted_at"]
    assert named.holds().received == (TS * 1000,)


@pytest.mark.requirement("chain.receipts")
def test_a_receipt_that_is_another_rows_or_another_keys_proves_nothing() -> None:
    talk = open_talk().say("RFQ")
    row = talk.rows[2]
    good = receipt(row)
    bad: list[Any] = [
        receipt(talk.rows[1]), receipt(row, MALLORY), receipt(row, n=3), receipt(row, accepted_at=1),
        receipt(row, extra=1), receipt(row, do="open_desk"), receipt(row, accepted_at="x"),
        receipt(row, wire=MALLORY.pk),
        {**good, "sig": "00" * 64}, {**good, "sig": None}, {"sig": good["sig"]}, {"receipt": []}, None, 7, [], "seen",
        {"receipt": {**good["receipt"], "wire": None}, "sig": good["sig"]},
        {"receipt": {**good["receipt"], "more": 1}, "sig": good["sig"]},
        {"receipt": {**good["receipt"], "accepted_at": 10**30}, "sig": good["sig"]},
    ]  # fmt: skip
    for each in bad:
        row["receipt"] = each
        assert talk.holds(WIRE.pk).received[2] is None, each
    at = row.pop("accepted_at")
    row["receipt"] = bad[-1]
    assert talk.holds(WIRE.pk).received[2] is None
    row["accepted_at"] = at
    row["receipt"] = good
    assert talk.holds(WIRE.pk).received[2] == row["accepted_at"]
    row["accepted_at"] += 1
    assert talk.holds(WIRE.pk).received[2] is None


@pytest.mark.requirement("chain.row-text")
def test_a_stored_row_is_canonical_and_walks_as_a_line() -> None:
    rows = envelope_rows("deal")
    lines = [
        row_text(
            VALID["deal"]["conv"],
            row["n"],
            row["sig"],
            row["chain"],
            row["canonical"].encode(),
            resubmitted=late,
        )
        for row, late in zip(rows, [False, True] * 4, strict=True)
    ]
    assert [canonicalize(line) for line in lines] == lines
    assert [json.loads(line).get("resubmitted") for line in lines] == [None, True] * 4
    assert verify_transcript(lines).ok
