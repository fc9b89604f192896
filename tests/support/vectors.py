"""The vectors as values, and ways of writing one value as many JSON texts."""

import json
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from broker.wire.ids import MAX_SAFE
from broker.wire.keys import SigningKey

VECTORS = Path(__file__).parent.parent / "vectors"
WIRE = VECTORS / "wire"

VALID: dict[str, Any] = json.loads((WIRE / "valid.json").read_text())
REFUSED: list[dict[str, Any]] = json.loads((WIRE / "refused.json").read_text())
KEYS = {
    name: SigningKey.from_seed(each["seed"])
    for name, each in json.loads((WIRE / "keys.json").read_text()).items()
}
SUITE = sorted((VECTORS / "jsontestsuite").glob("test_*/*.json"))

CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = st.text(CHARACTERS, max_size=12) | st.sampled_from(
    [
        "a",
        "é",
        "\ue000",
        "\uffff",
        "\U00010000",
        "\U0001f600",
        '"',
        "\\",
        "/",
        "\n",
        "\x00",
        "\x1f",
        "\x7f",
        "\u2028",
        ":1.5",
        ",7e3",
    ]
)
NUMBERS = (
    st.integers(-MAX_SAFE, MAX_SAFE)
    | st.floats(-MAX_SAFE, MAX_SAFE)
    | st.sampled_from(
        [0, -0.0, 1e-7, 1e-6, 0.0001, 9.5e-5, 2.0, 2.5, 1e15, 1e15 + 0.5, 5e-324, MAX_SAFE, -MAX_SAFE]
    )
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=5)


@st.composite
def spellings(draw: st.DrawFn, value: Any) -> str:
    """A JSON text of `value`: white space, order of names, escapes and forms of numbers as it pleases."""
    white = st.sampled_from(["", "", " ", "\n", "\t\r "])

    def word(text: str) -> str:
        return '"' + "".join(map(letter, text)) + '"'

    def letter(each: str) -> str:
        plain = json.dumps(each, ensure_ascii=False)[1:-1]
        if draw(st.integers(0, 9)):
            return plain
        escaped = json.dumps(each)[1:-1]
        if len(escaped) > 1 and escaped[1] == "u":
            return escaped.upper().replace("\\U", "\\u") if draw(st.booleans()) else escaped
        return f"\\u{ord(each):04x}"

    def numeral(each: int | float) -> str:
        if isinstance(each, int):
            return draw(st.sampled_from([str(each), f"{each}.0", f"{each}e0", f"{each}.00E+0"]))
        return draw(st.sampled_from([repr(each), f"{each:.17e}"]))

    def write(each: Any) -> str:
        gap = draw(white)
        if each is None or isinstance(each, bool):
            return gap + json.dumps(each)
        if isinstance(each, int | float):
            return gap + numeral(each)
        if isinstance(each, str):
            return gap + word(each)
        if isinstance(each, list):
            return f"{gap}[{','.join(map(write, each))}{draw(white)}]"
        names = draw(st.permutations(list(each)))
        pairs = [f"{draw(white)}{word(name)}{draw(white)}:{write(each[name])}" for name in names]
        return f"{gap}{{{','.join(pairs)}{draw(white)}}}"

    return write(value) + draw(white)


def envelope_rows(name: str) -> list[dict[str, Any]]:
    """The rows of a valid transcript: n, sig, envelope, canonical, chain."""
    found: list[dict[str, Any]] = VALID[name]["rows"]
    return found


def export_lines(name: str) -> list[bytes]:
    """The same as an export's lines, with accepted_at."""
    return [
        msgspec.json.encode(
            {
                "n": row["n"],
                "sig": row["sig"],
                "envelope": msgspec.Raw(row["canonical"].encode()),
                "chain": row["chain"],
                "accepted_at": row["envelope"]["ts"] * 1000 + 7,
            }
        )
        for row in envelope_rows(name)
    ]
