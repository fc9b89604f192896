"""A link keeps one stream: greeting, proof, following, coming back; and asks until it is answered."""

from collections.abc import Callable

import msgspec
import pytest
import trio
from trio.testing import MockClock

from broker.wire.keys import SigningKey
from broker.wire.refusals import refuse
from gateways import jsonrpc
from gateways.client.clockwork import Backoff, WireClock
from gateways.client.errors import Disconnected, Refused, WireFault
from gateways.client.link import WebSocketLink, read_hello, read_resume, settle
from gateways.client.signer import Signer
from tests.gateways.client.fake_wire import URL, FakeWire


class Heard:
    """Keeps what a link delivers."""

    def __init__(self) -> None:
        self.events: list[tuple[str, bytes]] = []
        self.gaps: list[str] = []

    def event(self, kind: str, params: bytes) -> None:
        self.events.append((kind, params))

    def gap(self, reason: str) -> None:
        self.gaps.append(reason)


@pytest.fixture
def link(wire: FakeWire, alfa: SigningKey) -> WebSocketLink:
    signer = Signer(alfa, wire.key.pk, WireClock(wire.now_ms))
    return WebSocketLink(URL, signer, backoff=Backoff(chance=lambda: 0.5))


async def test_a_link_proves_its_key_and_follows_its_own_stream(
    autojump_clock: MockClock, wire: FakeWire, link: WebSocketLink, nursery: trio.Nursery
) -> None:
    await nursery.start(link.run, Heard())
    assert [method for method, _ in wire.requests] == ["authenticate", "follow"]
    assert wire.sent("follow") == [b"{}"]
    assert link.cursor == "t.e.0"
    assert link.proof() == {}


@pytest.mark.requirement("client.pin-changed")
async def test_another_wires_greeting_gets_no_statement(
    autojump_clock: MockClock, wire: FakeWire, link: WebSocketLink
) -> None:
    wire.shown_pk = "ee" * 32
    with trio.fail_after(5), pytest.raises(WireFault, match="shows the key"):
        await link.run(Heard())
    assert wire.requests == []


async def test_the_first_failure_is_raised_and_later_ones_are_mended(
    autojump_clock: MockClock, wire: FakeWire, link: WebSocketLink, nursery: trio.Nursery
) -> None:
    wire.refuse_connections = 1
    with pytest.raises(Disconnected, match="refused"):
        await link.run(Heard())
    await nursery.start(link.run, Heard())
    wire.refuse_connections = 3
    await wire.drop_all()
    with trio.fail_after(30):
        await settle(link, "list_convs", b"{}")


@pytest.mark.parametrize("code", ["bad_statement", "suspended"])
async def test_a_refused_proof_is_final(
    autojump_clock: MockClock, wire: FakeWire, link: WebSocketLink, code: str
) -> None:
    wire.script("authenticate", refuse(code, "no"))
    with trio.fail_after(5), pytest.raises(Refused) as caught:
        await link.run(Heard())
    assert caught.value.code == code


async def test_a_busy_wire_is_asked_again_to_follow(
    autojump_clock: MockClock, wire: FakeWire, link: WebSocketLink, nursery: trio.Nursery
) -> None:
    await nursery.start(link.run, Heard())
    wire.script("follow", refuse("overloaded", "later", retry_after_ms=3000))
    began = trio.current_time()
    await wire.drop_all()
    with trio.fail_after(30):
        await settle(link, "list_convs", b"{}")
    assert trio.current_time() - began >= 3


@pytest.mark.requirement("client.resume")
async def test_the_cursor_moves_with_each_event_and_is_asked_for_after_a_break(
    autojump_clock: MockClock,
    wire: FakeWire,
    link: WebSocketLink,
    brav: SigningKey,
    alfa: SigningKey,
    nursery: trio.Nursery,
) -> None:
    heard = Heard()
    wire.desks["ALFA"] = alfa.pk
    await nursery.start(link.run, heard)
    await wire.ring(brav, "ALFA", "01" * 8)
    await wire.ring(brav, "ALFA", "02" * 8)
    await trio.testing.wait_all_tasks_blocked()
    assert link.cursor == "t.e.2"
    await wire.drop_all()
    await wire.ring(brav, "ALFA", "03" * 8)
    with trio.fail_after(30):
        await settle(link, "list_convs", b"{}")
    assert msgspec.json.decode(wire.sent("follow")[1]) == {"after": "t.e.2"}
    assert [msgspec.json.decode(params)["conv"][:2] for _, params in heard.events] == ["01", "02", "03"]
    assert heard.gaps == []


@pytest.mark.requirement("client.gap")
async def test_a_stream_that_can_not_be_resumed_is_told(
    autojump_clock: MockClock, wire: FakeWire, link: WebSocketLink, nursery: trio.Nursery
) -> None:
    heard = Heard()
    await nursery.start(link.run, heard)
    wire.recovered = False
    await wire.drop_all()
    with trio.fail_after(30):
        await settle(link, "list_convs", b"{}")
    assert heard.gaps == ["trimmed"]


async def test_a_stream_that_the_wire_ends_begins_anew_on_a_new_connection(
    autojump_clock: MockClock, wire: FakeWire, link: WebSocketLink, nursery: trio.Nursery
) -> None:
    await nursery.start(link.run, Heard())
    (session,) = wire.sessions
    await session.send(jsonrpc.notification("ended", {"code": None, "refusal": {}}))
    await trio.sleep(30)
    assert len(wire.sent("follow")) == 2


async def test_a_request_waits_for_the_connection(
    autojump_clock: MockClock, wire: FakeWire, link: WebSocketLink, nursery: trio.Nursery
) -> None:
    await nursery.start(link.run, Heard())
    wire.refuse_connections = 5
    await wire.drop_all()
    await trio.testing.wait_all_tasks_blocked()
    with trio.fail_after(60):
        await settle(link, "list_convs", b"{}")


@pytest.mark.requirement("client.same-bytes", "client.in-doubt", "client.rate-limited")
async def test_settling_asks_with_the_same_bytes_until_the_answer_is_final(
    autojump_clock: MockClock, wire: FakeWire, link: WebSocketLink, nursery: trio.Nursery
) -> None:
    await nursery.start(link.run, Heard())
    wire.script(
        "list_convs",
        "swallow",
        "break before",
        refuse("in_doubt", "?"),
        refuse("rate_limited", "slow down", retry_after_ms=5000),
        refuse("unavailable", "!"),
    )
    with trio.fail_after(120):
        assert msgspec.json.decode(await settle(link, "list_convs", b'{"state":"open"}')) == {"convs": []}
    assert wire.sent("list_convs") == [b'{"state":"open"}'] * 6


async def test_settling_raises_what_is_final(
    autojump_clock: MockClock, wire: FakeWire, link: WebSocketLink, nursery: trio.Nursery
) -> None:
    await nursery.start(link.run, Heard())
    wire.script("list_convs", refuse("unknown_conv", "no"))
    with pytest.raises(Refused, match="unknown_conv"):
        await settle(link, "list_convs", b"{}")


@pytest.mark.parametrize("text", [b"[]", b"{}", b'{"challenge":"a","wire":7,"time":1}', b"[" * 5000])
def test_a_greeting_that_is_none_is_a_fault(text: bytes) -> None:
    with pytest.raises(WireFault, match="greeting"):
        read_hello(text)


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: b'{"resume":' + x + b"}"])
def test_a_resume_is_read_plain_or_inside_an_answer(wrap: Callable[[bytes], bytes]) -> None:
    resume = read_resume(wrap(b'{"recovered":false,"reason":"future","from":"a.b.1","head":"a.b.2"}'))
    assert (resume.recovered, resume.reason, resume.from_) == (False, "future", "a.b.1")
    with pytest.raises(WireFault):
        read_resume(wrap(b'{"recovered":1}'))
