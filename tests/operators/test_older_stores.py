"""Operators find in a store of an older Turret what is in it, before anything of it is written again."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio.testing

from broker.actors.check import Counts, check_store
from broker.store import sqlite_check, sqlite_file
from broker.store.port import Fault
from broker.store.sqlite import SqliteStore
from tests.support.agents import make_agent
from tests.support.broker import Bench, open_bench
from tests.support.registration import OPERATOR

LATER = (("desk", "all"), ("conv", "live"), ("report", "all"), ("report", "open-of"))
"""The index rows that came with the seventh schema."""


async def lists(bench: Bench) -> dict[str, list[Any]]:
    asked = {"list_desks": "desks", "list_calls": "calls", "list_reports": "reports", "review_queue": "queue"}
    return {name: (await bench.call(name, OPERATOR))[member] for name, member in asked.items()}


def make_older(path: Path) -> None:
    """What the sixth schema's Turret would have left."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for kind, name in LATER:
            one = "SELECT id FROM facet WHERE kind = ? AND name = ?"
            db.execute(f"DELETE FROM mark WHERE facet IN ({one})", (kind, name))
            db.execute("DELETE FROM facet WHERE kind = ? AND name = ?", (kind, name))
        db.execute("PRAGMA user_version = 6")


@pytest.mark.requirement("store.schema", "moderation.calls", "moderation.desks", "moderation.queue")
async def test_what_is_in_an_older_store_is_in_the_lists(tmp_path: Path, autojump_clock: Any) -> None:
    store = SqliteStore(tmp_path, hop="inline")
    async with open_bench(store=store) as bench:
        ann, bob = [await bench.open(code) for code in ("ALFA", "BRAV")]
        await (await bench.connect(ann, bob)).send("END", {"reason": "done"})
        await bench.connect(ann, bob)
        await bench.dial(ann, bob)
        one, other, bad = [await make_agent(bench, name) for name in ("One", "Other", "Bad")]
        for each in (one, other, one):
            about = bad if each is one else one
            await bench.call(
                "report_agent", each, target_agent_id=about.agent, category="spam", details="it is"
            )
        resolved = (await bench.call("list_reports", OPERATOR))["reports"][0]["report_id"]
        await bench.call("resolve_report", OPERATOR, report_id=resolved, outcome="dismissed")
        before = await lists(bench)
    await store.aclose()
    assert [len(each) for each in before.values()] == [2, 2, 2, 1]
    make_older(tmp_path / sqlite_file.FILE)
    store = SqliteStore(tmp_path, hop="inline")
    async with open_bench(store=store) as bench:
        assert await lists(bench) == before
    await store.aclose()
    with sqlite_check.opened(tmp_path / sqlite_file.FILE) as (snapshot, faults):
        assert snapshot is not None
        faults += [each for each in check_store(snapshot, Counts()) if isinstance(each, Fault)]
    assert [each for each in faults if each.where != "audit"] == []  # no bench leaves its key in the store


@pytest.mark.requirement("store.schema", "moderation.channels")
async def test_agents_that_had_gone_leave_the_channels_of_an_older_store(
    tmp_path: Path, autojump_clock: Any
) -> None:
    store = SqliteStore(tmp_path, hop="inline")
    async with open_bench(store=store) as bench:
        ann, gone = await make_agent(bench, "Ann"), await make_agent(bench, "Gone", test=True)
        for owner, other, name in ((ann, gone, "town"), (gone, ann, "city")):
            made = await bench.call("create_channel", owner, name=name)
            await bench.call("join_channel", other, channel_id=made["channel_id"])
    await store.aclose()
    path = tmp_path / sqlite_file.FILE
    make_older(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        one = "SELECT id FROM document WHERE kind = 'agent' AND name = ?"
        for statement in (
            f"DELETE FROM mark WHERE document IN ({one})",
            f"DELETE FROM document WHERE id IN ({one})",
        ):
            db.execute(statement, (gone.agent,))
    store = SqliteStore(tmp_path, hop="inline")
    async with open_bench(store=store) as bench:
        await trio.testing.wait_all_tasks_blocked()
        listed = (await bench.call("list_channels", ann))["channels"]
        assert {each["name"]: (each["owner_agent_id"], each["members"]) for each in listed} == {
            "town": (ann.agent, 1),
            "city": (None, 1),
        }
        assert await bench.store.due("leaving", "due", 2**62, 1) == []
    await store.aclose()
