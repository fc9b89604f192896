"""A broker for sessions, whose ledger is added up when the test is over."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from broker.actors.arena import read_events
from broker.clock import VirtualClock
from broker.config import Settings
from broker.core.arena import AccountRow, Acted, Opened, SessionRow
from broker.store.memory import MemoryStore
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.broker import Bench, open_bench


@asynccontextmanager
async def open_arena(
    settings: Settings | None = None,
    store: MemoryStore | None = None,
    clock: VirtualClock | None = None,
    key: SigningKey | None = None,
    **parts: Any,
) -> AsyncIterator[Bench]:
    """As open_bench; on leaving, the ledger is right or the test fails."""
    store = store or MemoryStore()
    async with open_bench(settings, store, clock, key, **parts) as bench:
        yield bench
        await check_ledger(store)


async def check_ledger(store: MemoryStore) -> None:
    """All entries sum to 0, event by event; each account has what its entries say, and no player's is below 0."""
    kept: dict[str, Counter[str]] = {}
    for row in rows_of(store, "arena", SessionRow):
        own = Counter[str]()
        balance = 0
        for event in await read_events(store, row.session_id):
            if not isinstance(event, Opened | Acted):
                continue
            assert sum(points for _, points in event.entries) == 0, event
            for account, points in event.entries:
                own[account] += points
            balance = event.balance
            assert balance >= 0
        assert row.balance == balance
        if row.mode == "simulation":
            assert balance == own["player"], row
        else:
            kept.setdefault(row.agent_id, Counter()).update(own)
    accounts = dict(documents(store, "account", AccountRow))
    assert accounts.keys() == kept.keys()
    for agent_id, row in accounts.items():
        sums = kept[agent_id]
        assert (row.balance, row.house, row.mint) == (sums["player"], sums["house"], sums["mint"])
        assert row.balance >= 0
        assert row.balance + row.house + row.mint == 0


def documents(store: MemoryStore, kind: str, type: Any) -> list[tuple[str, Any]]:
    """All documents of a kind, with their ids."""
    return [
        (id, msgspec.json.decode(document.doc, type=type))
        for (its, id), document in store._docs.items()
        if its == kind
    ]


def rows_of(store: MemoryStore, kind: str, type: Any) -> list[Any]:
    """All documents of a kind."""
    return [row for _, row in documents(store, kind, type)]


async def raw(bench: Bench, caller: Any, name: str, **params: Any) -> bytes:
    """The text of a tool's answer: a refusal's after `!`."""
    answer = await bench.broker.call(caller, name, json.dumps(params).encode())
    return (b"!" if isinstance(answer, Refusal) else b"") + msgspec.json.encode(answer)
