"""What the fault tests do with a broker: deal on it, and ask how it is."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import trio

from tests.crash.dealers import Pair
from tests.history.model import History, Ok
from tests.support.process import Served


@asynccontextmanager
async def dealing(broker: Served, pairs: list[Pair]) -> AsyncIterator[None]:
    """Pairs that deal while the block runs."""
    async with trio.open_nursery() as nursery:
        for pair in pairs:
            nursery.start_soon(pair.run, broker)
        yield
        nursery.cancel_scope.cancel()


async def wait_readiness(broker: Served, ready: bool) -> list[str]:
    """Ask /readyz until it says so; its reasons."""
    async with httpx.AsyncClient(base_url=broker.http) as http:
        with trio.fail_after(5):
            while (answer := await http.get("/readyz")).json()["ready"] is not ready:  # noqa: ASYNC110
                await trio.sleep(0.02)
        assert (await http.get("/healthz")).status_code == 200
    reasons: list[str] = answer.json()["reasons"]
    return reasons


def acknowledged(history: History) -> int:
    """How many requests were acknowledged."""
    return sum(isinstance(each.answer, Ok) for each in history.sends)


async def wait_acknowledged(history: History, count: int) -> None:
    """Wait until so many were; 10 s at most."""
    with trio.fail_after(10):
        while acknowledged(history) < count:  # noqa: ASYNC110  # sockets of another library
            await trio.sleep(0.01)


async def wait_until(true: Callable[[], bool]) -> None:
    """Wait until something is so, however slow the machine; 20 s at most."""
    with trio.fail_after(20):
        while not true():  # noqa: ASYNC110  # sockets of another library
            await trio.sleep(0.02)
