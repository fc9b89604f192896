"""Receivers of webhooks without a network, and what makes events for them."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import standardwebhooks.webhooks
import trio
from standardwebhooks import Webhook
from trio.testing import wait_all_tasks_blocked

from broker.actors.calls import agent_stream
from broker.actors.push import read_push
from broker.app import Caller, Outcome
from broker.clock import VirtualClock
from broker.config import Settings
from broker.core.push import PushRow
from broker.store.port import Deliver, Store, Unit
from broker.wire.keys import SigningKey
from tests.support.broker import Bench, open_bench, tuned

URL = "https://hooks.example/in"
KEY = SigningKey.generate()
Answer = Callable[[str, int], Outcome]


class Post(msgspec.Struct):
    """One request as it came."""

    at: int
    """Wall milliseconds."""
    url: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """A courier that keeps what it is given. `answer` says what comes of a request, by its id and how often it came;
    while `shut` is an event that is not set nothing is answered."""

    def __init__(self, answer: Answer | int = 204) -> None:
        self.posts: list[Post] = []
        self.answer = answer
        self.shut: trio.Event | None = None
        self.came = trio.Event()
        self.under_way = self.most = 0
        self.now: Callable[[], int] = lambda: 0

    async def send(self, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> Outcome:
        post = Post(self.now(), url, dict(headers), body)
        self.posts.append(post)
        self.came.set()
        self.came = trio.Event()
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await trio.lowlevel.checkpoint()
            if self.shut is not None:
                await self.shut.wait()
        finally:
            self.under_way -= 1
        if isinstance(self.answer, int):
            return Outcome(self.answer)
        return self.answer(post.id, sum(each.id == post.id for each in self.posts))

    async def wait(self, count: int) -> list[Post]:
        """Wait until so many requests came."""
        with trio.fail_after(2 * 86_400):  # virtual seconds
            while len(self.posts) < count:
                await self.came.wait()
        return self.posts

    @property
    def numbers(self) -> list[int]:
        """The numbers of the events (see `happens`), as they came."""
        return [post.event["data"]["n"] for post in self.posts if "n" in post.event["data"]]


async def happens(bench: Bench, caller: Caller, *numbers: int) -> None:
    """An event for each number on the agent's stream, in one commit."""
    assert caller.agent is not None
    stream, at = agent_stream(caller.agent), bench.clock.now_ms()
    deliver = tuple(
        Deliver(stream, "notice", data=b'{"what":"test","n":%d}' % number, at=at) for number in numbers
    )
    await bench.store.commit(Unit(deliver=deliver))


async def registered(bench: Bench, caller: Caller, url: str = URL) -> str:
    """A webhook for the agent; its secret."""
    return str((await bench.call("set_webhook", caller, url=url))["secret"])


async def row_of(bench: Bench, caller: Caller) -> PushRow:
    """The agent's webhook as stored."""
    assert caller.agent is not None
    row = await read_push(bench.store, caller.agent)
    assert row is not None
    return row


async def settled(bench: Bench, every_s: float = 5.0) -> None:
    """Wait until no push has anything to do, looking every so many virtual seconds."""
    await wait_all_tasks_blocked()
    with trio.fail_after(2 * 86_400):
        while bench.broker.statistics().pushes.waiting:  # noqa: ASYNC110  # nothing tells of it
            await trio.sleep(every_s)


def verify(monkeypatch: pytest.MonkeyPatch, secret: str, post: Post) -> Any:
    """What the receivers' library makes of a request, at the moment when it came; raises what it raises."""

    class Then(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.fromtimestamp(post.at / 1000, UTC)

    with monkeypatch.context() as patched:
        patched.setattr(standardwebhooks.webhooks, "datetime", Then)
        return Webhook(secret).verify(post.body, post.headers)


@asynccontextmanager
async def world(
    receiver: Receiver,
    store: Store | None = None,
    clock: VirtualClock | None = None,
    settings: Settings | None = None,
) -> AsyncIterator[Bench]:
    """A broker whose way out is the receiver; restarts have the same key."""
    settings = settings or tuned(
        store={"sweep_s": 86_400}, actors={"idle_s": 7_200}
    )  # a virtual day is short then
    async with open_bench(settings, store, clock, KEY, receiver) as bench:
        receiver.now = bench.clock.now_ms
        yield bench
