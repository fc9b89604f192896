"""SIGKILL while events are posted: every event arrives, in order, and what comes again comes under its own id.

A real broker process on real files posts to a receiver in the test's process, and is killed when so many have come.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.app import open_broker
from broker.clock import SystemClock
from broker.config import Settings
from broker.store.sqlite import SqliteStore
from gateways.wirekeys import open_keyring
from tests.support.agents import make_agent
from tests.support.broker import Bench, tuned
from tests.support.network import serving
from tests.support.process import served
from tests.support.webhooks import happens

EVENTS = 120
KILLS = (40,)
"""After so many requests the broker is killed."""


class Inbox:
    """A receiver that keeps ids and numbers as they came."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, int]] = []
        self._came = trio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        headers = dict(scope["headers"])
        self.posts.append((headers[b"webhook-id"].decode(), json.loads(body)["data"]["n"]))
        self._came.set()
        self._came = trio.Event()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def wait(self, done: Any) -> None:
        with trio.fail_after(20):
            while not done():
                await self._came.wait()


async def prepare(data: Path, url: str) -> None:
    """An agent with a webhook, and events that wait for it."""
    clock, store = SystemClock(), await SqliteStore.open(data)
    keyring = await open_keyring(data, store, clock.now_ms())
    settings: Settings = tuned(webhooks={"allow_loopback": True})
    async with open_broker(settings, store, clock, keyring) as broker:
        bench = Bench(broker, store, clock)  # type: ignore[arg-type]
        ann = await make_agent(bench, "Ann")
        await bench.call("set_webhook", ann, url=url)
        await happens(bench, ann, *range(EVENTS))
    await store.aclose()


@pytest.mark.requirement("webhook.restart")
async def test_a_broker_that_is_killed_loses_no_event(tmp_path: Path) -> None:
    inbox, data = Inbox(), tmp_path / "data"
    starts: list[int] = []
    async with serving(inbox) as receiver:
        await prepare(data, receiver.url)
        for count in (*KILLS, None):
            starts.append(len(inbox.posts))
            async with served(data, environment={"TURRET_WEBHOOKS_ALLOW_LOOPBACK": "true"}):
                if count is None:
                    await inbox.wait(lambda: inbox.posts and inbox.posts[-1][1] == EVENTS - 1)
                else:
                    await inbox.wait(lambda least=count: len(inbox.posts) >= least)
    ids: dict[int, set[str]] = {}
    for id, number in inbox.posts:
        ids.setdefault(number, set()).add(id)
    assert sorted(ids) == list(range(EVENTS))
    assert all(len(each) == 1 for each in ids.values())
    for begin, end in zip(starts, [*starts[1:], len(inbox.posts)], strict=True):
        numbers = [number for _, number in inbox.posts[begin:end]]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert begin == 0 or numbers[0] <= inbox.posts[begin - 1][1] + 1
