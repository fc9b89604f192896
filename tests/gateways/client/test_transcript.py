"""A dealer's own copy: every kind of lie is found at its row, and a repeat is not a lie."""

import json
from pathlib import Path
from typing import Any

import pytest

from broker.wire.envelope import build
from broker.wire.ids import Pk
from broker.wire.keys import SigningKey
from gateways.client.errors import WireFault
from gateways.client.transcript import Row, Transcript

VECTORS = Path(__file__).parents[2] / "vectors" / "wire"
VALID: dict[str, Any] = json.loads((VECTORS / "valid.json").read_text())
KEYS: dict[str, Any] = json.loads((VECTORS / "keys.json").read_text())
WIRE = Pk(KEYS["wire"]["pk"])
REFUSED = [case for case in json.loads((VECTORS / "refused.json").read_text()) if case["so_far"]["rows"]]
DEAL = VALID["deal"]["rows"]


def admit(copy: Transcript, row: dict[str, Any], **changes: Any) -> Row | None:
    told = {"sig": row["sig"], "chain": row["chain"], "accepted_at": row["envelope"]["ts"] * 1000, **changes}
    return copy.admit(row["canonical"].encode(), told["sig"], told["chain"], told["accepted_at"])


def opened(rows: int) -> Transcript:
    copy = Transcript(DEAL[0]["envelope"]["conv"], (WIRE,))
    for row in DEAL[:rows]:
        assert admit(copy, row) is not None
    return copy


@pytest.mark.requirement("client.verifies-events")
@pytest.mark.parametrize("name", [name for name in VALID if "rows" in VALID[name]])
def test_every_valid_conversation_is_taken_row_by_row(name: str) -> None:
    rows = VALID[name]["rows"]
    copy = Transcript(rows[0]["envelope"]["conv"], (WIRE,))
    for row in rows:
        taken = admit(copy, row)
        assert taken is not None
        assert (taken.chain, taken.sig) == (row["chain"], row["sig"])
    assert copy.next_n == len(rows)
    assert (copy.end is not None) == (rows[-1]["envelope"]["type"] == "END")


@pytest.mark.requirement("client.repeats")
def test_a_repeat_is_dropped_and_a_second_version_is_a_lie() -> None:
    copy = opened(4)
    assert admit(copy, DEAL[2]) is None
    assert copy.next_n == 4
    assert copy.holds(2, DEAL[2]["sig"])
    assert not copy.holds(9, DEAL[2]["sig"])
    with pytest.raises(WireFault, match="two different envelopes"):
        admit(copy, DEAL[2], sig=DEAL[3]["sig"])


def test_a_gap_is_no_lie_but_asks_for_reading() -> None:
    with pytest.raises(LookupError):
        admit(opened(2), DEAL[3])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sig": "00" * 64}, "signature does not verify"),
        ({"sig": DEAL[3]["sig"]}, "signature does not verify"),
        ({"chain": "00" * 32}, "the wire says chain"),
    ],
)
def test_a_changed_row_is_found_out(change: dict[str, Any], words: str) -> None:
    with pytest.raises(WireFault, match=words):
        admit(opened(2), DEAL[2], **change)


def test_one_changed_byte_of_a_body_is_found_out() -> None:
    text = DEAL[2]["canonical"].replace("5000000", "5000001")
    with pytest.raises(WireFault, match="signature does not verify"):
        opened(2).admit(text.encode(), DEAL[2]["sig"], None, None)


@pytest.mark.parametrize("text", [b"{}", b"no", b'{"a":1,"a":2}'])
def test_what_is_no_envelope_is_found_out(text: bytes) -> None:
    with pytest.raises(WireFault, match="breaks its rules"):
        opened(0).admit(text, "00" * 64, None, None)


def test_another_conversations_envelope_is_found_out() -> None:
    other = Transcript("ff" * 8, (WIRE,))
    with pytest.raises(WireFault, match="belongs to"):
        admit(other, DEAL[0])


def test_a_chain_that_the_wire_does_not_tell_is_computed() -> None:
    copy = opened(0)
    row = copy.admit(DEAL[0]["canonical"].encode(), DEAL[0]["sig"], None, None)
    assert row is not None
    assert row.chain == DEAL[0]["chain"]


def test_turns_alternate() -> None:
    assert opened(2).speaks_next() == DEAL[0]["envelope"]["from"]
    assert opened(3).speaks_next() == DEAL[0]["envelope"]["to"]


def end_by(key: SigningKey, prev: dict[str, Any], n: int) -> tuple[bytes, str]:
    """An END of the wire's kind after `prev`, signed by any key."""
    raw = build(
        conv=prev["envelope"]["conv"],
        n=n,
        type="END",
        sender=key.pk,
        to=prev["envelope"]["from"],
        ts=prev["envelope"]["ts"],
        prev_sig=prev["sig"],
        body={"reason": "idle"},
    )
    return raw, key.sign(raw)


@pytest.mark.parametrize("trusted", [True, False])
def test_an_end_by_the_wire_needs_a_key_that_is_known_as_the_wires(trusted: bool) -> None:
    wire = SigningKey.from_seed(KEYS["wire"]["seed"])
    copy = Transcript(DEAL[0]["envelope"]["conv"], (WIRE,) if trusted else ())  # its CALL names no wire
    for row in DEAL[:4]:
        admit(copy, row)
    raw, sig = end_by(wire, DEAL[3], 4)
    if trusted:
        assert copy.admit(raw, sig, None, None) is not None
        return
    with pytest.raises(WireFault, match="neither party nor this wire"):
        copy.admit(raw, sig, None, None)


def test_the_wire_that_the_call_names_may_end_it() -> None:
    rows = VALID["ended_by_the_wire"]["rows"]
    copy = Transcript(rows[0]["envelope"]["conv"], ())
    for row in rows:
        assert admit(copy, row) is not None


@pytest.mark.requirement("client.verifies-events")
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["name"])
def test_what_the_wire_must_refuse_is_not_taken_from_a_wire_either(case: dict[str, Any]) -> None:
    rows = case["so_far"]["rows"]
    copy = Transcript(rows[0]["envelope"]["conv"], (WIRE,))
    for row in rows:
        admit(copy, row)
    submit = case["submit"]
    with pytest.raises((WireFault, LookupError)):
        copy.admit(submit["envelope_json"].encode(), submit["sig"], None, None)
