"""A fake wire in memory, the clock that follows Trio's, and a desk connected to it."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio

from broker.wire.keys import SigningKey
from gateways.client import socket
from gateways.client.clockwork import Backoff, WireClock
from gateways.client.connect import connect
from gateways.client.dealer import Desk
from tests.gateways.client.fake_wire import URL, FakeWire

Connect = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def alfa() -> SigningKey:
    """The key of the desk under test."""
    return SigningKey.from_seed("a1" * 32)


@pytest.fixture
def brav() -> SigningKey:
    """The key of the counterparty, whom the fake wire plays."""
    return SigningKey.from_seed("b2" * 32)


@pytest.fixture
async def wire(monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery) -> FakeWire:
    """A fake wire, reached by every connection that the client opens. Ask for `autojump_clock` with it."""
    fake = FakeWire()
    monkeypatch.setattr(socket, "_open_stream", fake.open_stream)
    await nursery.start(fake.serve)
    return fake


@pytest.fixture
def dealer(wire: FakeWire, alfa: SigningKey) -> Connect:
    """connect() to the fake wire with ALFA's key, on the virtual clock, without chance."""

    def make(**options: Any) -> AbstractAsyncContextManager[Desk]:
        options.setdefault("clock", WireClock(wire.now_ms))
        options.setdefault("backoff", Backoff(chance=lambda: 0.5))
        options.setdefault("wire", wire.key.pk)
        return connect(URL, alfa, **options)

    return make
