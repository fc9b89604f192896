"""Artifacts are fetched from whom nobody trusts."""

import hashlib
from collections.abc import Callable

import httpx
import pytest

from gateways.client.artifacts import MAX_BYTES, fetch_artifact, read_ref
from gateways.client.errors import Disconnected, Refused, WireFault

CONTENT = b'{"a":1}'
REF = hashlib.sha256(CONTENT).hexdigest()


async def fetch(
    answer: httpx.Response | Callable[[httpx.Request], httpx.Response], url: str = "http://there"
) -> bytes:
    respond = answer if callable(answer) else lambda _: answer
    return await fetch_artifact(url, REF, transport=httpx.MockTransport(respond))


@pytest.mark.requirement("artifact.command")
@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("http://there:8766", "http://there:8766"),
        ("https://there/mcp", "https://there"),
        ("ws://there/ws", "http://there"),
        ("wss://there:1", "https://there:1"),
    ],
)
async def test_it_is_asked_for_at_the_origin_of_a_brokers_url(url: str, asked: str) -> None:
    seen = []

    def respond(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        return httpx.Response(200, content=CONTENT)

    assert await fetch(respond, url) == CONTENT
    assert seen == [f"{asked}/artifact/{REF}"]


@pytest.mark.requirement("artifact.command")
@pytest.mark.parametrize("content", [b"", b'{"a":2}', CONTENT + b"\n"])
async def test_other_bytes_than_the_ref_names_are_not_taken(content: bytes) -> None:
    with pytest.raises(WireFault, match="other bytes"):
        await fetch(httpx.Response(200, content=content))


@pytest.mark.requirement("artifact.command", "artifact.bounded")
async def test_who_sends_without_end_is_left() -> None:
    with pytest.raises(WireFault, match="more than an artifact has"):
        await fetch(httpx.Response(200, content=b" " * (MAX_BYTES + 1)))


async def test_a_refusal_is_the_brokers_and_all_else_is_no_broker() -> None:
    body = {"refusal": {"code": "unavailable", "status": 503, "message": "no", "retryable": True}}
    with pytest.raises(Refused, match="unavailable: no"):
        await fetch(httpx.Response(503, json=body))
    for content in (b"", b"[" * 10_000, b"[]", b'{"refusal": 1}'):
        with pytest.raises(Disconnected, match="HTTP 404"):
            await fetch(httpx.Response(404, content=content))

    def broken(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no way")

    with pytest.raises(Disconnected, match="no way"):
        await fetch(broken)


def test_a_ref_is_read_alone_and_in_an_address() -> None:
    assert read_ref(REF) == read_ref(f"kestrel://artifact/{REF}") == REF
    for text in ("", REF.upper(), REF + "0", f"kestrel://{REF}", f"x kestrel://artifact/{REF}"):
        with pytest.raises(ValueError, match="64 lowercase hex"):
            read_ref(text)
