"""The slow judge: grammar to the end, then the first forbidden thing by its path."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.wire.grammar import MAX_SHOWN, Fault, Slice, bad_number, examine, join, shown, split, too_deep
from tests.support.vectors import OBJECTS, VALUES, spellings


@pytest.mark.requirement("canonical.judged-to-the-end")
@given(st.data(), VALUES)
def test_every_spelling_of_a_value_is_grammatical_and_allowed(data: st.DataObject, value: Any) -> None:
    assert examine(data.draw(spellings(value))) is None


@given(st.text(st.sampled_from('{}[]",:\\u0d8e+-.19 na\n'), max_size=30))
def test_a_text_is_json_exactly_where_the_standard_library_says_so(text: str) -> None:
    try:
        json.loads(text)
        is_json = "NaN" not in text
    except ValueError:
        is_json = False
    fault = examine(text)
    assert (fault is None or fault.path is not None) == is_json


@given(st.data(), OBJECTS)
def test_an_object_is_split_where_its_values_stand(data: st.DataObject, value: dict[str, Any]) -> None:
    text = data.draw(spellings(value))
    slices = split(text)
    assert isinstance(slices, list)
    assert [each.name for each in slices] == [name for name, _ in json.loads(text, object_pairs_hook=list)]
    for each in slices:
        assert json.loads(text[each.start : each.end]) == json.loads(text)[each.name]


def test_a_slice_names_a_member_and_its_place() -> None:
    assert split('{"a": [1, {"b": 2}] ,"c":3}') == [Slice("a", 5, 19), Slice("c", 25, 26)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[]", Fault("an object is expected here", "")),
        ('{"a":1,"a":2}', Fault("a name used twice", "a")),
        ('{"\\udc00":1}', Fault("a lone surrogate in a name", "?")),
        ('{"a":1', Fault("this is not JSON")),
        ('{"a":1,"a":2', Fault("this is not JSON")),
        ("[", Fault("this is not JSON")),
    ],
)
def test_what_cannot_be_split_has_its_fault(text: str, fault: Fault) -> None:
    assert split(text) == fault


@given(VALUES)
def test_depth_is_counted_outside_strings(value: Any) -> None:
    def depth(each: Any) -> int:
        if isinstance(each, dict):
            return 1 + max(map(depth, each.values()), default=0)
        return 1 + max(map(depth, each), default=0) if isinstance(each, list) else 0

    text = json.dumps(value).encode()
    for most in range(1, 6):
        assert too_deep(text, most) == (depth(value) > most)


@pytest.mark.parametrize("text", [b"[" * 33, b'["]' * 33, b"[]" * 40 + b"[" * 33, b"]" * 40 + b"[" * 40])
def test_brackets_that_never_close_are_never_shallow(text: bytes) -> None:
    assert too_deep(text + b"[{" * 20)


@pytest.mark.parametrize(
    ("token", "bad"),
    [
        ("9007199254740991", False), ("9007199254740992", True), ("-9007199254740991", False),
        ("-9007199254740992", True),
        ("9007199254740991.49", False), ("9007199254740991.5", True), ("1e15", False), ("1E16", True),
        ("1e-999", False),
        ("9" * 5000, True), ("-0", False),
    ],
)  # fmt: skip
def test_a_number_is_judged_on_its_double(token: str, bad: bool) -> None:
    assert bad_number(token) is bad


def test_paths_join_by_dots_and_brackets() -> None:
    assert join("", "a") == "a"
    assert join("body", "a.b") == "body.a.b"
    assert join("body", "[1]") == "body[1]"
    assert join("body", "") == "body"


def test_a_hostile_name_is_cut_and_made_fit_to_be_shown() -> None:
    assert shown("a\x1b[2J\ud800\n") == "a?[2J??"
    assert len(shown("x" * 5000)) == MAX_SHOWN
    name = "\x07" + "x" * 5000
    fault = examine(json.dumps({"body": {name: {"k": 1e99}}}))
    assert fault is not None
    assert fault.path == "body.?" + "x" * (MAX_SHOWN - 6)
