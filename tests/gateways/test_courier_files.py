"""Files of others: what a source may do, each with its own end, and none of them with half a file."""

import gzip
from contextlib import suppress
from typing import Any

import pytest
import trio

from broker.app import Missed
from gateways.courier import Fetcher
from gateways.outbound import Outbound
from tests.gateways.test_outbound import Names
from tests.support.network import listening

MOST = 5_000
FILE = b"time,bid,ask\n" * 300
SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
ELSEWHERE = b"HTTP/1.1 302 Found\r\nlocation: https://127.0.0.1/secret\r\ncontent-length: 0\r\n\r\n"
ZIPPED = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
ECHO = b"HTTP/1.1 %d No\r\ncontent-length: 9\r\n\r\nBearer s3"


async def fetch(*sends: bytes, hang: bool = False, out: Outbound | None = None) -> tuple[Any, int]:
    """What comes of a source that sends this, and how often it was connected to."""
    connected = 0

    async def handler(stream: trio.SocketStream) -> None:
        nonlocal connected
        connected += 1
        async with stream:
            await stream.receive_some()
            with suppress(trio.BrokenResourceError):
                for each in sends:
                    await stream.send_all(each)
                if hang:
                    await trio.sleep_forever()

    async with listening(handler) as (host, port):
        fetcher = Fetcher(out or Outbound(loopback=True))
        headers = (("authorization", "Bearer s3"),)
        found = await fetcher.fetch(f"http://{host}:{port}/x", headers, most=MOST, patience_s=20)
    return found, connected


@pytest.mark.requirement("tape.source-import")
@pytest.mark.parametrize(
    "sends",
    [
        (SIZED % len(FILE), FILE[:7], FILE[7:]),
        (CHUNKED, b"%x\r\n%s\r\n" % (len(FILE), FILE), b"0\r\n\r\n"),
        (b"HTTP/1.1 103 Early\r\n\r\n", SIZED % len(FILE) + FILE),
    ],
)
async def test_a_whole_file_comes_as_it_is(sends: tuple[bytes, ...]) -> None:
    assert await fetch(*sends) == (FILE, 1)


@pytest.mark.requirement("tape.source-refused", "tape.source-public", "tape.source-bounds")
@pytest.mark.parametrize(
    ("sends", "missed"),
    [
        ((ECHO % 401,), Missed("status", 401)),
        ((ECHO % 503,), Missed("status", 503)),
        ((b"HTTP/1.1 204 No Content\r\n\r\n",), Missed("status", 204)),
        ((b"HTTP/1.1 206 Part\r\ncontent-length: 1\r\n\r\nx",), Missed("status", 206)),
        ((ELSEWHERE,), Missed("redirect", 302)),
        ((b"HTTP/1.1 304 Not Modified\r\n\r\n",), Missed("redirect", 304)),
        ((SIZED % (MOST + 1), b"x"), Missed("too_large")),
        ((CHUNKED, b"1388\r\n" + b"x" * 5_000 + b"\r\n", b"1\r\nx\r\n"), Missed("too_large")),
        ((SIZED % len(FILE), FILE[:-1]), Missed("no_answer")),
        ((CHUNKED, b"%x\r\n%s\r\n" % (len(FILE), FILE)), Missed("no_answer")),
        ((b"HTTP/1.1 200 OK\r\n\r\n", FILE), Missed("no_answer")),
        ((CHUNKED, b"1\r\nx\r\n" * 2_000, b"0\r\n\r\n"), Missed("no_answer")),
        ((b"Bearer s3\r\n\r\n",), Missed("no_answer")),
        ((), Missed("no_answer")),
        ((ZIPPED % len(gzip.compress(FILE)), gzip.compress(FILE)), Missed("encoding", 200)),
    ],
)
async def test_whatever_else_a_source_does_has_an_end_of_its_own(
    sends: tuple[bytes, ...], missed: Missed
) -> None:
    assert await fetch(*sends) == (missed, 1)


@pytest.mark.requirement("tape.source-bounds")
@pytest.mark.parametrize("sends", [(), (SIZED % len(FILE), FILE[:9]), (b"HTTP/1.1 200 OK\r\nx-a: ",)])
async def test_a_slow_file_is_given_up(sends: tuple[bytes, ...], autojump_clock: Any) -> None:
    assert await fetch(*sends, hang=True) == (Missed("too_slow"), 1)
    assert 20 <= trio.current_time() < 21


@pytest.mark.requirement("tape.source-public")
async def test_nothing_that_is_not_public_is_connected_to(connected: list[Any]) -> None:
    assert (await fetch(FILE, out=Outbound())) == (Missed("not_public"), 0)
    fetcher = Fetcher(Outbound())
    trio.socket.set_custom_hostname_resolver(Names(("1.1.1.1", "10.0.0.1")))
    for url in ("https://feed.example/x", "http://feed.example/x", "https://feed.example:8443/x"):
        assert await fetcher.fetch(url, (), most=MOST, patience_s=5) == Missed("not_public")
    assert connected == []
