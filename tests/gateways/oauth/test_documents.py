"""Documents of clients: fetched once, kept as they say, and nobody flooded."""

import json
import tracemalloc
from typing import Any

import pytest
import trio

from broker.clock import VirtualClock
from gateways.oauth.documents import A_MINUTE, FAILED_S, KEPT, LONGEST_S, MOST, UNSAID_S, Documents, lives_for
from gateways.outbound import Answer, NoAnswer, NotPublic
from tests.support.broker import START_MS

URL = "https://app.example/client"
GOOD = {"client_id": URL, "client_name": "App"}


class Way:
    """Stands in for the way out: gives what it is told to, and counts."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.status = 200
        self.headers = {"content-type": "application/json"}
        self.body = json.dumps(GOOD).encode()
        self.fault: Exception | None = None

    async def request(self, method: str, url: str, **options: Any) -> Answer:
        assert options["most"] == MOST
        self.asked.append(url)
        await trio.sleep(1)
        if self.fault is not None:
            raise self.fault
        return Answer(self.status, self.headers, self.body)


def made() -> tuple[Way, Documents]:
    way: Any = Way()
    return way, Documents(way, VirtualClock(START_MS))


@pytest.mark.requirement("signin.documents")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, UNSAID_S),
        ({"cache-control": "public"}, UNSAID_S),
        ({"cache-control": "max-age=60"}, 60),
        ({"cache-control": "public, Max-Age=60, x"}, 60),
        ({"cache-control": "max-age=60", "age": "20"}, 40),
        ({"cache-control": "max-age=60", "age": "70"}, 0),
        ({"cache-control": "max-age=60", "age": "x"}, 60),
        ({"cache-control": "max-age=999999999"}, LONGEST_S),
        ({"cache-control": "no-store, max-age=60"}, 0),
        ({"cache-control": "no-cache"}, 0),
    ],
)
async def test_a_document_is_kept_as_its_headers_say(
    headers: dict[str, str], seconds: float, autojump_clock: trio.testing.MockClock
) -> None:
    assert lives_for(headers) == seconds
    way, documents = made()
    way.headers = {**way.headers, **headers}
    assert await documents.find(URL) == GOOD
    if seconds:
        await trio.sleep(seconds - 1)
        assert await documents.find(URL) == GOOD
        assert len(way.asked) == 1
    await trio.sleep(2)
    assert await documents.find(URL) == GOOD
    assert len(way.asked) == 2


@pytest.mark.requirement("signin.documents")
@pytest.mark.parametrize(
    "changes",
    [
        {"status": 404},
        {"status": 302},
        {"status": 206},
        {"headers": {"content-type": "text/html"}},
        {"headers": {}},
        {"headers": {"content-type": "application/json", "content-encoding": "gzip"}},
        {"body": b"[]"},
        {"body": b"nonsense"},
        {"body": b'{"client_id":"a","client_id":"b"}'},
        {"body": b"[" * 10_000},
        {"body": b"\xff"},
        {"fault": NotPublic("x")},
        {"fault": NoAnswer("x")},
    ],
)
async def test_what_is_no_document_is_none_for_a_moment(
    changes: dict[str, Any], autojump_clock: trio.testing.MockClock
) -> None:
    way, documents = made()
    for name, value in changes.items():
        setattr(way, name, value)
    assert await documents.find(URL) is None
    assert await documents.find(URL) is None
    assert len(way.asked) == 1
    await trio.sleep(FAILED_S + 1)
    way.status, way.headers, way.body, way.fault = 200, {"content-type": "application/x+json"}, b"{}", None
    assert await documents.find(URL) == {}


async def test_many_at_once_ask_once(autojump_clock: trio.testing.MockClock) -> None:
    way, documents = made()
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(documents.find, URL)
    assert way.asked == [URL]


async def test_one_who_gives_up_leaves_the_others_theirs(autojump_clock: trio.testing.MockClock) -> None:
    documents = made()[1]
    async with trio.open_nursery() as nursery:

        async def give_up() -> None:
            with trio.move_on_after(0.5):
                await documents.find(URL)

        nursery.start_soon(give_up)
        nursery.start_soon(documents.find, URL)
    assert await documents.find(URL) == GOOD


@pytest.mark.requirement("signin.documents")
async def test_a_host_is_asked_thirty_times_a_minute_and_memory_is_bounded(
    autojump_clock: trio.testing.MockClock,
) -> None:
    way, documents = made()
    way.fault = NoAnswer("x")
    async with trio.open_nursery() as nursery:
        for n in range(3 * A_MINUTE):
            nursery.start_soon(documents.find, f"{URL}/{n}")
    assert len(way.asked) == A_MINUTE
    assert await documents.find("https://other.example/client") is None
    assert len(way.asked) == A_MINUTE + 1
    async with trio.open_nursery() as nursery:
        for n in range(KEPT + 10):
            nursery.start_soon(documents.find, f"https://{n}.example/client")
    assert len(documents._kept) == KEPT


@pytest.mark.requirement("signin.documents")
async def test_what_others_have_put_into_a_document_takes_no_more_room_than_its_text(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Anybody may have 512 documents kept; of the smallest lists each byte is twenty once it is read."""
    way, documents = made()
    empty = json.dumps({**GOOD, "x": [[]] * (MOST // 4 - 100)}).encode()
    many = 30
    tracemalloc.start()
    try:
        for n in range(many):
            way.body = empty + b" " * n
            assert await documents.find(f"https://{n}.example/client") is not None
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * many * MOST


@pytest.mark.requirement("signin.documents")
async def test_for_one_address_no_more_are_asked_than_for_others(
    autojump_clock: trio.testing.MockClock,
) -> None:
    way, documents = made()

    async def ask(n: int, address: str | None) -> bool:
        return await documents.find(f"https://{n}.example/client", address) is not None

    for n in range(A_MINUTE):
        assert await ask(n, f"2001:db8::{n:x}")
    assert not await ask(100, "2001:db8::1:1")
    assert len(way.asked) == A_MINUTE
    assert await ask(5, "2001:db8::1:1")  # it is kept already
    assert await ask(101, "192.0.2.1")
    for n in range(2 * A_MINUTE):
        assert await ask(200 + n, "127.0.0.1")
    await trio.sleep(61)
    assert await ask(103, "2001:db8::1:1")
