"""How we ask others over HTTP: who needs no TLS and no proxy, and bodies that can be left half-way."""

import ipaddress
from urllib.parse import urlsplit

import httpx


def is_here(url: str) -> bool:
    """Whether a URL leads to this machine itself: localhost, or a loopback address. A name such as
    127.0.0.1.example.org is none."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Body(httpx.AsyncByteStream):
    """A request's body that can be left half-way: httpx's own is a generator, and complains when cancelled."""

    def __init__(self, data: bytes) -> None:
        self._parts = [data]

    def __aiter__(self) -> "Body":
        return self

    async def __anext__(self) -> bytes:
        if not self._parts:
            raise StopAsyncIteration
        return self._parts.pop()
