"""Envelopes signed ahead are what the wire's own builder makes of them."""

import json
from types import SimpleNamespace
from typing import Any

from websockets.utils import apply_mask

from bench.kit.parties import BODY, Line, codes
from bench.kit.websocket import MASK, measure
from broker.wire.chain import verify_transcript
from broker.wire.envelope import build
from broker.wire.keys import SigningKey


def dealer(code: str) -> Any:
    key = SigningKey.generate()
    return SimpleNamespace(
        key=key, code=code, wire="0" * 64, secret=bytes.fromhex(key.seed) + bytes.fromhex(key.pk)
    )


def unmasked(frame: bytes) -> dict[str, Any]:
    at = measure(frame[:1] + bytes([frame[1] & 0x7F]) + frame[2:], 0)[0]
    assert frame[at : at + 4] == MASK
    message: dict[str, Any] = json.loads(apply_mask(frame[at + 4 :], MASK))
    return message


def test_a_chain_signed_ahead_is_a_good_transcript_and_canonical() -> None:
    line = Line(3, dealer("ALFA"), dealer("BRAV"))
    line.sign(4)
    asked = [unmasked(frame) for frame in line.frames]
    assert [each["method"] for each in asked] == ["send_call", "send_env", "send_env", "send_env"]
    assert [each["id"] for each in asked] == [3 << 24 | n for n in range(4)]
    rows = [
        {
            "n": n,
            "sig": each["params"]["sig"],
            "envelope": each["params"]["envelope"],
            "chain": line.chains[n].decode(),
        }
        for n, each in enumerate(asked)
    ]
    verdict = verify_transcript(rows)
    assert (verdict.ok, verdict.rows, verdict.broken) == (True, 4, None)
    last = dict(rows[3]["envelope"])
    assert last["body"] == json.loads(BODY)
    last["sender"] = last.pop("from")
    text = build(**last)
    assert text in apply_mask(line.frames[3][8:], MASK)
    assert 560 < len(text) < 660


def test_what_was_not_sent_is_signed_again() -> None:
    line = Line(0, dealer("ALFA"), dealer("BRAV"))
    line.sign(4, ts=1)
    kept = line.chains[:2]
    line.rewind(2)
    line.sign(1, ts=2)
    assert line.frames[:2] == [b"", b""]
    assert line.chains[:2] == kept
    assert unmasked(line.frames[2])["params"]["envelope"]["ts"] == 2
    assert len(line.frames) == len(line.chains) == 3


def test_codes_are_four_letters_and_none_is_reserved() -> None:
    found = list(codes())
    assert found[0] == "BAAA"
    assert len(set(found)) == len(found) > 400_000
    assert "HELP" not in found
