"""The envelope's shape, in every spelling, and the refusals of step 2 of the order of checks."""

import hashlib
import json
from typing import Any

import msgspec
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from broker.wire.envelope import (
    MAX_BODY,
    Envelope,
    answers_late,
    bootstrap,
    build,
    call_codes,
    read_envelope,
)
from broker.wire.ids import MAX_SAFE
from broker.wire.refusals import Refusal
from tests.support.vectors import KEYS, OBJECTS, REFUSED, VALID, envelope_rows, spellings

ALPHA, BRAVO = KEYS["alpha"].pk, KEYS["bravo"].pk
CONV = "a1b2c3d4e5f6a7b8"
STEP_TWO = [
    case
    for case in REFUSED
    if case["fault"] == "the JSON text"
    or case["name"] == "body of 8193 bytes"
    or (
        case["fault"] == "a member of the envelope"
        and not case["name"].startswith(("n = 1", "PICKUP", "CALL"))
    )
]


def value(**changed: Any) -> dict[str, Any]:
    """An envelope as an object, n = 2; a member given as `...` is left out."""
    members: dict[str, Any] = {
        "conv": CONV, "n": 2, "type": "RFQ", "from": ALPHA, "to": BRAVO, "ts": 1782345682,
        "prev_sig": "ab" * 64,
        "body": {"instrument": "EURUSD", "qty": "5000000"},
    }  # fmt: skip
    for name, each in changed.items():
        members[name.rstrip("_")] = each
    return {name: each for name, each in members.items() if each is not ...}


def taken(text: bytes | str | dict[str, Any]) -> Envelope:
    found = read(text)
    assert isinstance(found, Envelope), found
    return found


def refused(text: bytes | str | dict[str, Any]) -> Refusal:
    found = read(text)
    assert isinstance(found, Refusal), found
    return found


def read(text: bytes | str | dict[str, Any]) -> Envelope | Refusal:
    if isinstance(text, dict):
        text = json.dumps(text)
    return read_envelope(text.encode() if isinstance(text, str) else text)


@pytest.mark.requirement("envelope.canonical-text")
@pytest.mark.parametrize("name", VALID)
def test_the_canonical_text_of_a_valid_envelope_is_that_of_the_vectors(name: str) -> None:
    for row in envelope_rows(name):
        envelope = taken(row["envelope"])
        assert envelope.canonical == row["canonical"].encode()
        assert taken(envelope.canonical) == envelope
        assert envelope.digest == hashlib.sha256(row["canonical"].encode()).digest()
        assert (envelope.n, envelope.type, envelope.sender) == (
            row["n"],
            row["envelope"]["type"],
            row["envelope"]["from"],
        )


@pytest.mark.requirement("envelope.shape", "order.2-shape")
@pytest.mark.parametrize("case", STEP_TWO, ids=[case["name"] for case in STEP_TWO])
def test_a_refused_vector_is_refused_by_its_shape_alone(case: dict[str, Any]) -> None:
    refusal = refused(case["submit"]["envelope_json"])
    assert refusal.code == case["expect"]
    assert ("path" in refusal.detail) == (refusal.code == "bad_envelope")


def test_enough_vectors_concern_the_shape() -> None:
    assert len(STEP_TWO) == 33


@pytest.mark.parametrize(
    "case", [case for case in REFUSED if case not in STEP_TWO], ids=lambda case: case["name"]
)
def test_a_vector_whose_fault_lies_elsewhere_has_a_good_shape(case: dict[str, Any]) -> None:
    taken(case["submit"]["envelope_json"])


@pytest.mark.requirement("envelope.canonical-text")
@given(st.data(), OBJECTS)
def test_every_spelling_of_an_envelope_reads_alike(data: st.DataObject, body: dict[str, Any]) -> None:
    members = value(body=body)
    expected = rfc8785.dumps(members)
    envelope = taken(expected)
    assert envelope.canonical == expected
    assert taken(data.draw(spellings(members))) == envelope
    assert taken(members) == envelope
    assert taken(msgspec.json.encode(members)) == envelope


@pytest.mark.requirement("envelope.integers")
@pytest.mark.parametrize("form", ["2", "2.0", "2e0", "20e-1", "0.2E1"])
@pytest.mark.parametrize("name", ["n", "ts"])
def test_n_and_ts_may_be_written_in_any_form_of_an_integer(name: str, form: str) -> None:
    text = json.dumps(value(**{name: 2})).replace(f'"{name}": 2', f'"{name}": {form}')
    envelope = taken(text)
    found = envelope.n if name == "n" else envelope.ts
    assert (found, type(found)) == (2, int)
    assert b'"%b":2,' % name.encode() in envelope.canonical


@pytest.mark.requirement("envelope.integers", "refusals.path")
@pytest.mark.parametrize("form", ["2.5", '"2"', "true", "null", "-1", "-0.5", "[2]", "{}", "1e-3"])
@pytest.mark.parametrize("name", ["n", "ts"])
def test_n_and_ts_are_nothing_but_integers_from_0(name: str, form: str) -> None:
    refusal = refused(json.dumps(value(**{name: 2})).replace(f'"{name}": 2', f'"{name}": {form}'))
    assert (refusal.code, refusal.detail) == ("bad_envelope", {"path": name})


def test_the_largest_n_and_ts_are_those_that_json_can_carry() -> None:
    for name in ("n", "ts"):
        assert MAX_SAFE in (taken(value(**{name: MAX_SAFE})).n, taken(value(**{name: MAX_SAFE})).ts)
        canonical = rfc8785.dumps(value(**{name: 1234567})).replace(b"1234567", b"9007199254740992")
        assert refused(canonical).detail == {"path": name}
        assert refused(canonical.replace(b"9007199254740992", b"01")).code == "bad_request"


@pytest.mark.requirement("envelope.eight-members", "refusals.path")
@pytest.mark.parametrize("name", ["conv", "n", "type", "from", "to", "ts", "prev_sig", "body"])
def test_each_of_the_eight_members_must_be_there(name: str) -> None:
    refusal = refused(value(**{name: ...}))
    assert (refusal.code, refusal.detail) == ("bad_envelope", {"path": name})


@pytest.mark.requirement("envelope.eight-members", "refusals.path")
@pytest.mark.parametrize("name", ["x", "From", "sig", "", "n ", "\x1b", "q" * 900])
def test_no_other_member_may_be_there(name: str) -> None:
    for text in (
        value(**{name + "_": 1}) if name else {**value(), "": 1},
        rfc8785.dumps({**value(), name: 1}),
    ):
        refusal = refused(text)
        assert refusal.code == "bad_envelope"
        assert refusal.detail["path"] == name.replace("\x1b", "?")[:200]


@pytest.mark.requirement("envelope.forms", "refusals.path")
@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("conv", "A1B2C3D4E5F6A7B8"), ("conv", CONV[:-1]), ("conv", CONV + "0"),
        ("conv", CONV[:-1] + "g"), ("conv", 1),
        ("conv", CONV[:-1] + "\n"), ("conv", CONV + "\n"), ("type", ""), ("type", "rfq"), ("type",
        "1RFQ"), ("type", "_RFQ"),
        ("type", "R" * 33), ("type", "R-Q"), ("type", "É"), ("type", "RFQ\n"), ("type", None),
        ("from", ALPHA[:-1]),
        ("from", ALPHA.upper()), ("from", "g" * 64), ("from", None), ("to", BRAVO + "0"), ("to", {}),
        ("to", ""),
        ("prev_sig", "ab" * 63), ("prev_sig", "AB" * 64), ("prev_sig", ""), ("prev_sig", "ab" * 32),
        ("prev_sig", 0),
        ("prev_sig", "ab" * 48), ("body", []), ("body", None), ("body", "{}"), ("body", 1), ("body", True),
    ],
)  # fmt: skip
def test_a_member_of_another_form_is_refused_by_its_path(name: str, bad: Any) -> None:
    for text in (value(**{name: bad}), rfc8785.dumps(value(**{name: bad}))):
        refusal = refused(text)
        assert (refusal.code, refusal.detail) == ("bad_envelope", {"path": name})


@pytest.mark.requirement("envelope.forms")
@pytest.mark.parametrize("name", ["R", "A" + "Z" * 31, "HIT_2", "CALL", "PICKUP", "END"])
def test_a_type_is_a_capital_letter_and_up_to_31_more(name: str) -> None:
    assert taken(value(type=name)).type == name


@pytest.mark.requirement("envelope.prev-sig-form")
def test_prev_sig_has_64_characters_at_n_0_and_128_after() -> None:
    assert (
        taken(value(n=0, prev_sig=bootstrap(CONV))).prev_sig
        == hashlib.sha256(b"cdp:" + CONV.encode()).hexdigest()
    )
    for changed in ({"n": 0, "prev_sig": "ab" * 64}, {"n": 1, "prev_sig": bootstrap(CONV)}):
        assert refused(value(**changed)).detail == {"path": "prev_sig"}
        assert refused(rfc8785.dumps(value(**changed))).detail == {"path": "prev_sig"}


@pytest.mark.requirement("envelope.body-limit", "order.2-shape")
def test_a_body_of_8192_canonical_bytes_is_taken_and_of_8193_refused_however_it_is_written() -> None:
    most = {"text": "x" * (MAX_BODY - len('{"text":""}'))}
    beyond = {"text": most["text"] + "x"}
    assert len(rfc8785.dumps(most)) == MAX_BODY
    for spell in (rfc8785.dumps, msgspec.json.encode, lambda each: json.dumps(each, indent=9).encode()):
        taken(spell(value(body=most)))
        refusal = refused(spell(value(body=beyond)))
        assert (refusal.code, refusal.detail) == ("too_large", {"limit": 8192, "size": 8193})
    escaped = json.dumps(value(body=most)).replace("x" * 100, "\\u0078" * 100)
    assert taken(escaped).body == most
    assert refused(rfc8785.dumps(value(body={"a": "é" * 4093}))).code == "too_large"
    assert len(rfc8785.dumps(taken(value(body={"a": "é" * 4092})).body)) == 8192
    assert refused(value(body=beyond, n=-1)).detail == {"path": "n"}


@pytest.mark.requirement("envelope.canonical-text")
@pytest.mark.parametrize(
    "body", ['{"b":1,"a":2}', '{"a":1, "b":2}', '{"a":2.50}', '{"\\u0061":1}', '{"a":1e2}', "{ }"]
)
def test_a_text_that_is_canonical_but_for_its_body_is_not_taken_as_it_stands(body: str) -> None:
    text = rfc8785.dumps(value(body={})).decode().replace('"body":{}', f'"body":{body}')
    assert taken(text).canonical == rfc8785.dumps(value(body=json.loads(body)))
    assert taken(text).body == json.loads(body)


@pytest.mark.requirement("envelope.body-limit")
def test_a_body_that_imitates_an_envelope_is_measured_whole() -> None:
    body = {"a": {"a": 1, "conv": CONV}, "b": "x" * MAX_BODY}
    for text in (value(body=body), rfc8785.dumps(value(body=body))):
        assert refused(text).detail == {"limit": MAX_BODY, "size": len(rfc8785.dumps(body))}


@pytest.mark.requirement("envelope.from-not-to", "order.2-shape")
def test_from_and_to_are_never_equal_and_that_is_looked_at_last() -> None:
    for text in (value(to=ALPHA), rfc8785.dumps(value(to=ALPHA))):
        refusal = refused(text)
        assert (refusal.code, refusal.detail) == ("bad_envelope", {"path": "to"})
    assert refused(value(to=ALPHA, body={"x": "y" * 9000})).code == "too_large"


@pytest.mark.requirement("canonical.depth")
def test_the_envelope_counts_as_the_first_of_32_levels() -> None:
    def nested(levels: int) -> bytes:
        inside = b'{"q":' * (levels - 2) + b"{}" + b"}" * (levels - 2)
        return rfc8785.dumps(value(body={})).replace(b'"body":{}', b'"body":' + inside)

    assert taken(nested(32)).canonical == nested(32)
    for text in (nested(33), b" " + nested(33), nested(200), nested(9000)):
        refusal = refused(text)
        assert refusal.code == "bad_envelope"
        assert refusal.detail["path"].startswith("body.q.q")


@pytest.mark.requirement("canonical.duplicates", "refusals.path")
@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ('"body":{', '"body":{"q":1,"q":2,', "body.q"),
        ('"body":{', '"body":{},"body":{', "body"),
        ('"n":2', '"n":2,"n":2', "n"),
        ('"type":"RFQ"', '"type":"RFQ","type":"RFQ"', "type"),
        ('"conv":', '"conv":"a1b2c3d4e5f6a7b8","conv":', "conv"),
        ('"qty":"5000000"', '"qty":9007199254740993', "body.qty"),
        ('"qty":"5000000"', '"qty":[1,{"a":1e16}]', "body.qty[1].a"),
        ('"qty":"5000000"', '"qty":"\\ud800"', "body.qty"),
    ],
)
def test_what_the_canonical_rules_forbid_is_named_inside_an_envelope(old: str, new: str, path: str) -> None:
    text = rfc8785.dumps(value()).decode()
    assert old in text
    refusal = refused(text.replace(old, new))
    assert (refusal.code, refusal.detail) == ("bad_envelope", {"path": path})


@pytest.mark.parametrize("text", ["NaN", "", "{", "[]x", '{"body":{"a":NaN}}'])
@pytest.mark.requirement("canonical.not-json")
def test_what_is_not_json_is_a_bad_request(text: str) -> None:
    assert (refused(text).code, refused(text).detail) == ("bad_request", {})


@pytest.mark.parametrize("text", ["[]", "1", "null", '"{}"', "[{}]"])
def test_a_text_that_is_no_object_is_no_envelope(text: str) -> None:
    assert (refused(text).code, refused(text).detail) == ("bad_envelope", {"path": ""})


def test_a_body_that_imitates_the_rest_of_an_envelope_is_only_a_body() -> None:
    tail = rfc8785.dumps(value()).decode().partition('"5000000"}')[2]
    for body in (
        {"note": tail, "qty": 1},
        {"conv": CONV, "from": BRAVO},
        {"a": {"b": {"conv": CONV}}},
        {"a": f'"}}{tail}'},
    ):
        envelope = taken(rfc8785.dumps(value(body=body)))
        assert envelope.body == body
        assert envelope == taken(value(body=body))
        assert (envelope.sender, envelope.conv) == (ALPHA, CONV)
    assert refused('{"body":{"a":1}' + tail + tail[1:]).code == "bad_request"


@pytest.mark.requirement("envelope.hostile-bytes")
@given(st.data(), st.binary(max_size=3))
def test_an_envelope_with_bytes_changed_is_another_one_or_refused(data: st.DataObject, change: bytes) -> None:
    text = rfc8785.dumps(value())
    at = data.draw(st.integers(0, len(text)))
    text = text[:at] + change + text[at + data.draw(st.integers(0, 3)) :]
    found = read(text)
    if isinstance(found, Envelope):
        assert found.canonical == rfc8785.dumps(json.loads(text))
        assert read(found.canonical) == found
    else:
        assert found.code in ("bad_request", "bad_envelope")


@given(st.binary(max_size=200))
@pytest.mark.requirement("envelope.hostile-bytes")
def test_any_bytes_are_an_envelope_or_refused(data: bytes) -> None:
    assert isinstance(read(data), Refusal)


@given(OBJECTS, st.sampled_from(["CALL", "QUOTE"]))
def test_a_built_envelope_is_canonical_and_reads_back(body: dict[str, Any], kind: str) -> None:
    text = build(
        conv=CONV, n=0, type=kind, sender=ALPHA, to=BRAVO, ts=1782345678, prev_sig=bootstrap(CONV), body=body
    )
    assert taken(text).canonical == text
    assert taken(text).body == json.loads(text)["body"]


@pytest.mark.parametrize(
    "bad",
    [
        {"to": ALPHA},
        {"n": -1},
        {"body": {"x": 2**60}},
        {"type": "quote"},
        {"body": {"x": "y" * 8192}},
        {"conv": ""},
    ],
)
def test_an_envelope_that_would_be_refused_is_not_built(bad: dict[str, Any]) -> None:
    good: dict[str, Any] = {
        "conv": CONV, "n": 1, "type": "PICKUP", "sender": BRAVO, "to": ALPHA, "ts": 1,
        "prev_sig": "ab" * 64, "body": {},
    }  # fmt: skip
    build(**good)
    with pytest.raises(ValueError, match=r"."):
        build(**good | ({"sender": ALPHA} if "to" in bad else {}) | bad)


@pytest.mark.requirement("call.codes")
def test_a_call_names_both_codes() -> None:
    call = {"code_from": "ALFA", "code_to": "BRAV", "more": 1}
    assert call_codes(taken(value(n=0, prev_sig=bootstrap(CONV), body=call))) == ("ALFA", "BRAV")
    for name in ("code_from", "code_to"):
        for bad in ("alfa", "ALF", "ALFAA", 1, None, "ALFA\n"):
            found = call_codes(taken(value(body={**call, name: bad})))
            assert isinstance(found, Refusal)
            assert (found.code, found.detail) == ("bad_envelope", {"path": f"body.{name}"})
        found = call_codes(taken(value(body={each: call[each] for each in call if each != name})))
        assert isinstance(found, Refusal)
        assert found.detail == {"path": f"body.{name}"}


def test_what_a_body_says_to_the_wire_is_read_where_it_has_the_right_form() -> None:
    envelope = taken(value(body={"wire": BRAVO, "valid_until_ms": 5.0}))
    assert (envelope.body_wire, envelope.valid_until_ms) == (BRAVO, 5)
    other = taken(value(body={"wire": 7, "valid_until_ms": True}))
    assert (other.body_wire, other.valid_until_ms) == (None, None)
    none = taken(value(body={}))
    assert (none.body_wire, none.valid_until_ms) == (None, None)


@pytest.mark.requirement("call.valid-until")
def test_an_answer_is_late_after_the_time_and_only_for_types_that_take_up() -> None:
    for kind in ("HIT", "ACCEPT", "CONFIRM"):
        assert answers_late(kind, 1000, 1001)
        assert not answers_late(kind, 1000, 1000)
        assert not answers_late(kind, None, 1001)
    assert not answers_late("CHAT", 1000, 1001)
