"""JSON-RPC between bytes and messages: what is taken, what is refused with which code, what is written."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateways import jsonrpc
from gateways.jsonrpc import Malformed, Request, Response, read

SUITE = Path(__file__).parents[1] / "vectors" / "jsontestsuite" / "test_parsing"


def code(data: bytes) -> int:
    """The code with which a frame is refused."""
    found = read(data)
    assert isinstance(found, Malformed), found
    return found.code


def test_a_request_keeps_its_id_method_and_the_text_of_its_params() -> None:
    found = read(b'{"jsonrpc":"2.0","id":7,"method":"send_env","params":{"n": 1.0, "x":"\\u0041"}}')
    assert found == Request(7, True, "send_env", b'{"n": 1.0, "x":"\\u0041"}')


@pytest.mark.parametrize("id", ["", "a", "0", "é", "x" * 500, 0, -1, 2**53 - 1])
def test_ids_are_strings_and_integers_and_come_back_with_their_type(id: str | int) -> None:
    found = read(msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": "ping"}))
    assert isinstance(found, Request)
    assert (found.id, type(found.id)) == (id, type(id))
    assert msgspec.json.decode(jsonrpc.result(found.id, {}))["id"] == id


@pytest.mark.requirement("refusals.frame-ids")
@pytest.mark.parametrize(
    "id", ["null", "1.5", "1.0", "1e2", "true", "{}", "[1]", "9007199254740992", '"\\ud800"']
)
def test_an_id_of_any_other_kind_is_an_invalid_request_and_is_not_echoed(id: str) -> None:
    found = read(b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % id.encode())
    assert isinstance(found, Malformed)
    assert (found.code, found.id) == (jsonrpc.INVALID_REQUEST, None)


def test_absent_params_are_an_empty_object() -> None:
    assert read(b'{"jsonrpc":"2.0","id":1,"method":"ping"}') == Request(1, True, "ping", b"{}")


def test_presence_of_id_alone_makes_a_notification() -> None:
    assert read(b'{"jsonrpc":"2.0","method":"ping"}') == Request(None, False, "ping", b"{}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":[1,]}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"\xff"}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"\xed\xa0\x80"}}', -32700),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"a"}', -32700),
        ('{"jsonrpc":"2.0","id":1,"method":"a"}'.encode("utf-16"), -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"a"} x', -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"a"}]', -32600),
        (b"[1,", -32700),
        (b'"a"', -32600),
        (b"3", -32600),
        (b"null", -32600),
        (b"{}", -32600),
        (b'{"id":1,"method":"a"}', -32600),
        (b'{"jsonrpc":2.0,"id":1,"method":"a"}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"a"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":null}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":[]}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":null}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","result":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":1,"error":{}}', -32600),
        (b'{"jsonrpc":"2.0","result":1}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"result":1}', -32600),
    ],
)
@pytest.mark.requirement("refusals.frame-codes")
def test_what_is_not_json_and_what_is_no_message_are_told_apart(text: bytes, expected: int) -> None:
    assert code(text) == expected


@pytest.mark.requirement("canonical.frame-members", "refusals.frame-codes")
@pytest.mark.parametrize(
    "stray",
    ['{"a":1,"a":2}', '[{"a":{"b":1,"\\u0062":2}}]', "9007199254740993", '"\\ud800"', "[" * 33 + "]" * 33],
)
@pytest.mark.parametrize("rest", ['"method":"a"', '"method":"a","params":{}', '"result":{}'])
def test_what_is_forbidden_in_a_member_that_nobody_asked_for_is_an_invalid_request(
    stray: str, rest: str
) -> None:
    text = f'{{"jsonrpc":"2.0","id":3,{rest},"x":{stray}}}'.encode()
    found = read(text)
    assert isinstance(found, Malformed)
    assert (found.code, found.id) == (jsonrpc.INVALID_REQUEST, 3)


def test_a_member_that_nobody_asked_for_is_passed_over() -> None:
    found = read(b'{"jsonrpc":"2.0","id":3,"method":"a","params":{},"x":{"a":[1,2]}}')
    assert found == Request(3, True, "a", b"{}")


@pytest.mark.requirement("canonical.frame-members")
@pytest.mark.parametrize(
    ("text", "id"),
    [
        (b'{"jsonrpc":"2.0","id":3,"method":"a","method":"b"}', 3),
        (b'{"jsonrpc":"2.0","id":"x","method":"a","m\\u0065thod":"b"}', "x"),
        (b'{"jsonrpc":"2.0","id":3,"params":{},"method":"a","params":{}}', 3),
        (b'{"jsonrpc":"2.0","id":3,"id":3,"method":"a"}', None),
        (b'{"jsonrpc":"2.0","id":3,"i\\u0064":4,"method":"a"}', None),
        (b'{"jsonrpc":"2.0","id":3,"x":{"id":9},"x":1,"method":"a"}', 3),
    ],
)
def test_a_frame_member_given_twice_is_refused_and_the_id_echoed_where_it_is_clear(
    text: bytes, id: str | int | None
) -> None:
    assert read(text) == Malformed(-32600, "a name used twice", id)


def test_unknown_members_are_allowed_and_duplicates_inside_params_are_left_to_the_tool() -> None:
    found = read(b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1,"x":2},"trace":1}')
    assert found == Request(1, True, "a", b'{"x":1,"x":2}')


def test_white_space_and_escapes_in_the_frame_change_nothing() -> None:
    text = b' {\n"method" : "p\\u0069ng" ,\t"jsonrpc":"2\\u002e0", "id" : "\\u0031" , "params" : { } }\r\n'
    assert read(text) == Request("1", True, "ping", b"{ }")


def test_responses_are_recognised() -> None:
    assert read(b'{"jsonrpc":"2.0","id":"a","result":{"x":1}}') == Response("a", b'{"x":1}', None)
    assert read(b'{"jsonrpc":"2.0","id":null,"error":{"code":1}}') == Response(None, None, b'{"code":1}')


def test_deep_nesting_never_raises() -> None:
    deep = b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":%s%s}}'
    found = read(deep % (b"[" * 30_000, b"]" * 30_000))
    assert isinstance(found, Request | Malformed)
    assert code(deep % (b"[" * 30_000, b"")) == -32700


@pytest.mark.parametrize("path", sorted(SUITE.glob("n_*.json")), ids=lambda path: path.stem)
def test_no_invalid_json_of_the_suite_passes_inside_params(path: Path) -> None:
    assert code(b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":%s}}' % path.read_bytes()) == -32700


@given(st.binary(max_size=60))
def test_any_bytes_give_a_message_or_a_malformed_one(data: bytes) -> None:
    assert isinstance(read(data), Request | Response | Malformed)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
IDS = st.text() | st.integers(-(2**53) + 1, 2**53 - 1)


@given(IDS, st.text(), st.dictionaries(st.text(), JSON, max_size=3))
def test_what_is_written_is_read_back(id: str | int, method: str, params: dict[str, object]) -> None:
    found = read(jsonrpc.request(id, method, params))
    assert isinstance(found, Request)
    assert (found.id, found.method, msgspec.json.decode(found.params)) == (id, method, params)
    answered = read(jsonrpc.result(id, params))
    assert isinstance(answered, Response)
    assert answered.result is not None
    assert msgspec.json.decode(answered.result) == params
    told = read(jsonrpc.notification(method, params))
    assert isinstance(told, Request)
    assert not told.has_id


def test_json_text_is_passed_through_as_it_is() -> None:
    assert jsonrpc.result(1, b'{"a": 1}') == b'{"jsonrpc":"2.0","id":1,"result":{"a": 1}}'
    assert jsonrpc.notification("env", b"{}") == b'{"jsonrpc":"2.0","method":"env","params":{}}'


def test_errors_carry_code_message_and_data() -> None:
    written = jsonrpc.error(None, -32600, 'a "quoted" word', {"x": 1})
    assert msgspec.json.decode(written) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32600, "message": 'a "quoted" word', "data": {"x": 1}},
    }
    assert "data" not in msgspec.json.decode(jsonrpc.error(1, 1, "m"))["error"]
    assert Malformed(-32700, "m").reply() == jsonrpc.error(None, -32700, "m")
