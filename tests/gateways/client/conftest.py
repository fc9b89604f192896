"""A fake wire in memory, the clock that follows Trio's, and a desk connected to it."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio

from broker.wire.keys import SigningKey
from gateways.client import socket
from gateways.client.agent import Agent, open_agent
from gateways.client.clockwork import Backoff, WireClock
from gateways.client.connect import connect
from gateways.client.dealer import Desk
from tests.gateways.client.fake_issuer import ORIGIN, FakeIssuer
from tests.gateways.client.fake_network import AGENT, FakeNetwork
from tests.gateways.client.fake_wire import URL, FakeWire

Connect = Callable[..., AbstractAsyncContextManager[Desk]]
OpenAgent = Callable[..., AbstractAsyncContextManager[Agent]]


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


@pytest.fixture
def issuer(alfa: SigningKey) -> FakeIssuer:
    """A fake authorization server that knows the agent under test by ALFA's key."""
    made = FakeIssuer()
    made.enter(AGENT, alfa.pk)
    return made


@pytest.fixture
async def network(issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery) -> FakeNetwork:
    """A fake network, reached by every connection that the client opens. Ask for `autojump_clock` with it."""
    fake = FakeNetwork(issuer)
    monkeypatch.setattr(socket, "_open_stream", fake.open_stream)
    await nursery.start(fake.serve)
    return fake


@pytest.fixture
def agent(network: FakeNetwork, alfa: SigningKey) -> OpenAgent:
    """open_agent() at the fake network with ALFA's key, on the virtual clock, without chance."""

    def make(agent_id: str | None = AGENT, **options: Any) -> AbstractAsyncContextManager[Agent]:
        options.setdefault("clock", WireClock(network.now_ms))
        options.setdefault("backoff", Backoff(chance=lambda: 0.5))
        options.setdefault("transport", network.issuer.transport)
        return open_agent(ORIGIN, alfa, agent_id, network.key.pk, **options)

    return make
