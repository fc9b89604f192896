"""What a request's headers must say."""

import base64
from typing import Any

import msgspec
import pytest
from mcp.shared.inbound import encode_header_value

from gateways.mcp.headers import (
    Accept,
    Headers,
    check_agreement,
    check_meta,
    decode,
    doubled_header,
    is_json,
    read_accept,
)
from gateways.mcp.revisions import CAPABILITIES_KEY, METHODS, MODERN, VERSION_KEY, Fault

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


@pytest.mark.parametrize(
    ("value", "good"),
    [
        (None, True),
        ("application/json", True),
        ("Application/JSON; Charset=UTF-8", True),
        ('application/json; charset="utf-8"', True),
        ("application/json; charset=latin-1", False),
        ("text/plain", False),
        ("application/x-www-form-urlencoded", False),
    ],
)
def test_only_json_in_utf8_is_read(value: str | None, good: bool) -> None:
    assert is_json(value) is good


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
