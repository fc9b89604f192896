"""A stream ends when its work is done or its client has left, whichever comes first."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from gateways.listen import Receive
from gateways.streaming import until_left


def client(leaves: trio.Event) -> Receive:
    """Sends the rest of its body once `leaves` is set, and is gone then."""
    told: list[dict[str, Any]] = [{"type": "http.disconnect"}, {"type": "http.request", "body": b""}]

    async def receive() -> dict[str, Any]:
        await leaves.wait()
        return told.pop()

    return receive


@pytest.mark.requirement("presence.sse-ends-with-its-stream")
async def test_a_client_that_leaves_ends_the_work(autojump_clock: MockClock) -> None:
    leaves, ended = trio.Event(), trio.Event()

    async def work() -> None:
        leaves.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    with trio.fail_after(5):
        await until_left(client(leaves), work)
    assert ended.is_set()


async def test_work_that_is_done_waits_for_no_client(autojump_clock: MockClock) -> None:
    with trio.fail_after(5):
        await until_left(client(trio.Event()), trio.lowlevel.checkpoint)
