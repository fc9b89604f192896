"""The quick way takes what the strict way takes, and reads the same from it; the rest is left to the strict way."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.app import Tool
from broker.tools.registry import collect
from broker.wire.refusals import Refusal
from gateways import jsonrpc
from gateways.quick import QuickReader, Started

TOOL: Tool = collect()["send_env"]
READER = QuickReader({"send_env": TOOL})
PARAMS: dict[str, Any] = {
    "conv": "a1b2c3d4e5f6a7b8",
    "n": 7,
    "from_pk": "1" * 64,
    "sig": "2" * 128,
    "envelope": {"body": {"px": "1.25"}, "conv": "a1b2c3d4e5f6a7b8"},
}


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def frame(id: Any = 1, method: str = "send_env", **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**PARAMS, **members}}


def strictly(data: bytes) -> tuple[Any, dict[str, Any]] | None:
    """The id and the arguments as the strict way reads them; None where it refuses."""
    request = jsonrpc.read(data)
    if not isinstance(request, jsonrpc.Request) or request.method != "send_env":
        return None
    arguments = TOOL.decode(request.params)
    return None if isinstance(arguments, Refusal) else (request.id, arguments)


def shown(started: Started) -> tuple[Any, dict[str, Any]]:
    given = started.arguments
    arguments = {name: getattr(given, name) for name in PARAMS}
    return started.id, {**arguments, "envelope": bytes(given.envelope)}


@pytest.mark.parametrize("id", [0, -1, 2**53 - 1, "", "x", "a b"])
def test_what_a_client_usually_sends_is_taken(id: Any) -> None:
    data = compact(frame(id))
    started = READER.read(data)
    assert started is not None
    assert shown(started) == strictly(data)
    assert started.frame == data


@pytest.mark.parametrize(
    "order", [("params", "id", "method", "jsonrpc"), ("method", "params", "jsonrpc", "id")]
)
def test_the_order_of_the_members_does_not_matter(order: tuple[str, ...]) -> None:
    whole = frame()
    assert READER.read(compact({name: whole[name] for name in order})) is not None


OTHERS = {
    "white space": json.dumps(frame()).encode(),
    "a member beside": compact({**frame(), "more": 1}),
    "a param beside": compact(frame(more=1)),
    "a param that is missing": compact(
        {**frame(), "params": {name: PARAMS[name] for name in PARAMS if name != "sig"}}
    ),
    "no id": compact({"jsonrpc": "2.0", "method": "send_env", "params": PARAMS}),
    "id null": compact(frame(None)),
    "id true": compact(frame(True)),
    "id 1.0": compact(frame()).replace(b'"id":1', b'"id":1.0'),
    "id beyond": compact(frame(2**53)),
    "n 7.0": compact(frame()).replace(b'"n":7', b'"n":7.0'),
    "n -0": compact(frame()).replace(b'"n":7', b'"n":-0'),
    "twice": compact(frame()).replace(b'"n":7', b'"n":6,"n":7'),
    "twice outside": compact(frame()).replace(b'"id":1', b'"id":2,"id":1'),
    "an escape": compact(frame()).replace(b'"2.0"', b'"2\\u002e0"'),
    "an escaped name": compact(frame()).replace(b'"conv":"a', b'"c\\u006fnv":"a'),
    "another version": compact({**frame(), "jsonrpc": "2.1"}),
    "another method": compact(frame(method="send_call")),
    "the method's mark elsewhere": compact(frame(method="ping", envelope={"method": "send_env"})),
    "not ASCII": compact(frame("é")),
    "not UTF-8": compact(frame(envelope={"x": "?"})).replace(b"?", b"\xff"),
    "cut": compact(frame())[:-1],
    "more behind": compact(frame()) + b" {}",
    "a batch": b"[" + compact(frame()) + b"]",
    "deep": b'{"jsonrpc":"2.0","id":1,"method":"send_env","params":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
}


@pytest.mark.requirement("ws.malformed-frame")
@pytest.mark.parametrize("data", OTHERS.values(), ids=OTHERS.keys())
def test_whatever_else_is_left_to_the_strict_way(data: bytes) -> None:
    assert READER.read(data) is None


@given(
    st.data(),
    st.lists(
        st.sampled_from([b" ", b"\\", b'"', b",", b"}", b"{", b"0", b"n", b"\xc3\xa9", b'"n":1,']), max_size=3
    ),
)
def test_what_is_taken_from_a_damaged_frame_is_what_the_strict_way_reads(
    data: st.DataObject, pieces: list[bytes]
) -> None:
    text = compact(frame())
    for piece in pieces:
        at = data.draw(st.integers(0, len(text)))
        until = data.draw(st.integers(at, min(len(text), at + 3)))
        text = text[:at] + piece + text[until:]
    started = READER.read(text)
    if started is not None:
        expected = strictly(text)
        if expected is not None:  # patterns and bounds are the starter's to look at
            assert shown(started) == expected
        else:
            request = jsonrpc.read(text)
            assert isinstance(request, jsonrpc.Request)
            assert request.id == started.id
