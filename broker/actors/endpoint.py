"""The A2A endpoint that an agent publishes in its card in place of the network's gateway (network.md, A2A)."""

from typing import Any

import msgspec

from broker.actors.once import Once
from broker.actors.record import Index, RecordActor
from broker.store.port import Store
from broker.store.stored import read_row


class EndpointRow(msgspec.Struct, frozen=True):
    """As stored (kind "endpoint", id = agent_id). `set_at`: wall milliseconds."""

    url: str
    set_at: int


class SetEndpoint(msgspec.Struct, frozen=True):
    """Publish this URL, or none. Answer: {url, set_at}, each null where there is none."""

    url: str | None
    once: Once | None = None


async def read_endpoint(store: Store, agent_id: str) -> EndpointRow | None:
    """What an agent has published, or None."""
    return await read_row(store, EndpointRow, "endpoint", agent_id)


class EndpointActor(RecordActor[EndpointRow]):
    """One agent's."""

    kind = "endpoint"
    type = EndpointRow

    def index_of(self, row: EndpointRow) -> Index:
        return ()

    async def do(self, command: Any) -> Any:
        match command:
            case SetEndpoint(url, once):
                row = self.row
                if url is None:
                    row = None
                elif row is None or row.url != url:
                    row = EndpointRow(url, self.clock.now_ms())
                answer = {"url": None, "set_at": None} if row is None else msgspec.to_builtins(row)
                return await self.write(row, answer, once=once)
        raise TypeError(type(command))
