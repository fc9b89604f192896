"""The registry: params judged strictly, a double refused."""

import json
from typing import Any

import msgspec
import pytest

from broker.tools.context import Context
from broker.tools.registry import Tool, collect, tool
from broker.wire.refusals import Refusal

TOOLS = collect()


def refused(name: str, text: bytes) -> tuple[str, Any]:
    answer = TOOLS[name].decode(text)
    assert isinstance(answer, Refusal)
    return answer.code, answer.detail.get("path")


@pytest.mark.requirement("refusals.bad-request")
@pytest.mark.parametrize(
    ("text", "expect"),
    [
        (b"{", ("bad_request", None)),
        (b"[]", ("bad_request", None)),
        (b'{"code":"ALFA","x":1}', ("bad_request", "x")),
        (b"{}", ("bad_request", "code")),
        (b'{"code":1}', ("bad_request", "code")),
        (b'{"code":"alfa"}', ("bad_request", "code")),
        (b'{"code":"ALFA","code":"BRAV"}', ("bad_request", "code")),
        (b'{"code":"ALFA","c\\u006fde":"BRAV"}', ("bad_request", "code")),
        (b'\xef\xbb\xbf{"code":"ALFA"}', ("bad_request", None)),
        (b'{"code":"ALFA"} x', ("bad_request", None)),
    ],
)
def test_params_are_read_strictly(text: bytes, expect: tuple[str, Any]) -> None:
    code, path = refused("resolve_code", text)
    assert (code, path or None) == expect


@pytest.mark.requirement("refusals.bad-request")
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "create_channel",
            b'{"name":"A b"}',
            "name: not of the right form; it is 2 to 63 lower-case letters, digits and hyphens; no other",
        ),
        (
            "request_contact",
            b'{"target_agent_id":"ag_01KVY19F5JERCW57K0QBWQ1Y7N","purpose":"b","scopes":["message,task"]}',
            "scopes: Invalid enum value 'message,task' - at `$[0]`; it is one of: channel, message, resource, task",
        ),
        (
            "presence",
            b'{"codes":["alfa"]}',
            "codes: not of the right form at `$[0]`; it is the desks asked about",
        ),
        ("create_channel", b'{"name":1}', "name: Expected `str`, got `int`"),
        (
            "list_convs",
            b'{"state":"closed"}',
            "state: Invalid enum value 'closed'; it is one of: ended, open, ringing",
        ),
    ],
)
def test_what_is_wrong_is_said_in_words_and_not_by_a_pattern(name: str, text: bytes, message: str) -> None:
    answer = TOOLS[name].decode(text)
    assert isinstance(answer, Refusal)
    assert answer.message.startswith(message)
    assert "regex" not in answer.message


@pytest.mark.requirement("refusals.judged-as-envelope")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("conv", '"A1"'),
        ("conv", "1"),
        ("n", '"2"'),
        ("n", "true"),
        ("n", "2.5"),
        ("n", "-1"),
        ("sig", '"00"'),
    ],
)
def test_conv_n_and_sig_of_the_wrong_form_are_judged_as_the_envelope(name: str, value: str) -> None:
    members = {
        "conv": f'"{"a" * 16}"',
        "n": "2",
        "from_pk": f'"{"a" * 64}"',
        "sig": f'"{"b" * 128}"',
        "envelope": "{}",
    }
    members[name] = value
    text = "{" + ",".join(f'"{key}":{member}' for key, member in members.items()) + "}"
    assert refused("send_env", text.encode()) == ("bad_envelope", name)


@pytest.mark.requirement("envelope.n-any-form")
@pytest.mark.parametrize("form", ["2", "2.0", "2e0", "20e-1"])
def test_n_may_be_written_in_any_form_with_that_value(form: str) -> None:
    text = f'{{"conv":"{"a" * 16}","n":{form}}}'
    arguments = TOOLS["receipt"].decode(text.encode())
    assert not isinstance(arguments, Refusal)
    assert arguments["n"] == 2


@pytest.mark.requirement("refusals.bad-request")
@pytest.mark.parametrize(
    ("name", "param"), [("resolve_code", "code"), ("read_conv", "conv"), ("send_env", "sig")]
)
def test_a_trailing_newline_is_no_part_of_a_form(name: str, param: str) -> None:
    schema = TOOLS[name].input_schema["properties"][param]
    value = {"code": "ALFA", "conv": "a" * 16, "sig": "b" * 128}[param]
    decoder = TOOLS[name].params[param].decoder
    assert decoder.decode(json.dumps(value)) == value
    with pytest.raises(msgspec.ValidationError):
        decoder.decode(json.dumps(value + "\n"))
    assert schema["pattern"].endswith("$(?!\\n)")


def test_null_stands_for_an_optional_param_that_is_left_out() -> None:
    text = b'{"conv":"%s","statement":null,"sig":null}' % (b"a" * 16)
    arguments = TOOLS["read_conv"].decode(text)
    assert arguments == {"conv": "a" * 16, "statement": None, "sig": None}


def test_annotations_are_true_to_the_tool() -> None:
    wire = {name: made for name, made in TOOLS.items() if made.face == "wire"}
    reading = {name for name, made in wire.items() if made.annotations["readOnlyHint"]}
    assert reading == {
        "canonicalize", "desk_rings", "list_convs", "presence", "read_conv", "receipt", "resolve_code",
        "wait_for_events", "wire_info",
    }  # fmt: skip
    assert {name for name, made in TOOLS.items() if made.annotations["destructiveHint"]} >= {
        "close_desk",
        "move_desk",
    }


@pytest.mark.requirement("tools.all")
def test_every_tool_of_the_wire_is_there() -> None:
    table = [
        "send_call",
        "send_env",
        "read_conv",
        "desk_rings",
        "wait_for_events",
        "resolve_code",
        "presence",
        "open_desk",
        "move_desk",
        "cancel_move",
        "close_desk",
        "screen_desk",
        "list_convs",
        "canonicalize",
        "receipt",
        "wire_info",
    ]
    wire = {name for name, made in TOOLS.items() if made.face == "wire"}
    assert wire == set(table)


def test_a_second_tool_of_a_name_is_refused() -> None:
    async def wire_info(context: Context) -> None:
        """A double."""

    with pytest.raises(ValueError, match="two tools"):
        tool(face="wire", title="A double")(wire_info)
    assert isinstance(TOOLS["wire_info"], Tool)
