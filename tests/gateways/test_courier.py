"""The way out to webhooks: whom it never asks, what a slow or strange receiver costs, and HTTPS as it is."""

import socket
import ssl
import threading
from datetime import UTC, datetime
from typing import Any

import h11
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from broker.app import Outcome
from broker.clock import SystemClock
from broker.core.push import judge_url
from gateways.courier import Courier, Resolver, read_retry_after
from gateways.http import tls_context
from gateways.outbound import Outbound
from tests.gateways.test_outbound import Answers, Names
from tests.support.agents import make_agent
from tests.support.broker import open_bench, tuned
from tests.support.network import listening, serving
from tests.support.webhooks import happens, registered

HEADERS = (("content-type", "application/json"), ("webhook-id", "evt_1"))


@pytest.mark.requirement("webhook.public")
@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "017700000001", "0x7f.1", "[::1]", "[::]", "0",
     "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]",
     "[2001:0:7f00:1::]", "[::127.0.0.1]", "[fe80::1%25lo]", "[fe80::1%251]", "[fc00::1]", "169.254.169.254",
     "10.0.0.1", "192.168.0.1", "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "localhost", "localhost.",
     "127.0.0.1.", "%31%32%37.0.0.1", "127.0.0.1%00.example", "xn--"],
)  # fmt: skip
async def test_no_form_of_an_address_that_is_not_public_is_connected_to(
    host: str, connected: list[Any]
) -> None:
    """The real resolver, as it is when the broker is served."""
    trio.socket.set_custom_hostname_resolver(_Closed())
    outcome = await Courier(Outbound()).send(f"https://{host}/", HEADERS, b"{}")
    assert (outcome.status, connected) == (None, [])


class _Closed(Resolver):
    """The system's, asked for nothing that it would ask others for."""

    async def getaddrinfo(self, host: Any, port: Any, *rest: Any) -> Any:
        if host not in (b"localhost", b"localhost."):
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return await super().getaddrinfo(host, port, *rest)


@pytest.mark.requirement("webhook.public")
@pytest.mark.parametrize(
    "url",
    ["http://hooks.example/", "https://hooks.example:22/", "https://hooks.example:8443/", "ftp://hooks.example/",
     "https://u:p@hooks.example/", "https://1.1.1.1@127.0.0.1/", "https://127.0.0.1#@hooks.example/", "file:///x",
     "https://bücher.example/", "https://①②⑦.0.0.1/", "https://127。0。0。1/", "https://hooks.example\\@127.0.0.1/",
     "https://hooks.example\t/", "https://hooks.example/\r\nhost: x", "gopher://hooks.example/", ""],
)  # fmt: skip
async def test_no_other_kind_of_url_is_asked(url: str, connected: list[Any]) -> None:
    trio.socket.set_custom_hostname_resolver(Names(("127.0.0.1",)))
    outcome = await Courier(Outbound()).send(url, HEADERS, b"{}")
    assert (outcome, connected) == (Outcome(None, "not_public"), [])


@pytest.mark.requirement("webhook.public")
@pytest.mark.parametrize(
    "answers",
    [
        ("1.1.1.1", "::1"),
        ("::1", "1.1.1.1"),
        ("1.1.1.1", "::ffff:10.0.0.1"),
        ("2606:4700::1", "127.0.0.1"),
        (),
    ],
)
async def test_one_private_address_beside_a_public_one_is_enough(
    answers: tuple[str, ...], connected: list[Any]
) -> None:
    trio.socket.set_custom_hostname_resolver(Names(answers))
    outcome = await Courier(Outbound()).send("https://hooks.example/", HEADERS, b"{}")
    assert (outcome, connected) == (Outcome(None, "not_public"), [])


@pytest.mark.requirement("webhook.public")
async def test_a_name_that_is_rebound_after_the_look_leads_nowhere_else(connected: list[Any]) -> None:
    """Public first, loopback at the next question: once for each attempt it is asked, and connected to what it said."""
    names = Names(("1.1.1.1",), ("127.0.0.1",))
    trio.socket.set_custom_hostname_resolver(names)
    courier = Courier(Outbound())
    assert await courier.send("https://hooks.example/", HEADERS, b"{}") == Outcome(None, "no_answer")
    assert (connected, names.asked) == (["1.1.1.1"], 1)
    assert await courier.send("https://hooks.example/", HEADERS, b"{}") == Outcome(None, "not_public")
    assert connected == ["1.1.1.1"]


@pytest.mark.requirement("webhook.public")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_status_and_no_way(status: int) -> None:
    answers = Answers()
    answers.status, answers.headers = status, [(b"location", b"http://169.254.169.254/latest/meta-data/")]
    async with serving(answers) as served:
        outcome = await Courier(Outbound(loopback=True)).send(served.url, HEADERS, b"{}")
    assert outcome.status == status
    assert len(answers.asked) == 2  # one request and its headers


@pytest.mark.requirement("webhook.receiver")
@pytest.mark.parametrize(
    ("sends", "status"),
    [
        (b"", None),
        (b"HTTP/1.1 200 OK\r\n", None),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 3, None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{", 200),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n", 200),
        (b"HTTP/1.1 500 No\r\n\r\n", 500),
    ],
)
async def test_who_is_slow_costs_the_patience_and_what_was_said_counts(
    sends: bytes, status: int | None
) -> None:
    async def handler(stream: trio.SocketStream) -> None:
        async with stream:
            try:
                await stream.send_all(sends)
                while await stream.receive_some():
                    pass
            except trio.BrokenResourceError:
                pass

    async with listening(handler) as (host, port):
        began = trio.current_time()
        courier = Courier(Outbound(loopback=True), patience_s=0.15)
        assert (await courier.send(f"http://{host}:{port}/", HEADERS, b"{}")).status == status
        assert trio.current_time() - began < 2


@pytest.mark.requirement("webhook.receiver")
async def test_a_receiver_that_never_ends_its_answer_is_left() -> None:
    ended = trio.Event()

    async def handler(stream: trio.SocketStream) -> None:
        async with stream:
            try:
                await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
                while True:
                    await stream.send_all(b"x" * 65_536)
            except trio.BrokenResourceError:
                ended.set()

    async with listening(handler) as (host, port):
        outcome = await Courier(Outbound(loopback=True)).send(f"http://{host}:{port}/", HEADERS, b"{}")
        assert outcome == Outcome(200)
        with trio.fail_after(2):
            await ended.wait()


@pytest.mark.requirement("webhook.retry-after")
async def test_what_a_receiver_asks_for_is_passed_on_where_it_may_ask() -> None:
    answers = Answers()
    answers.headers = [(b"retry-after", b"120")]
    told = []
    async with serving(answers) as served:
        for status in (429, 503, 500, 200):
            answers.status = status
            outcome = await Courier(Outbound(loopback=True)).send(served.url, HEADERS, b"{}")
            told.append((outcome.status, outcome.retry_after_s))
    assert told == [(429, 120.0), (503, 120.0), (500, None), (200, None)]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        (" 5 ", 5.0),
        ("0", 0.0),
        ("9" * 400, 999_999_999.0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 59.0),
        ("Fri, 31 Dec 1999 23:00:00 GMT", 0.0),
        ("Fri, 31 Dec 1999 23:59:59", 59.0),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_time_to_wait_is_seconds_or_a_date(text: str, seconds: float | None) -> None:
    assert read_retry_after(text, datetime(1999, 12, 31, 23, 59, tzinfo=UTC)) == seconds


@pytest.mark.requirement("webhook.lookups")
async def test_names_that_hang_take_no_thread_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """More look-ups hang than there are threads for them; other work in threads goes on, and the loop does."""
    held, entered = threading.Event(), threading.Semaphore(0)

    def hang(*_: Any) -> Any:
        entered.release()
        held.wait(20)
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 443))]

    monkeypatch.setattr("gateways.courier.getaddrinfo", hang)
    trio.socket.set_custom_hostname_resolver(Resolver(at_once=3))
    courier, outcomes = Courier(Outbound(at_once=64), patience_s=0.3), []

    async def ask(number: int) -> None:
        outcomes.append(await courier.send(f"https://n{number}.example/", HEADERS, b"{}"))

    try:
        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(ask, number)
            for _ in range(3):
                await trio.to_thread.run_sync(entered.acquire)
            with trio.fail_after(2):
                assert (
                    await trio.to_thread.run_sync(lambda: "another thread's work") == "another thread's work"
                )
        assert set(outcomes) == {Outcome(None, "no_answer")}
        assert not entered.acquire(blocking=False)  # three at once, and no more
    finally:
        held.set()


async def test_the_resolver_reads_what_the_system_reads() -> None:
    resolver = Resolver()
    found = await resolver.getaddrinfo(b"127.1", 443, type=socket.SOCK_STREAM)
    assert found[0][4] == ("127.0.0.1", 443)
    assert await resolver.getnameinfo(("127.0.0.1", 80), socket.NI_NUMERICHOST | socket.NI_NUMERICSERV) == (
        "127.0.0.1",
        "80",
    )


class Counted(Answers):
    """That can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self._came = trio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await super().__call__(scope, receive, send)
        self._came.set()
        self._came = trio.Event()

    async def count(self, most: int) -> None:
        while len(self.asked) < most:
            await self._came.wait()


@pytest.mark.requirement("webhook.event")
async def test_over_https_as_it_is(certificate: tuple[str, str]) -> None:
    """A broker, its way out, and a receiver with a certificate of its own."""
    cert, key = certificate
    answers = Counted()
    answers.status = 204
    answers.headers, answers.body = [], b""
    way = Courier(Outbound(loopback=True, tls=ssl.create_default_context(cafile=cert)))
    async with (
        serving(answers, tls=tls_context(cert, key)) as served,
        open_bench(tuned(webhooks={"allow_loopback": True}), clock=SystemClock(), courier=way) as bench,
    ):
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann, f"https://localhost:{served.address[1]}/hook")
        assert await bench.call("test_webhook", ann) == {"taken": True, "status": 204}
        await happens(bench, ann, 1, 2)
        with trio.fail_after(10):
            await answers.count(6)
    assert [each[:2] for each in answers.asked[::2]] == [("POST", "/hook")] * 3
    assert b"webhook-signature" in answers.asked[1]


async def test_cancelling_closes_the_connection(autojump_clock: MockClock) -> None:
    del autojump_clock
    closed = trio.Event()

    async def handler(stream: trio.SocketStream) -> None:
        async with stream:
            try:
                while await stream.receive_some():
                    pass
            except trio.BrokenResourceError:
                pass
            closed.set()

    async with listening(handler) as (host, port):
        with trio.move_on_after(1):
            await Courier(Outbound(loopback=True)).send(f"http://{host}:{port}/", HEADERS, b"{}")
        await closed.wait()


PIECES = st.sampled_from(
    ["https://", "http://", "//", "/", "\\", "@", ":", "#", "?", "%", "[", "]", "::1", "127.0.0.1", "hooks.example",
     ".", "443", "80", "a", "é", "。", " ", "\t", "\n", "\x00", "..", "%00", "%2f", "&", "=", ";", "'", "user"]
)  # fmt: skip
URLS = st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=9).map("".join))


@pytest.mark.requirement("webhook.public")
@given(rest=URLS, prefix=st.sampled_from(["", "https://", "https://hooks.example", "https://hooks.example/"]))
def test_who_takes_a_url_and_who_asks_it_read_it_alike(rest: str, prefix: str) -> None:
    """What set_webhook takes is never refused later by its form, and h11 writes it as it stands."""
    url = prefix + rest
    if judge_url(url) is None:
        parts, port = Outbound()._target(url)
        assert (parts.scheme, port) == ("https", 443)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        h11.Request(method="POST", target=target, headers=[("host", parts.netloc)])
