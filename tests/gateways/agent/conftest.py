"""A fake wire in memory with ALFA's agent on it, and a model at the agent's tools."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from broker.wire.keys import SigningKey
from gateways.agent.line import Line
from gateways.agent.rails import Rails
from gateways.client.clockwork import Backoff
from tests.gateways.agent.model import Model
from tests.gateways.client.conftest import Connect, alfa, brav, dealer, wire
from tests.gateways.client.fake_wire import FakeWire

__all__ = ["alfa", "brav", "dealer", "wire"]

Agent = Callable[..., AbstractAsyncContextManager[Model]]


@pytest.fixture
def agent(wire: FakeWire, dealer: Connect, alfa: SigningKey, brav: SigningKey) -> Agent:
    """`async with agent(rails) as model`: an agent with ALFA's key whose desk is open; BRAV is there to be called.

    Ask for `autojump_clock` with it.
    """

    @asynccontextmanager
    async def make(rails: Rails | None = None, **options: Any) -> AsyncIterator[Model]:
        import trio

        wire.desks["BRAV"] = brav.pk
        line = Line(dealer, alfa.pk, rails or Rails(), Backoff(chance=lambda: 0.5))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(line.run)
            model = Model(line, **options)
            if line.rails.code is None:
                assert (await model("open_desk", code="ALFA"))["code"] == "ALFA"
            yield model
            nursery.cancel_scope.cancel()

    return make
