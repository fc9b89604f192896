"""Inputs: texts by a grammar, texts that are made to hurt, and what mutation makes of good ones."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.harness import LARGEST
from tests.support.vectors import REFUSED, SUITE, VALID, VALUES, VECTORS, spellings

TOKENS = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"null", b"true", b"-0", b"1e999", b"1E-400", b"9007199254740992",
    b"9007199254740993.0", b"0.1", b"-", b".5", b"01", b"NaN", b"\\ud800", b"\\udc00", b"\\u0000", b"\\u00e9", b"\xff",
    b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\x00", b"\n", b" ", b"\r\n", b'"":', b'"a":1,', b"1" * 20,
]  # fmt: skip

BITS = [
    b"[", b"{", b'{"a":', b'{"":', b'[{"a":', b'"', b"\\", b'"\\', b"\\u0041", b"\\ud800", b"\\ud83d\\ude00",
    b'\\"', b"1", b"0", b"9", b"-", b"1,", b"-0,", b"1e5,", b"1.5e-300,", b"2.2250738585072011e-308,",
    b"12345678901234567,", b'"",', b"[],", b"{},", b'"a":1,', b'"\\u0061":1,', b" ", b"\n", b"\t ", b"a",
    b"\xc3\xa9", b"\xff", b"[[],", b"[" * 33 + b"]" * 33 + b",", b"]", b"}", b",", b";q=0,", b"%", b"%41",
    b"a.", b"=", b"/../", b"1.", b"\x81\x80\0\0\0\0", b"\x80\x80\0\0\0\0", b"\x89\x80\0\0\0\0",
    b"\x01\x80\0\0\0\0", b"\x81\x82\0\0\0\0{}", b"a:b\r\n", b"0\r\n\r\n", b"1\r\nx\r\n",
]  # fmt: skip
"""What hurts when it stands there many times."""


def json_texts() -> st.SearchStrategy[bytes]:
    """Any value, spelled in any way."""
    return VALUES.flatmap(spellings).map(str.encode)


@st.composite
def giants(draw: st.DrawFn, around: Sequence[bytes] = (b"",)) -> bytes:
    """A bit many times, closed or not, up to LARGEST bytes, put somewhere into a good text."""
    bit = draw(st.sampled_from(BITS))
    most = draw(st.sampled_from([LARGEST, LARGEST // 2, 8192, 40 * len(bit)]))
    body = bit * (most // len(bit))
    if draw(st.booleans()):
        close = bytes(reversed(body[: most // 2].translate(bytes.maketrans(b"[{", b"]}"))))
        body = draw(st.sampled_from([b"[" + body + b"1]", body[: most // 2] + b"1" + close, body + b'1"}]']))
    good = draw(st.sampled_from(list(around)))
    at = draw(st.integers(0, len(good)))
    return (good[:at] + body + good[at:])[:LARGEST]


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


JSON_SEEDS = [path.read_bytes()[:LARGEST] for path in SUITE] + [
    path.read_bytes() for path in sorted((VECTORS / "jcs" / "testdata" / "input").glob("*.json"))
]
ENVELOPES = [row["canonical"].encode() for each in VALID.values() for row in each["rows"]]
REFUSED_TEXTS = [each["submit"]["envelope_json"].encode("utf-8", "surrogatepass") for each in REFUSED]
