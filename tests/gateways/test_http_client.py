"""Who is this machine itself, and bodies that are sent once."""

import pytest

from gateways.http_client import Body, is_here


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8766/mcp",
        "http://LOCALHOST",
        "ws://127.0.0.1",
        "http://127.1.2.3:1",
        "http://[::1]:8766/",
        "http://user@127.0.0.1/",
    ],
)
def test_loopback_is_this_machine(url: str) -> None:
    assert is_here(url)


@pytest.mark.requirement("client.agent-issuer", "cli.tokens")
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1.example.org",
        "http://127.example.org",
        "http://localhost.example.org",
        "http://localhost@example.org",
        "http://128.0.0.1",
        "http://0.0.0.0",
        "http://[::2]",
        "http://127.1",
        "http://",
        "",
    ],
)
def test_what_only_looks_like_it_is_not(url: str) -> None:
    assert not is_here(url)


async def test_a_body_is_given_once_and_may_be_left() -> None:
    body = Body(b"text")
    assert [part async for part in body] == [b"text"]
    assert [part async for part in body] == []
