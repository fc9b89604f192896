"""The way out: which addresses are asked, and what comes back from those."""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
import trio
from trio.abc import HostnameResolver

from gateways.http import tls_context
from gateways.outbound import PIECES, NoAnswer, NotPublic, Outbound, is_public
from tests.support.network import listening, serving

NOT_PUBLIC = (
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254",
    "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:8.8.8.8",
    "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:7f00:1::", "2001:10::1",
    "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1", "fd12::1",
    "fe80::1", "fe80::1%1", "fec0::1", "ff02::1", "ff0e::1", "", "localhost", "1.2.3", "0x7f000001",
)  # fmt: skip
PUBLIC = ("1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "223.255.255.255",
          "2001:200::1", "2001:4860:4860::8888", "2606:4700:4700::1111", "3ffe::1")  # fmt: skip


@pytest.mark.requirement("signin.outbound")
@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_what_is_not_public_in_whatever_form(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public(address: str) -> None:
    assert is_public(address)


class Names(HostnameResolver):
    """A resolver that gives the next of its answers at each question, and counts them."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def getaddrinfo(
        self, host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> Any:
        self.asked += 1
        found = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        six = trio.socket.AF_INET6
        return [
            (six, type, 0, "", (each, port, 0, 0))
            if ":" in each
            else (trio.socket.AF_INET, type, 0, "", (each, port))
            for each in found
        ]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> Any:
        raise NotImplementedError


@pytest.mark.requirement("signin.outbound")
@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.0.0.1", "[::1]", "[::ffff:127.0.0.1]",
     "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "0", "169.254.169.254", "[fe80::1]"],
)  # fmt: skip
async def test_an_address_that_is_not_public_is_never_connected_to(host: str, connected: list[Any]) -> None:
    """The real resolver reads these by itself, without asking anybody."""
    with pytest.raises(NotPublic):
        await Outbound().request("GET", f"https://{host}/client.json")
    assert connected == []


@pytest.mark.requirement("signin.outbound")
@pytest.mark.parametrize(
    "addresses",
    [("10.0.0.1",), ("1.1.1.1", "10.0.0.1"), ("1.1.1.1", "::1"), ("2606:4700::1", "fd00::1"), ()],
)
async def test_one_private_address_beside_public_ones_is_enough(
    addresses: tuple[str, ...], connected: list[Any]
) -> None:
    trio.socket.set_custom_hostname_resolver(Names(addresses))
    with pytest.raises(NotPublic):
        await Outbound().request("GET", "https://app.example/client.json")
    assert connected == []


@pytest.mark.requirement("signin.outbound")
async def test_a_name_that_is_rebound_after_the_look_is_connected_to_where_we_looked(
    connected: list[Any],
) -> None:
    names = Names(("1.1.1.1",), ("127.0.0.1",))
    trio.socket.set_custom_hostname_resolver(names)
    with pytest.raises(NoAnswer):
        await Outbound().request("GET", "https://app.example/client.json")
    assert (connected, names.asked) == (["1.1.1.1"], 1)


@pytest.mark.requirement("signin.outbound")
async def test_one_address_is_asked_so_many_times_a_minute_whatever_its_names(
    connected: list[Any], monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    monkeypatch.setattr("gateways.outbound.A_MINUTE", 3)
    out, began, said = Outbound(), trio.current_time(), list[str]()
    for host, address, patience_s in [
        *(("a.example", "1.1.1.1", 5), ("b.example", "1.1.1.1", 5), ("c.example", "1.1.1.1", 5)),
        *(("d.example", "1.1.1.1", 5), ("a.example", "8.8.8.8", 5), ("e.example", "1.1.1.1", 61)),
    ]:
        trio.socket.set_custom_hostname_resolver(Names((address,)))
        with pytest.raises(NoAnswer) as told:
            await out.request("GET", f"https://{host}/x", patience_s=patience_s)
        said.append(str(told.value))
    refused = "ConnectionRefusedError"
    assert said == [refused] * 3 + ["it took longer than 5 s"] + [refused] * 2
    assert connected == ["1.1.1.1"] * 3 + ["8.8.8.8", "1.1.1.1"]
    assert 60 <= trio.current_time() - began < 61


@pytest.mark.requirement("signin.outbound")
async def test_answers_before_the_answer_are_few() -> None:
    async def handler(stream: trio.SocketStream) -> None:
        async with stream:
            early = int((await stream.receive_some()).split(b" ")[1].removeprefix(b"/"))
            with suppress(trio.BrokenResourceError):
                await stream.send_all(b"HTTP/1.1 103 \r\n\r\n" * early + b"HTTP/1.1 204 \r\n\r\n")

    async with listening(handler) as (host, port):
        way = Outbound(loopback=True)
        assert (await way.request("GET", f"http://{host}:{port}/8")).status == 204
        with pytest.raises(NoAnswer, match="answers came before"):
            await way.request("GET", f"http://{host}:{port}/9")


@pytest.mark.requirement("signin.outbound")
async def test_an_answer_in_tiny_pieces_costs_little() -> None:
    async def handler(stream: trio.SocketStream) -> None:
        async with stream:
            count = int((await stream.receive_some()).split(b" ")[1].removeprefix(b"/"))
            head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
            with suppress(trio.BrokenResourceError):
                await stream.send_all(head + b"1\r\nx\r\n" * count + b"0\r\n\r\n")

    async with listening(handler) as (host, port):
        way = Outbound(loopback=True)
        assert (await way.request("GET", f"http://{host}:{port}/{PIECES - 1}")).body == b"x" * (PIECES - 1)
        with pytest.raises(NoAnswer, match="pieces"):
            await way.request("GET", f"http://{host}:{port}/{PIECES + 8}")
        assert (await way.status("GET", f"http://{host}:{port}/{40 * PIECES}"))[0] == 200


@pytest.mark.requirement("signin.outbound")
@pytest.mark.parametrize(
    "url",
    ["http://app.example/x", "https://app.example:8443/x", "https://app.example:22/x", "https://u:p@app.example/x",
     "https:///x", "ftp://app.example/x", "file:///etc/passwd", "gopher://app.example/x", "//app.example/x", "x",
     "https://[::1/x", "https://app.example:x/y", "https://bücher.example/x", "https://app.example/a b",
     "https://app.example/\r\nx: y", "https://" + "a" * 70 + ".example/x"],
)  # fmt: skip
async def test_no_other_url_is_asked(url: str, connected: list[Any]) -> None:
    trio.socket.set_custom_hostname_resolver(Names(("1.1.1.1",)))
    with pytest.raises((NotPublic, NoAnswer)):
        await Outbound().request("GET", url)
    assert connected in ([], ["1.1.1.1"])
    assert connected == [] or "a" * 70 in url


class Answers:
    """A server: what it was asked, and what it answers."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.status = 200
        self.body = b"{}"
        kind = (b"content-type", b"application/json")
        self.headers: list[tuple[bytes, bytes]] = [kind, (b"x-two", b"1"), (b"x-two", b"2")]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        self.asked.append((scope["method"], scope["path"], scope["query_string"], message.get("body")))
        self.asked.append(dict(scope["headers"]))
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})


@pytest.fixture
async def server() -> AsyncIterator[tuple[Answers, str]]:
    answers = Answers()
    async with serving(answers) as served:
        yield answers, served.url


async def test_what_comes_back_is_the_whole_answer(server: tuple[Answers, str]) -> None:
    answers, url = server
    answers.body = json.dumps({"a": "b" * 50_000}).encode()
    way = Outbound(loopback=True)
    got = await way.request("POST", f"{url}/x?y=1", body=b"data", headers=[("x-z", "1")])
    assert (got.status, got.body, got.headers["x-two"]) == (200, answers.body, "1, 2")
    assert answers.asked[0] == ("POST", "/x", b"y=1", b"data")
    assert answers.asked[1][b"x-z"] == b"1"
    assert b"cookie" not in answers.asked[1]


@pytest.mark.requirement("signin.outbound")
async def test_a_redirect_is_an_answer_and_no_way(server: tuple[Answers, str]) -> None:
    answers, url = server
    answers.status, answers.headers = 302, [(b"location", b"http://127.0.0.1:1/")]
    assert (await Outbound(loopback=True).request("GET", url)).status == 302
    assert len(answers.asked) == 2


@pytest.mark.requirement("signin.outbound")
async def test_an_answer_beyond_the_bound_is_none(server: tuple[Answers, str]) -> None:
    answers, url = server
    way = Outbound(loopback=True)
    answers.body = b"x" * 100
    assert len((await way.request("GET", url, most=100)).body) == 100
    with pytest.raises(NoAnswer):
        await way.request("GET", url, most=99)


@pytest.mark.requirement("signin.outbound")
@pytest.mark.parametrize(
    "sent",
    [b"", b"x", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{}", b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 100_000,
     b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"],
)  # fmt: skip
async def test_what_is_no_http_is_no_answer(sent: bytes) -> None:
    async def handler(stream: trio.SocketStream) -> None:
        async with stream:
            try:
                await stream.receive_some(1024)
                await stream.send_all(sent)
            except trio.BrokenResourceError:
                pass

    async with listening(handler) as (host, port):
        with pytest.raises(NoAnswer):
            await Outbound(loopback=True).request("GET", f"http://{host}:{port}/")


@pytest.mark.requirement("signin.outbound")
@pytest.mark.parametrize("sends", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{", b"H"])
async def test_one_who_is_slow_is_given_up_in_time(sends: bytes) -> None:
    async def handler(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.send_all(sends)
            await trio.sleep_forever()

    async with listening(handler) as (host, port):
        started = trio.current_time()
        with pytest.raises(NoAnswer, match="longer"):
            await Outbound(loopback=True).request("GET", f"http://{host}:{port}/", patience_s=0.1)
        assert trio.current_time() - started < 2


@pytest.mark.requirement("signin.outbound")
async def test_a_host_is_the_one_that_its_certificate_says_or_there_is_no_answer(
    certificate: tuple[str, str],
) -> None:
    cert, key = certificate
    trusting = Outbound(loopback=True, tls=ssl.create_default_context(cafile=cert))
    async with serving(Answers(), tls=tls_context(cert, key)) as served:
        port = served.address[1]
        assert (await trusting.request("GET", f"https://localhost:{port}/")).status == 200
        for way, host in ((trusting, "127.0.0.1"), (Outbound(loopback=True), "localhost")):
            with pytest.raises(NoAnswer):
                await way.request("GET", f"https://{host}:{port}/")
        with pytest.raises(NotPublic):
            await Outbound(tls=ssl.create_default_context(cafile=cert)).request("GET", "https://localhost/")


async def test_what_speaks_no_tls_is_no_answer() -> None:
    async def handler(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some(1024)
            await stream.send_all(b"HTTP/1.1 400 no TLS here\r\n\r\n")

    async with listening(handler) as (host, port):
        with pytest.raises(NoAnswer):
            await Outbound(loopback=True).request("GET", f"https://{host}:{port}/")
