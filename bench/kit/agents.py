"""Agents that are there before the broker starts, and tokens for them.

They are made by the broker's own actors, without sockets; tokens are signed with the key that the broker has made for
itself. From then on everything goes through the doors.
"""

import secrets
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import trio

from bench.kit.machine import disk_directory
from bench.kit.server import Broker
from broker.actors.agent import Create
from broker.app import Broker as Running
from broker.app import open_broker
from broker.clock import SystemClock
from broker.config import Settings
from broker.core.agent import AgentRow
from broker.store.sqlite import SqliteStore
from broker.wire.refusals import Refusal
from gateways.oauth.access import mint
from gateways.oauth.keys import SigningKeys
from gateways.wirekeys import open_keyring

ABREAST: Final = 64
"""Agents that are made at the same time."""


def ulid(at: int) -> str:
    """An id's second part, by its number."""
    return f"{at:026d}"


async def make_agent(broker: Running, agent_id: str, name: str) -> None:
    """Make an agent that somebody has claimed. Raises RuntimeError where it is refused."""
    row = AgentRow(agent_id=agent_id, name=name, tier="standard", created_at=int(time.time() * 1000))
    await done(broker, "agent", agent_id, Create(row, None))


async def done(broker: Running, kind: str, key: str, command: object) -> None:
    """Have an actor do a command. Raises RuntimeError where it is refused."""
    answer = await broker._services.house.ask(kind, key, command)
    if isinstance(answer, Refusal):
        raise RuntimeError(f"{kind}: {answer}")


@contextmanager
def prepared(count: int) -> Iterator[tuple[Path, list[str]]]:
    """A new data directory with so many agents, and their ids; it is removed after the block."""
    with tempfile.TemporaryDirectory(prefix="turret-bench-", dir=disk_directory()) as temporary:
        data, agents = Path(temporary, "data"), [f"ag_{ulid(at)}" for at in range(count)]
        data.mkdir(mode=0o700)
        trio.run(_prepare, data, agents)
        yield data, agents


async def _prepare(data: Path, agents: Sequence[str]) -> None:
    clock, store = SystemClock(), await SqliteStore.open(data)
    try:
        keyring = await open_keyring(data, store, clock.now_ms())
        async with open_broker(Settings(), store, clock, keyring) as broker:
            for at, agent_id in enumerate(agents):
                await make_agent(broker, agent_id, f"bench-{at}")
    finally:
        await store.aclose()


class Tokens:
    """Tokens of a running broker's agents, signed with its own key."""

    def __init__(self, broker: Broker, scope: str) -> None:
        self._broker = broker
        self._keys = SigningKeys.open(broker.data, int(time.time() * 1000))
        self._scope = scope

    def of(self, agent_id: str) -> str:
        """A new token of an agent's own."""
        return mint(
            self._keys,
            int(time.time() * 1000),
            secrets.token_urlsafe(16),
            self._broker.http,
            sub=agent_id,
            aud=f"{self._broker.http}/mcp",
            client_id=agent_id,
            scope=self._scope,
        )
