"""RFC 8785 out, strict JSON in: against the RFC's vectors, an independent package, and JSONTestSuite."""

import hashlib
import json
import math
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from broker.wire import canonical
from broker.wire.canonical import canonicalize, encode, members, number, parse, quick, read, scan, without
from broker.wire.ids import MAX_SAFE
from broker.wire.refusals import Refusal
from tests.support.vectors import NUMBERS, OBJECTS, SUITE, VALUES, VECTORS, spellings

JCS = VECTORS / "jcs" / "testdata"


def refused(data: bytes, **given: Any) -> Refusal:
    found = parse(data, **given)
    assert isinstance(found, Refusal), found
    return found


def es6_doubles(count: int) -> Iterator[float]:
    """The sequence of the RFC's number file, as its README describes it."""
    readme = (JCS / "README.md").read_text()
    listed = readme[readme.index("staticU64s") : readme.index("staticF64s")]
    for bits in re.findall(r"0x([0-9a-f]+)n", listed):
        yield struct.unpack(">d", bytes.fromhex(bits.zfill(16)))[0]
    for each in range(2000):
        yield struct.unpack(">d", (0x0010000000000000 + each).to_bytes(8, "big"))[0]
    block = bytes(32)
    while True:
        block = hashlib.sha256(block).digest()
        for value in struct.unpack("<4d", block):
            if value != 0 and math.isfinite(value):
                yield value


@pytest.mark.requirement("canonical.numbers-as-ecmascript")
@pytest.mark.parametrize(
    ("count", "digest"),
    [
        (1000, "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687"),
        (10000, "b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892"),
    ],
)
def test_doubles_print_as_in_the_number_file_of_the_rfc(count: int, digest: str) -> None:
    hashed = hashlib.sha256()
    for _, value in zip(range(count), es6_doubles(count), strict=False):
        bits = struct.pack(">d", value).hex().lstrip("0") or "0"
        hashed.update(f"{bits},{number(value)}\n".encode())
    assert hashed.hexdigest() == digest


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_does_not_print(value: float) -> None:
    with pytest.raises(ValueError, match="NaN"):
        number(value)
    with pytest.raises(ValueError, match="2"):
        encode(value)


@pytest.mark.requirement("canonical.jcs")
@pytest.mark.parametrize("name", ["arrays", "french", "structures", "unicode", "weird"])
def test_a_vector_of_the_rfc_comes_out_byte_for_byte(name: str) -> None:
    assert (
        canonicalize((JCS / "input" / f"{name}.json").read_bytes())
        == (JCS / "output" / f"{name}.json").read_bytes()
    )


@pytest.mark.requirement("canonical.jcs")
def test_the_vector_with_a_number_beyond_the_profile_is_refused_and_without_it_comes_out() -> None:
    given = (JCS / "input" / "values.json").read_bytes()
    assert refused(given).detail == {"path": "numbers[1]"}
    expected = (JCS / "output" / "values.json").read_bytes()
    assert canonicalize(given.replace(b"1E30", b"1E3")) == expected.replace(b"1e+30", b"1000")
    assert number(1e30) == "1e+30"


@pytest.mark.requirement("canonical.jcs")
@given(VALUES)
def test_a_value_is_encoded_as_an_independent_package_does_it(value: Any) -> None:
    assert encode(value) == rfc8785.dumps(value)


@given(NUMBERS)
def test_a_number_prints_as_an_independent_package_prints_it(value: float) -> None:
    assert encode(value) == rfc8785.dumps(value)


@pytest.mark.requirement("canonical.any-spelling", "canonical.fast-path-agrees")
@given(st.data(), VALUES)
def test_however_a_value_is_written_its_canonical_form_is_the_same(data: st.DataObject, value: Any) -> None:
    text = data.draw(spellings(value)).encode()
    expected = rfc8785.dumps(value)
    assert canonicalize(text) == expected
    assert canonicalize(expected) == expected
    for each in (text, expected, json.dumps(value, ensure_ascii=False, indent=1).encode()):
        fast = quick(each)
        assert fast is None or (fast[1] == expected and encode(fast[0]) == expected)


@pytest.mark.requirement("canonical.fast-path-agrees")
@given(st.data(), OBJECTS)
def test_what_is_left_without_a_member_has_the_canonical_form_of_an_object(
    data: st.DataObject, value: dict[str, Any]
) -> None:
    name = data.draw(st.sampled_from([*value, "none"]))
    left = {each: member for each, member in value.items() if each != name}
    for text in (data.draw(spellings(value)).encode(), rfc8785.dumps(value)):
        assert without(text, name) == rfc8785.dumps(left)
    assert without(b'{"a":1,"a":2}', name) == refused(b'{"a":1,"a":2}', code="bad_request")


@pytest.mark.requirement("canonical.fast-path-agrees")
@given(st.data(), VALUES)
def test_the_value_read_is_the_one_that_its_canonical_text_has(data: st.DataObject, value: Any) -> None:
    written = read(data.draw(spellings(value)).encode())
    again = read(rfc8785.dumps(value))
    assert repr(written) == repr(again) or sorted(repr(written)) == sorted(repr(again))
    assert written == again


@pytest.mark.requirement("canonical.fast-path-agrees")
@pytest.mark.parametrize(
    "text",
    [
        '{"a":1.0845}',
        '{"a":[0.1,123456789012345.5,-7.25]}',
        '{"ts":1782345678901234}',
        '{"é":"ü€"}',
        '{"a": 1,\n "b": [ ]}',
        "{}",
    ],
)
def test_ordinary_texts_take_the_fast_path(text: str) -> None:
    fast = quick(text.encode())
    assert fast is not None
    assert fast[1] == rfc8785.dumps(json.loads(text))


@pytest.mark.requirement("canonical.fast-path-agrees")
@pytest.mark.parametrize(
    "text",
    [
        '{"a":1.0}', '{"a":1e5}', '{"a":-0}', '{"a":-0.0}', '{"a":1e-7}', '{"a":1.50}',
        '{"a":9007199254740993}',
        '{"a":"\\u0061"}', '{"a":1,"a":2}', '{"a":1,"\\u0061":1}', '{"a":"\\/"}',
        '{"\ue000":1,"\U00010000":1}',
        "[" * 33 + "]" * 33, '{"a":1e400}', '{"a":"\\ud800"}', "[0.00001]", "[12345678901234567890]",
    ],
)  # fmt: skip
def test_texts_that_msgspec_prints_otherwise_than_the_rfc_leave_the_fast_path(text: str) -> None:
    assert quick(text.encode()) is None


@pytest.mark.requirement("canonical.utf16-order")
def test_names_are_sorted_by_utf16_code_units() -> None:
    assert encode({"\ue000": 1, "\U00010000": 2, "z": 3}) == '{"z":3,"\U00010000":2,"\ue000":1}'.encode()
    assert canonicalize('{"\ue000":1,"\U00010000":2}'.encode()) == '{"\U00010000":2,"\ue000":1}'.encode()


@pytest.mark.requirement("canonical.integers-in-any-form")
@pytest.mark.parametrize("form", ["2", "2.0", "2e0", "20E-1", "0.2e+1", "2.000"])
def test_an_integer_in_any_form_prints_and_reads_as_the_integer(form: str) -> None:
    assert parse(form.encode()) == (2, b"2")
    assert type(read(form.encode())) is int


@pytest.mark.requirement("canonical.beyond-2-53", "canonical.path")
@pytest.mark.parametrize(
    "form",
    [
        "9007199254740992", "-9007199254740992", "9007199254740993", "1e16", "9007199254740991.5",
        "1e400", "-1e400",
        "9" * 5000, "1" + "0" * 400, "123456789012345678901234567890", "1E+300", "9007199254740992.0",
    ],
)  # fmt: skip
def test_a_number_beyond_2_to_the_53_is_refused_however_it_is_written(form: str) -> None:
    refusal = refused(b'{"body":{"qty":%b}}' % form.encode())
    assert (refusal.code, refusal.detail["path"]) == ("bad_envelope", "body.qty")


@pytest.mark.requirement("canonical.fast-path-agrees")
@pytest.mark.parametrize("digits", ["9007199254740991", "9" * 16, "0" * 20, "1" * 5000])
def test_digits_in_a_string_are_no_number(digits: str) -> None:
    text = rfc8785.dumps({"a": f":{digits}", "b": f"[-{digits}", "c": [digits]})
    assert canonicalize(text) == text


@pytest.mark.requirement("canonical.judged-on-the-double")
@pytest.mark.parametrize(
    ("form", "printed"),
    [
        ("9007199254740991", "9007199254740991"),
        ("-9007199254740991", "-9007199254740991"),
        ("9007199254740991.4", "9007199254740991"),
        ("1e-400", "0"),
        ("-1e-400", "0"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("0e99", "0"),
        ("0." + "1" * 6000, "0.1111111111111111"),
        ("1e-7", "1e-7"),
        ("0.000001", "0.000001"),
        ("100e-1", "10"),
    ],
)
def test_a_number_within_is_taken_as_its_double(form: str, printed: str) -> None:
    assert canonicalize(form.encode()) == printed.encode()


@pytest.mark.requirement("canonical.duplicates", "canonical.path")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a":1,"a":1}', "a"),
        ('{"body":{"qty":1,"qty":2}}', "body.qty"),
        ('{"body":{"legs":[{},{"x":0},{"px":1,"px":1}]}}', "body.legs[2].px"),
        ('{"a":1,"\\u0061":2}', "a"),
        ('{"\\u0061":1,"a":2}', "a"),
        ('{"":1,"":2}', ""),
        ('[[0],[1,{"k":{"z":1, "z" :1}}]]', "[1][1].k.z"),
        ('{"a":{"b":1},"c":{"b":1},"a":3}', "a"),
        ('{"é":1,"\\u00e9":1}', "é"),
    ],
)
def test_a_name_used_twice_is_refused_at_any_depth_and_by_any_spelling(text: str, path: str) -> None:
    refusal = refused(text.encode())
    assert (refusal.code, refusal.detail) == ("bad_envelope", {"path": path})


@pytest.mark.requirement("canonical.duplicates")
@given(st.data(), OBJECTS.filter(bool))
def test_a_member_written_twice_never_passes(data: st.DataObject, value: dict[str, Any]) -> None:
    text = data.draw(spellings(value)).strip()
    name = data.draw(st.sampled_from(sorted(value)))
    second = f"{data.draw(spellings(name)).strip()}:{data.draw(spellings(value[name]))}"
    refusal = refused((text[:-1] + "," + second + "}").encode())
    assert refusal.code == "bad_envelope"
    assert isinstance(members((text[:-1] + "," + second + "}").encode()), Refusal)


@pytest.mark.requirement("canonical.lone-surrogates", "canonical.path")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a":"\\ud800"}', "a"),
        ('{"a":["x","\\udc00"]}', "a[1]"),
        ('{"a":"\\ud800\\u0061"}', "a"),
        ('{"a":"\\udc00\\ud800"}', "a"),
        ('{"b":{"\\ud800":1}}', "b.?"),
    ],
)
def test_a_lone_surrogate_is_refused(text: str, path: str) -> None:
    refusal = refused(text.encode())
    assert (refusal.code, refusal.detail) == ("bad_envelope", {"path": path})


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert canonicalize(b'"\\ud83d\\ude00"') == '"\U0001f600"'.encode()
    assert canonicalize(b'"\\\\ud800"') == b'"\\\\ud800"'


@pytest.mark.requirement("canonical.depth", "canonical.path")
def test_nesting_of_32_is_taken_and_of_33_refused() -> None:
    assert canonicalize(b"[" * 32 + b"]" * 32) == b"[" * 32 + b"]" * 32
    assert refused(b"[" * 33 + b"]" * 33).detail == {"path": "[0]" * 32}
    inside = b'{"a":' * 32 + b'"[[[{{{"' + b"}" * 32
    assert canonicalize(inside) == inside
    assert refused(b'{"a":' * 32 + b"{}" + b"}" * 32).detail == {"path": ".".join(["a"] * 32)}
    side_by_side = b"[" + b",".join([b"[{}]"] * 40) + b"]"
    assert canonicalize(side_by_side) == side_by_side


@pytest.mark.requirement("canonical.not-json")
@pytest.mark.parametrize(
    "data",
    [
        b"", b" ", b"{", b"nul", b"NaN", b"[Infinity]", b'{"a":-Infinity}', b"\xef\xbb\xbf{}", b"\xff",
        b'"\xed\xa0\x80"',
        b'"\xc0\xaf"', b'"\xf4\x90\x80\x80"', b"{}{}", b"{} x", b"[1,]", b'{"a":1,}', b"{'a':1}",
        b'"\n"', b'"\x00"',
        b'"\\x"', b'"\\u12g4"', b"01", b"1.", b".5", b"+1", b"1e", b"0x10", b"[1 2]", b'{"a" 1}',
        b"{1:1}", b"]", b"/**/1",
        b'{"a":1}\x00', b"\x0b1", b"\xc2\xa01", b"-", b"tru", b"[" * 40, b"[" * 40 + b"}" * 40, "１".encode(),
        b"{}".decode().encode("utf-16"), b'{"a":[1,2}', b'{"a":1]', b'"abc', b'[[],[],[1e999',
    ],
)  # fmt: skip
def test_what_is_not_json_is_a_bad_request_without_a_path(data: bytes) -> None:
    for refusal in (
        refused(data),
        refused(data, code="bad_statement", at="statement"),
        scan(data),
        members(data),
    ):
        assert isinstance(refusal, Refusal)
        assert (refusal.code, refusal.detail) == ("bad_request", {})


@pytest.mark.requirement("canonical.not-json", "canonical.judged-to-the-end")
@pytest.mark.parametrize("start", [b'{"a":1,"a":2', b"[1e400", b'["\\ud800"', b"[" * 40 + b"]" * 39])
def test_a_text_that_is_not_json_is_not_called_forbidden(start: bytes) -> None:
    assert refused(start).code == "bad_request"
    assert refused(start + b"}]").code in ("bad_request", "bad_envelope")
    assert refused(start + b"!").code == "bad_request"


@pytest.mark.requirement("canonical.not-json", "canonical.jsontestsuite")
@pytest.mark.parametrize("path", SUITE, ids=lambda path: path.stem)
def test_a_file_of_jsontestsuite_is_judged_as_its_name_says(path: Path) -> None:
    data = path.read_bytes()
    found = parse(data)
    if path.name.startswith("n_"):
        assert isinstance(found, Refusal)
        assert (found.code, found.detail) == ("bad_request", {})
        assert isinstance(members(data), Refusal)
    elif isinstance(found, Refusal):
        assert found.code in (
            ("bad_envelope",) if path.name.startswith("y_") else ("bad_envelope", "bad_request")
        )
    else:
        value, text = found
        # Some of these mix NFC and NFD, some have nothing but a scalar: all must come out as the RFC prints them.
        assert text == rfc8785.dumps(value)
        assert text == rfc8785.dumps(json.loads(data))


@pytest.mark.requirement("canonical.code-of-the-place")
def test_the_same_fault_has_the_code_and_the_path_of_its_place() -> None:
    twice = b'{"ts":1,"ts":2}'
    assert refused(twice).code == "bad_envelope"
    assert refused(twice, code="bad_statement").code == "bad_statement"
    inside = scan(twice, at="limit")
    assert inside is not None
    assert (inside.code, inside.detail) == ("bad_request", {"path": "limit.ts"})
    assert refused(b"[1e99]", at="body.legs").detail == {"path": "body.legs[0]"}
    assert refused(b"1e99", at="ts").detail == {"path": "ts"}
    assert scan(b'{"a":[1]}') is None


@pytest.mark.parametrize(
    "value",
    [
        MAX_SAFE + 1, -MAX_SAFE - 1, 1e16, float("nan"), "\ud800", {"\ud800": 1}, {1: 2}, {None: 1},
        b"bytes", {1, 2}, object(),
        [[[[0]]] * 2, 10**5000], 1j,
    ],
)  # fmt: skip
def test_a_value_outside_the_profile_is_not_encoded(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode({"a": [value]})


def test_a_value_nested_too_deep_or_within_itself_is_not_encoded() -> None:
    assert encode(json.loads("[" * 32 + "]" * 32)) == b"[" * 32 + b"]" * 32
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ValueError, match="deeper"):
        encode(value)


@pytest.mark.requirement("canonical.members")
@given(st.data(), OBJECTS)
def test_members_are_the_texts_of_an_objects_values(data: st.DataObject, value: dict[str, Any]) -> None:
    text = data.draw(spellings(value) | st.just(json.dumps(value)) | st.just(rfc8785.dumps(value).decode()))
    found = members(text.encode())
    assert not isinstance(found, Refusal)
    assert {name: read(bytes(raw)) for name, raw in found.items()} == read(text.encode())


@pytest.mark.requirement("canonical.members", "canonical.not-json")
@pytest.mark.parametrize("value", [b'"\xff"', b'"\xed\xa0\x80"', b'["\xc0\xaf"]'])
def test_members_of_a_text_that_is_not_utf8_are_none(value: bytes) -> None:
    found = members(b'{"a":' + value + b"}")
    assert isinstance(found, Refusal)
    assert (found.code, found.detail) == ("bad_request", {})


@pytest.mark.requirement("canonical.members")
@pytest.mark.parametrize("text", ["[]", "1", '"a"', "null", " [1] "])
def test_a_text_that_is_no_object_has_no_members_and_that_is_no_fault_of_grammar(text: str) -> None:
    found = members(text.encode())
    assert isinstance(found, Refusal)
    assert (found.code, found.detail) == ("bad_request", {"path": ""})


@pytest.mark.requirement("canonical.members")
@pytest.mark.parametrize(
    "text", ['{"a":1,"a":1}', '{"a":1,"\\u0061":1}', '{"a":1, "bcdefg":2,"a":3}', '{"é": 1, "é": 2}']
)
def test_members_of_one_name_are_refused(text: str) -> None:
    found = members(text.encode(), code="bad_statement")
    assert isinstance(found, Refusal)
    assert (found.code, found.detail) == ("bad_statement", {"path": "é" if "é" in text else "a"})


@pytest.mark.requirement("canonical.members")
@pytest.mark.parametrize(
    "value",
    [
        b'{"q":1,"q":2}',
        b'"\\ud800"',
        b"1e400",
        b"[" * 3000 + b"]" * 3000,
        b'"\xc3\xa9"',
        b"[ 1 , 2 ]",
        b'{"\\ud800":1}',
    ],
)
def test_what_is_forbidden_inside_a_member_is_left_to_whoever_reads_the_member(value: bytes) -> None:
    for text in (b'{"conv":"x","envelope":%b}' % value, b' {"conv" : "x",\n"envelope": %b } ' % value):
        found = members(text)
        assert not isinstance(found, Refusal)
        assert bytes(found["conv"]) == b'"x"'
        assert bytes(found["envelope"]) == value


@pytest.mark.requirement("canonical.hostile-bytes")
@given(
    st.binary(max_size=60) | st.text(st.sampled_from('{}[]",:\\u0d8e+-.19 na\n'), max_size=40).map(str.encode)
)
def test_any_bytes_give_a_value_or_a_refusal(data: bytes) -> None:
    found = parse(data)
    if isinstance(found, Refusal):
        assert found.code in ("bad_request", "bad_envelope")
    else:
        assert canonicalize(found[1]) == found[1]
        assert found[1] == rfc8785.dumps(json.loads(data))
    split = members(data)
    if not isinstance(split, Refusal):
        assert set(split) == set(json.loads(data))


@pytest.mark.requirement("canonical.hostile-bytes")
@given(st.data(), VALUES)
def test_a_text_with_bytes_changed_gives_a_value_or_a_refusal(data: st.DataObject, value: Any) -> None:
    text = bytearray(data.draw(spellings(value)).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    found = parse(bytes(text))
    if not isinstance(found, Refusal):
        assert found[1] == rfc8785.dumps(json.loads(bytes(text)))


@pytest.mark.requirement("canonical.hostile-depth")
@pytest.mark.timeout(5)
@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000, b"[" * 50_000 + b"]" * 50_000, b'{"":' * 20_000, b'[{"":' * 20_000,
        b'"' + b'\\"' * 50_000,
        b"[]" * 40 + b'"' + b'\\"' * 50_000, b"[" + b"[]," * 30 + b'"' * 60_000, b" " * 100_000,
        b"[ " * 50_000,
        b"9" * 100_000, b"[" + b"1," * 30_000 + b"1e400]", b"0." + b"1" * 100_000, b"1e" + b"9" * 100_000,
        b"[" + b'"\\ud83d\\ude00",' * 5000 + b'"\\ud83d"]', b"-" * 100_000, b"{" * 100_000,
        b'{"a":' + b"9" * 5000 + b"}",
    ],
    ids=range(17),
)  # fmt: skip
def test_a_hostile_text_costs_what_its_bytes_cost(data: bytes) -> None:
    assert isinstance(parse(data), Refusal) or data[:2] == b"0."
    members(data)


def test_the_slow_judge_and_the_strict_reader_agree_or_the_text_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(canonical, "examine", lambda text, most: None)
    assert refused(b"[1e400]", at="x").detail == {"path": "x"}
