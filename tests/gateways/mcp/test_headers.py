"""What a request's headers must say."""

import base64
from typing import Any

import msgspec
import pytest
from mcp.shared.inbound import encode_header_value

from gateways.mcp.endpoint import mcp_app
from gateways.mcp.headers import (
    Accept,
    Headers,
    check_agreement,
    check_meta,
    check_mirrors,
    decode,
    doubled_header,
    mirrors,
    read_accept,
)
from gateways.mcp.revisions import CAPABILITIES_KEY, METHODS, MODERN, VERSION_KEY, Fault
from gateways.mcp.surface import Ask, Outcome, Surface
from tests.gateways.mcp.harness import Door, fake_broker, modern, offer, text

META = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}
GOOD = [(b"mcp-protocol-version", MODERN.encode()), (b"mcp-method", b"tools/call"), (b"mcp-name", b"echo")]


def agree(headers: list[tuple[bytes, bytes]], meta: dict[str, Any] = META, **params: Any) -> Fault | None:
    raws = {
        name: msgspec.Raw(msgspec.json.encode(value)) for name, value in (params or {"name": "echo"}).items()
    }
    return check_agreement(Headers(headers), meta, "tools/call", METHODS["tools/call"], raws)


@pytest.mark.requirement("mcp.accept")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", Accept(True, True, False)),
        ("*/*", Accept(True, True, False)),
        ("application/json, text/event-stream", Accept(True, True, True)),
        ("text/event-stream,application/json", Accept(True, True, True)),
        ("TEXT/Event-Stream ; q=0.5", Accept(False, True, True)),
        ("application/json", Accept(True, False, False)),
        ("application/*", Accept(True, False, False)),
        ("text/*", Accept(False, True, False)),
        ("application/json;q=0, */*", Accept(False, True, False)),
        ("text/event-stream;q=0.0, application/json", Accept(True, False, False)),
        ("text/html", Accept(False, False, False)),
    ],
)
def test_accept_is_read_tolerantly(value: str, expected: Accept) -> None:
    assert read_accept(value) == expected


@pytest.mark.parametrize("value", ["plain", "größer", " edge ", "=?base64?x?=", "a\nb", ""])
def test_what_the_official_client_encodes_is_decoded(value: str) -> None:
    assert decode(encode_header_value(value)) == value


@pytest.mark.parametrize(
    "payload", ["YQ", "YR==", "Y Q==", "YQ==\n", "_w==", base64.b64encode(b"\xff").decode()]
)
def test_base64_that_is_not_canonical_or_not_utf8_is_nothing(payload: str) -> None:
    assert decode(f"=?base64?{payload}?=") is None


@pytest.mark.requirement("mcp.header-ladder")
@pytest.mark.parametrize(
    "meta", [None, [], {}, {VERSION_KEY: MODERN}, {VERSION_KEY: 1, CAPABILITIES_KEY: {}}]
)
def test_meta_without_its_required_members_is_invalid_params(meta: Any) -> None:
    fault = check_meta(meta)
    assert fault is not None
    assert fault.code == -32602


def test_client_info_is_not_required() -> None:
    assert check_meta(META) is None


@pytest.mark.requirement("mcp.header-ladder")
@pytest.mark.parametrize("missing", range(3))
def test_a_missing_routing_header_is_a_mismatch(missing: int) -> None:
    fault = agree([each for at, each in enumerate(GOOD) if at != missing])
    assert fault is not None
    assert fault.code == -32020


@pytest.mark.requirement("mcp.header-ladder")
@pytest.mark.parametrize("at", range(3))
def test_a_routing_header_that_says_something_else_is_a_mismatch(at: int) -> None:
    headers = [*GOOD]
    headers[at] = (headers[at][0], headers[at][1].upper() + b"x")
    fault = agree(headers)
    assert fault is not None
    assert fault.code == -32020


def test_an_encoded_name_agrees_with_the_plain_one() -> None:
    headers = [*GOOD[:2], (b"mcp-name", encode_header_value("größe").encode())]
    assert agree(headers, name="größe") is None


def test_header_names_are_case_insensitive_and_values_are_stripped() -> None:
    assert agree([(name.upper(), b" " + value + b"\t") for name, value in GOOD]) is None


def test_a_disagreement_is_told_before_the_revision_is_found_unknown() -> None:
    meta = {**META, VERSION_KEY: "2099-01-01"}
    first, second = agree(GOOD, meta), agree([(GOOD[0][0], b"2099-01-01"), *GOOD[1:]], meta)
    assert first is not None
    assert second is not None
    assert (first.code, second.code) == (-32020, -32022)


@pytest.mark.requirement("mcp.header-ladder")
@pytest.mark.parametrize("name", [b"mcp-protocol-version", b"Mcp-Method", b"MCP-NAME"])
def test_a_routing_header_that_stands_twice_is_refused_even_when_both_agree(name: bytes) -> None:
    fault = doubled_header(Headers([*GOOD, (name, dict(GOOD)[name.lower()])]))
    assert fault is not None
    assert fault.code == -32020


def test_other_headers_may_stand_twice() -> None:
    assert doubled_header(Headers([*GOOD, (b"accept", b"a"), (b"accept", b"b")])) is None


SCHEMA = {
    "type": "object",
    "properties": {
        "topic": {"type": "string", "x-mcp-header": "Topic"},
        "size": {"type": "integer", "x-mcp-header": "Size"},
        "firm": {"type": "boolean", "x-mcp-header": "Firm"},
        "leg": {"type": "object", "properties": {"side": {"type": "string", "x-mcp-header": "Leg-Side"}}},
        "plain": {"type": "string"},
    },
}


def mirrored(arguments: Any, *given: tuple[str, str]) -> bool:
    headers = Headers([(name.encode(), value.encode("latin-1")) for name, value in given])
    fault = check_mirrors(headers, mirrors(SCHEMA), arguments)
    assert fault is None or fault.code == -32020
    return fault is None


@pytest.mark.requirement("mcp.mirrored-arguments")
@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ({}, []),
        ({"plain": "x"}, [("Mcp-Param-Plain", "y"), ("Mcp-Param-Unknown", "z")]),
        ({"topic": "fx"}, [("MCP-PARAM-TOPIC", " fx ")]),
        ({"topic": None, "leg": None}, []),
        ({"topic": "Hello, 世界"}, [("Mcp-Param-Topic", "=?base64?SGVsbG8sIOS4lueVjA==?=")]),
        ({"topic": "=?base64?x"}, [("Mcp-Param-Topic", "=?base64?x")]),
        ({"topic": ""}, [("Mcp-Param-Topic", "")]),
        ({"size": 42}, [("Mcp-Param-Size", "42.0")]),
        ({"size": 42.0}, [("Mcp-Param-Size", "42")]),
        ({"size": -7}, [("Mcp-Param-Size", "-7")]),
        ({"firm": True}, [("Mcp-Param-Firm", "true")]),
        ({"firm": False}, [("Mcp-Param-Firm", "false")]),
        ({"leg": {"side": "buy"}}, [("Mcp-Param-Leg-Side", "buy")]),
        ({"topic": ["fx"]}, []),
    ],
)
def test_an_argument_and_its_header_agree(arguments: Any, given: list[tuple[str, str]]) -> None:
    assert mirrored(arguments, *given)


@pytest.mark.requirement("mcp.mirrored-arguments")
@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ({"topic": "fx"}, []),
        ({}, [("Mcp-Param-Topic", "fx")]),
        ({"topic": None}, [("Mcp-Param-Topic", "null")]),
        ({"topic": "fx"}, [("Mcp-Param-Topic", "FX")]),
        ({"topic": "fx"}, [("Mcp-Param-Topic", "fx"), ("mcp-param-topic", "fx")]),
        ({"topic": "Hello"}, [("Mcp-Param-Topic", "=?base64?SGVsbG8?=")]),
        ({"topic": "Hello"}, [("Mcp-Param-Topic", "=?base64?SGVs!!!bG8=?=")]),
        ({"topic": "Hello"}, [("Mcp-Param-Topic", "=?base64?SGVsbG9=?=")]),
        ({"topic": "ü"}, [("Mcp-Param-Topic", "\xc3\xbc")]),
        ({"size": 42}, [("Mcp-Param-Size", "4.2e1")]),
        ({"size": 42}, [("Mcp-Param-Size", "42.5")]),
        ({"size": 1}, [("Mcp-Param-Size", "true")]),
        ({"firm": True}, [("Mcp-Param-Firm", "True")]),
        ({"firm": True}, [("Mcp-Param-Firm", "1")]),
        ({"leg": {"side": "buy"}}, []),
        ({"leg": "buy"}, [("Mcp-Param-Leg-Side", "buy")]),
        ({"topic": ["fx"]}, [("Mcp-Param-Topic", "fx")]),
        ([], [("Mcp-Param-Topic", "fx")]),
    ],
)
def test_an_argument_and_its_header_that_disagree_are_refused(
    arguments: Any, given: list[tuple[str, str]]
) -> None:
    assert not mirrored(arguments, *given)


@pytest.mark.parametrize(
    "properties",
    [
        {"a": {"type": "number", "x-mcp-header": "A"}},
        {"a": {"x-mcp-header": "A"}},
        {"a": {"type": "string", "x-mcp-header": ""}},
        {"a": {"type": "string", "x-mcp-header": "A B"}},
        {"a": {"type": "string", "x-mcp-header": "A\r\nB"}},
        {"a": {"type": "string", "x-mcp-header": "X"}, "b": {"type": "string", "x-mcp-header": "x"}},
    ],
)
def test_an_annotation_that_clients_refuse_is_seen_when_the_face_is_made(properties: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"header"):
        mirrors({"type": "object", "properties": properties})


@pytest.mark.requirement("mcp.mirrored-arguments")
async def test_the_ladder_looks_at_mirrored_arguments_before_the_tool_runs() -> None:
    ran: list[bytes] = []

    async def call(ask: Ask, arguments: bytes) -> Outcome:
        ran.append(arguments)
        return text("ok")

    broker = fake_broker()
    door = Door(mcp_app(broker, faces={"": Surface(tools={"t": offer("t", call, schema=SCHEMA)})}), broker)
    body, headers = modern("tools/call", name="t", arguments={"topic": "fx"})
    answer = await door.ask(body=body, **headers)
    assert (answer.status, answer.error["code"], answer.json["id"]) == (400, -32020, 1)
    assert (await door.ask(body=body, **headers, mcp_param_topic="rates")).status == 400
    assert ran == []
    assert (await door.ask(body=body, **headers, mcp_param_topic="fx")).status == 200
    assert (await door.bare("tools/call", name="t", arguments={"topic": "fx"})).status == 200
    assert len(ran) == 2
    assert (await door.modern("tools/call", name="nothing", arguments={})).error["code"] == -32602
