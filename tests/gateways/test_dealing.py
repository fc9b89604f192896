"""The dealing port: frames in and out, and every way in which a connection ends."""

import datetime
import json
import logging
import ssl
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
import trio
import trio.testing
import trio_websocket
import websockets.trio.client
from trio.testing import MockClock
from websockets.frames import Opcode

from gateways.dealing import text_frame
from gateways.frames import FRAGMENTS
from tests.support.broker import open_bench
from tests.support.broker_fake import FakeBroker, proof
from tests.support.peers import trickle
from tests.support.ws import SETTINGS, Client, authenticate, masked, open_port, request

SUITE = Path(__file__).parents[1] / "vectors/jsontestsuite/test_parsing"
CASES = [(path.stem, path.read_bytes()) for path in sorted(SUITE.glob("n_*.json"))]
ECHO = request(1, "echo")


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a fresh certificate for localhost, and a client's that trusts it."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "both.pem").write_bytes(secret + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "both.pem")
    return server, ssl.create_default_context(cadata=pem.decode())


def echoed(answer: dict[str, Any]) -> bool:
    return "result" in answer


# The protocol, by independent clients


@pytest.mark.requirement("ws.one-protocol", "ws.hello-first", "ws.authenticate", "ws.follow")
async def test_a_deal_is_made_with_trio_websocket() -> None:
    async with open_bench() as bench, open_port(bench.broker, sockets=True) as port:
        abcd, efgh = await bench.open("ABCD"), await bench.open("EFGH")
        async with trio_websocket.open_websocket(
            "127.0.0.1", port.address[1], "/ws", use_ssl=False
        ) as dealer:
            hello = json.loads(await dealer.get_message())
            challenge = hello["params"]["challenge"]
            await dealer.send_message(
                request(1, "authenticate", **authenticate(abcd, bench, challenge)).decode()
            )
            await dealer.send_message(request(2, "follow", code="ABCD").decode())
            assert [json.loads(await dealer.get_message())["id"] for _ in range(2)] == [1, 2]
            line = await bench.dial(efgh, abcd)
            ring = json.loads(await dealer.get_message())
            assert (ring["method"], ring["params"]["conv"]) == ("ring", line.conv)
            await dealer.send_message(request(3, "send_env", **line.next("PICKUP")).decode())
            kinds = {json.loads(await dealer.get_message()).get("method", "answer") for _ in range(2)}
            assert kinds == {"env", "answer"}


@pytest.mark.requirement("ws.one-protocol")
async def test_the_other_library_can_talk_as_well() -> None:
    async with open_port(FakeBroker(), sockets=True) as port:
        uri = f"ws://127.0.0.1:{port.address[1]}/"
        async with websockets.trio.client.connect(uri, proxy=None) as dealer:
            assert json.loads(await dealer.recv())["method"] == "hello"
            await dealer.send(ECHO.decode())
            assert echoed(json.loads(await dealer.recv()))
            pong = await dealer.ping()
            with trio.fail_after(5):
                await pong.wait()


@pytest.mark.requirement("ws.upgrade-proof", "ws.follow-capability")
async def test_a_proof_on_the_upgrade_is_as_good_as_one_in_a_frame() -> None:
    async with open_port(FakeBroker()) as port:
        client = await port.dial({"Authorization": f"Turret {proof()}"})
        assert "result" in await client.ask("follow")


async def test_tls_is_spoken_where_a_context_is_given(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    server, trusting = tls
    async with open_port(FakeBroker(), sockets=True, ssl_context=server) as port:
        raw = await port.connect()
        client = await Client.open(trio.SSLStream(raw, trusting, server_hostname="localhost"))
        assert echoed(await client.ask("echo", much="x" * 30_000))
        await client.close()
        plain = await port.connect()
        await plain.send_all(b"GET / HTTP/1.1\r\n\r\n")
        with trio.fail_after(5):
            assert b"101" not in await plain.receive_some()


# Frames


@pytest.mark.requirement("ws.concurrent")
async def test_all_frames_of_one_packet_are_answered() -> None:
    async with open_port(FakeBroker()) as port:
        client = await port.dial()
        await client.send(*(request(n, "echo") for n in range(200)))
        assert {(await client.receive())["id"] for _ in range(200)} == set(range(200))


async def test_frames_may_come_byte_by_byte() -> None:
    async with open_port(FakeBroker()) as port:
        client = await port.dial()
        await trickle(client.stream, masked(ECHO) + masked(b"p", Opcode.PING) + masked(request(2, "echo")))
        assert [(await client.receive())["id"] for _ in range(2)] == [1, 2]


async def test_a_message_may_come_in_fragments_with_pings_between_and_inside_a_character() -> None:
    text = request(1, "echo", text="grün €")
    async with open_port(FakeBroker()) as port:
        client = await port.dial()
        for place in range(len(text)):
            kind = Opcode.CONT if place else Opcode.TEXT
            frame = masked(text[place : place + 1], kind, fin=place == len(text) - 1)
            await client.send_raw(frame + masked(b"", Opcode.PING))
        assert (await client.receive())["result"]["echo"]["text"] == "grün €"


@pytest.mark.requirement("ws.no-silence")
async def test_a_binary_message_is_answered_and_the_connection_goes_on() -> None:
    async with open_port(FakeBroker()) as port:
        client = await port.dial()
        await client.send_raw(masked(b"\xff\x00", Opcode.BINARY))
        await client.send_raw(masked(b"\xff", Opcode.BINARY, fin=False) + masked(b"\xfe", Opcode.CONT))
        assert [(await client.receive())["error"]["code"] for _ in range(2)] == [-32600, -32600]
        assert echoed(await client.ask("echo"))


@pytest.mark.requirement("ws.malformed-frame", "ws.utf8")
async def test_every_broken_text_of_the_json_suite_gets_a_typed_error_or_is_no_utf8() -> None:
    async with open_port(FakeBroker()) as port:
        client = await port.dial()
        for name, data in CASES:
            await client.send(data[:60_000])
            try:
                data.decode()
            except UnicodeDecodeError:
                assert (await client.wait_closed())[0] == 1007, name
                client = await port.dial()
            else:
                assert (await client.receive())["error"]["code"] == -32700, name
        assert echoed(await client.ask("echo"))


@pytest.mark.requirement("ws.utf8")
async def test_text_that_is_no_utf8_closes_with_1007_also_in_fragments() -> None:
    async with open_port(FakeBroker()) as port:
        client = await port.dial()
        await client.send_raw(masked(b'"\xe2\x82', fin=False) + masked(b'"', Opcode.CONT))
        assert (await client.wait_closed())[0] == 1007


@pytest.mark.requirement("ws.frame-limit")
async def test_a_message_of_the_limit_is_taken_and_one_byte_more_closes_with_1009() -> None:
    frame = request(1, "echo", pad="")
    frame = request(1, "echo", pad="x" * (65_536 - len(frame)))
    assert len(frame) == 65_536
    async with open_port(FakeBroker()) as port:
        client = await port.dial()
        await client.send(frame)
        assert echoed(await client.receive())
        await client.send(frame + b" ")
        assert (await client.wait_closed())[0] == 1009


@pytest.mark.requirement("ws.frame-limit")
async def test_a_frame_that_only_announces_too_much_is_refused_before_it_comes() -> None:
    async with open_port(FakeBroker()) as port:
        client = await port.dial()
        await client.send_raw(b"\x81\xff" + struct.pack("!Q", 2**40) + b"mask")
        assert (await client.wait_closed())[0] == 1009


@pytest.mark.requirement("ws.frame-limit")
@pytest.mark.parametrize("size", [0, 1, 1000])
async def test_endless_fragments_are_cut_at_the_limit(size: int) -> None:
    async with open_port(FakeBroker()) as port:
        client = await port.dial()
        client.answers = False

        async def flood() -> None:
            await client.send_raw(masked(b"", fin=False))
            with suppress(trio.BrokenResourceError):
                for _ in range(3 * FRAGMENTS):
                    await client.send_raw(masked(b"x" * size, Opcode.CONT, fin=False))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(flood)
            assert (await client.wait_closed())[0] == 1009
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x81\x01a", 1002),  # not masked
        (b"\xf1\x80mask", 1002),  # reserved bits
        (b"\x83\x80mask", 1002),  # an unknown opcode
        (masked(b"a", Opcode.CONT), 1002),
        (masked(b"a", fin=False) + masked(b"b"), 1002),
        (masked(b"x" * 10, Opcode.PING)[:1] + b"\xfe\x00\x7e" + b"mask" + b"x" * 126, 1002),
        (masked(b"\x00", Opcode.CLOSE), 1002),
        (masked(struct.pack("!H", 1005), Opcode.CLOSE), 1002),
    ],
    ids=[
        "unmasked",
        "reserved bits",
        "opcode",
        "stray",
        "interleaved",
        "long ping",
        "short close",
        "close 1005",
    ],
)
async def test_a_breach_of_the_protocol_closes_with_its_code(data: bytes, code: int) -> None:
    async with open_port(FakeBroker()) as port:
        client = await port.dial()
        await client.send_raw(data)
        assert (await client.wait_closed())[0] == code


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536, 200_000])
async def test_frames_of_every_length_are_written_as_the_codec_would(size: int) -> None:
    from websockets.frames import Frame

    payload = b"x" * size
    assert text_frame(payload) == Frame(Opcode.TEXT, payload).serialize(mask=False)


async def test_an_answer_of_a_megabyte_arrives_whole() -> None:
    broker = FakeBroker()
    broker.answers["send_env"] = {"much": "y" * 1_000_000}
    async with open_port(broker, sockets=True) as port:
        client = await port.dial()
        assert len((await client.ask("send_env"))["result"]["much"]) == 1_000_000


@pytest.mark.requirement("ws.back-pressure")
async def test_a_client_that_asks_for_much_at_once_and_reads_gets_all_of_it() -> None:
    broker = FakeBroker()
    broker.answers["send_env"] = {"much": "y" * 4_000_000}
    async with open_port(broker, sockets=True) as port:
        client = await port.dial()
        await client.send(*(request(n, "send_env") for n in range(4)))
        answers = [await client.receive() for _ in range(4)]
        assert sorted(each["id"] for each in answers) == [0, 1, 2, 3]
        assert {len(each["result"]["much"]) for each in answers} == {4_000_000}


def wild(first: int, payload: bytes) -> bytes:
    """A masked frame with any first byte, allowed or not."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    return bytes([first]) + length + bytes(4) + payload


PAYLOADS = [ECHO, b"", b"{}", b"\xff", b"\x03\xe8", b"\x03\xe8\xff", b"x" * 126]
USUAL = [0x81, 0x82, 0x01, 0x02, 0x00, 0x80, 0x88, 0x89, 0x8A]
ANYTHING = st.binary(max_size=60) | st.lists(
    st.builds(wild, st.sampled_from(USUAL) | st.integers(0, 255), st.sampled_from(PAYLOADS)), max_size=12
).map(b"".join)


@pytest.mark.requirement("ws.contained", "ws.close-bounded")
@hypothesis.given(ANYTHING, st.booleans())
async def test_whatever_bytes_come_the_peer_gets_whole_frames_and_no_fault_is_met(
    data: bytes, slowly: bool
) -> None:
    faults: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: faults.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("gateways").addHandler(handler)
    try:
        async with open_port(FakeBroker()) as port:
            client = await port.dial()
            client.answers = False
            with suppress(trio.BrokenResourceError):
                await (trickle(client.stream, data) if slowly else client.send_raw(data))
            await client.stream.send_eof()  # type: ignore[attr-defined]
            await client.wait_closed()
            assert client.protocol.parser_exc is None or isinstance(client.protocol.parser_exc, EOFError)
    finally:
        logging.getLogger("gateways").removeHandler(handler)
    assert faults == []


# Signs of life


@pytest.mark.requirement("ws.ping")
async def test_a_peer_that_answers_no_ping_is_gone_30_s_after_its_last_sign_of_life(
    autojump_clock: MockClock,
) -> None:
    async with open_port(FakeBroker()) as port:
        client = await port.dial()
        client.answers = False
        await trio.sleep(7)
        await client.send(ECHO)
        start = trio.current_time()
        assert (await client.wait_closed(40))[0] == 1006
        assert trio.current_time() - start == pytest.approx(SETTINGS.streams.dead_s, abs=0.01)
        assert client.pings == 1


@pytest.mark.requirement("ws.ping", "ws.contained")
async def test_an_idle_peer_that_answers_pings_stays(autojump_clock: MockClock) -> None:
    async with open_port(FakeBroker()) as port:
        client = await port.dial()
        with trio.move_on_after(600):
            await client.receive(seconds=700)
        assert client.pings in (29, 30)
        assert echoed(await client.ask("echo"))


@pytest.mark.requirement("ws.ping")
async def test_a_peer_that_only_talks_and_answers_no_ping_stays(autojump_clock: MockClock) -> None:
    async with open_port(FakeBroker()) as port:
        client = await port.dial()
        client.answers = False
        for _ in range(20):
            await trio.sleep(15)
            assert echoed(await client.ask("echo"))


@pytest.mark.requirement("ws.ping", "ws.back-pressure")
async def test_a_peer_is_not_taken_for_dead_while_we_do_not_read_from_it(autojump_clock: MockClock) -> None:
    broker = FakeBroker()

    async def long_poll(*_: Any) -> dict[str, int]:
        await trio.sleep(45)
        return {}

    broker.answers["desk_rings"] = long_poll
    async with open_port(broker) as port:
        client = await port.dial()
        await client.send(*(request(n, "desk_rings") for n in range(100)))
        answers = [(await client.receive(200))["id"] for _ in range(100)]
        assert sorted(answers) == list(range(100))
