"""The dealing port's opening handshake: what is taken, what is refused and how, in bounded bytes and time."""

import base64
import ssl
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from broker.wire.refusals import refuse
from gateways.caller import read_proxies
from gateways.handshake import HEAD_BYTES, find_peer, shake_hands, turn_away
from tests.support.broker_fake import DEALER_PK, FakeBroker, proof
from tests.support.peers import trickle

KEY = base64.b64encode(b"0123456789abcdef").decode()


def head(path: str = "/", **changes: str | None) -> bytes:
    """A request's head; `changes` replace or (None) remove headers."""
    headers: dict[str, str | None] = {
        "Host": "127.0.0.1",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": KEY,
        "Sec-WebSocket-Version": "13",
    }
    headers.update({name.replace("_", "-"): value for name, value in changes.items()})
    lines = [
        f"GET {path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers.items() if value is not None),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


async def shake(
    data: bytes, broker: Any = None, origins: tuple[str, ...] = (), proxies: tuple[str, ...] = ()
) -> Any:
    """What comes of a client that sends these bytes and half-closes: (opened, answer)."""
    ours, theirs = trio.testing.memory_stream_pair()
    await ours.send_all(data)
    await ours.send_eof()
    with trio.fail_after(5):
        peer = ("192.0.2.1", 999)
        opened = await shake_hands(broker or FakeBroker(), theirs, peer, read_proxies(proxies), origins)  # type: ignore[arg-type]
        await theirs.aclose()
        answer = b""
        while piece := await ours.receive_some():
            answer += piece
    return opened, answer


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.mark.requirement("ws.handshake")
@pytest.mark.parametrize("path", ["/", "/ws", "/ws?a=b"])
async def test_a_good_handshake_opens_and_offers_no_compression(path: str) -> None:
    opened, answer = await shake(head(path, Sec_WebSocket_Extensions="permessage-deflate"))
    assert answer == b""  # it is sent together with the hello
    protocol, caller = opened
    reply = b"".join(protocol.data_to_send())
    assert status(reply) == 101
    assert b"extensions" not in reply.lower()
    assert (caller.address, caller.loopback, caller.pk) == ("192.0.2.1", False, None)


@pytest.mark.requirement("ws.handshake")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (head("/elsewhere"), 404),
        (head(Upgrade=None), 426),
        (head(Upgrade="h2c"), 426),
        (head(Connection="close"), 426),
        (head(Sec_WebSocket_Key="short"), 400),
        (head(Sec_WebSocket_Key=None), 400),
        (head(Sec_WebSocket_Version="12"), 400),
        (head().replace(b"GET", b"POST"), 405),
        (head().replace(b"HTTP/1.1", b"HTTP/1.0"), 505),
        (head().replace(b"HTTP/1.1", b"HTTP/9.9"), 400),
        (head(Content_Length="5"), 400),
        (head(Transfer_Encoding="chunked"), 400),
        (head(Bad="a\0b"), 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (head()[:-4], 400),
        (head() + b"\x89\x80abcd", 400),
        (head(Long="x" * HEAD_BYTES), 431),
        (b"GET /" + b"x" * 9000 + head()[5:], 414),
        (b"x" * (HEAD_BYTES + 1), 431),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", 431),
    ],
)
async def test_what_is_no_handshake_is_refused_over_http(data: bytes, code: int) -> None:
    opened, answer = await shake(data)
    assert opened is None
    assert status(answer) == code


@pytest.mark.requirement("ws.handshake")
async def test_a_head_may_come_byte_by_byte() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trickle, ours, head())
            opened = await shake_hands(FakeBroker(), theirs, None, (), ())  # type: ignore[arg-type]
    assert opened is not None


@pytest.mark.requirement("ws.origin")
@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1", "https://desk.example.evil"]
)
async def test_a_browsers_origin_is_refused(origin: str) -> None:
    opened, answer = await shake(head(Origin=origin), origins=("https://desk.example",))
    assert opened is None
    assert status(answer) == 403


@pytest.mark.requirement("ws.origin")
async def test_an_allowed_origin_is_taken_and_two_are_not() -> None:
    opened, _ = await shake(head(Origin="https://desk.example"), origins=("https://desk.example",))
    assert opened is not None
    twice = head(Origin="https://desk.example").replace(b"\r\n\r\n", b"\r\norigin: null\r\n\r\n")
    opened, answer = await shake(twice, origins=("https://desk.example", "null"))
    assert (opened, status(answer)) == (None, 400)


@pytest.mark.requirement("ws.upgrade-proof")
async def test_the_upgrade_may_prove_a_key() -> None:
    opened, _ = await shake(head(Authorization=f"Turret {proof()}"))
    assert opened[1].pk == DEALER_PK


@pytest.mark.requirement("ws.upgrade-proof")
async def test_a_wrong_proof_is_refused_with_its_refusal() -> None:
    broker = FakeBroker()
    broker.refuse_admission = refuse("bad_statement", "too old")
    opened, answer = await shake(head(Authorization=f"Turret {proof()}"), broker)
    assert (opened, status(answer)) == (None, 401)
    assert b'"code":"bad_statement"' in answer
    assert b"www-authenticate: Turret" in answer
    opened, answer = await shake(head(Authorization="Bearer x"))
    assert (opened, status(answer)) == (None, 401)


async def test_a_configured_proxy_may_say_who_the_client_is() -> None:
    opened, _ = await shake(head(X_Forwarded_For="203.0.113.5"), proxies=("192.0.2.0/24",))
    assert opened[1].address == "203.0.113.5"
    opened, _ = await shake(head(X_Forwarded_For="203.0.113.5"))
    assert opened[1].address == "192.0.2.1"


@pytest.mark.requirement("ws.close-bounded")
@pytest.mark.parametrize("act", [lambda stream: shake_hands(FakeBroker(), stream, None, (), ()), turn_away])  # type: ignore[arg-type]
async def test_a_refused_peer_that_does_not_read_is_left_soon(
    act: Callable[[Any], Any], autojump_clock: MockClock
) -> None:
    ours, theirs = trio.testing.lockstep_stream_pair()
    with trio.fail_after(2):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(act, theirs)
            if act is not turn_away:
                await ours.send_all(head("/elsewhere"))


async def test_a_newcomer_without_a_place_is_told_so_but_not_through_tls() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    await ours.send_eof()
    await turn_away(theirs)  # type: ignore[arg-type]
    assert b"HTTP/1.1 503 " in await ours.receive_some()
    wrapped = trio.SSLStream(theirs, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), server_side=True)
    await turn_away(wrapped)  # type: ignore[arg-type]


async def test_a_stream_without_an_address_has_no_peer() -> None:
    ours, _ = trio.testing.memory_stream_pair()
    assert find_peer(ours) is None  # type: ignore[arg-type]
    one, other = trio.socket.socketpair()
    with one, other:
        assert find_peer(trio.SocketStream(one)) is None
