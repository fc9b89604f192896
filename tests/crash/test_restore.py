"""Backups of a real broker under load, then the broker is lost and restored: what was acknowledged before is there,
what came after is brought back by its parties, and cursors of before are known to be of another time.
"""

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.wire.chain import verify_transcript
from tests.crash.dealers import Link, Pair, Party, Request, kill, linked, read_conv
from tests.history.model import History
from tests.support.process import Served, served

PAIRS = 6
BACKUPS = 3


async def turret(*arguments: str) -> dict[str, Any]:
    """A command in a process of its own; its JSON."""
    with trio.fail_after(60):
        ran = await trio.run_process(
            [sys.executable, "-m", "gateways.cli", *arguments, "--json"],
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    assert ran.returncode == 0, ran
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


class Keeper(Pair):
    """A pair that keeps what it sent: the tail that a backup may not have."""

    def __init__(self, number: int) -> None:
        super().__init__(number, History(), random.Random(number))
        self.sent: dict[str, Request] = {}

    def next(self, wire: str) -> list[Request]:
        requests = super().next(wire)
        self.sent.update((params["sig"], (method, params)) for method, params in requests)
        return requests

    def acknowledged(self) -> set[tuple[str, int, str]]:
        return {(conv, n, sig) for conv, rows in self.acked.items() for n, sig in rows.items()}


async def bring_back(pair: Keeper, link: Link) -> tuple[set[tuple[str, int, str]], int]:
    """Send what the restored broker lacks of each call; the rows that were there, and how many came back."""
    there: set[tuple[str, int, str]] = set()
    brought = 0
    for conv, acked in pair.acked.items():
        rows = await read_conv(link, conv, pair.history)
        there |= {(conv, row["n"], row["sig"]) for row in rows}
        if not rows:
            continue  # its CALL came after the backup: it is gone, and one dials again
        for n in range(len(rows), len(acked)):
            method, params = pair.sent[acked[n]]
            answer = await link.ask(method, params)
            assert answer.get("n") == n, answer
            brought += 1
        now = await read_conv(link, conv, pair.history)
        assert [row["sig"] for row in now][: len(acked)] == [acked[n] for n in range(len(acked))]
        assert [row["n"] for row in now if row.get("resubmitted")] == list(range(len(rows), len(acked)))
        assert verify_transcript([json.dumps(row) for row in now]).ok
    return there, brought


async def resumed(party: Party, broker: Served) -> Any:
    """What a party that comes back with its cursor is told."""
    async with linked(broker, party) as link:
        return await link.ask("follow", {"after": party.cursor})


@pytest.mark.requirement("store.restore-under-load")
@pytest.mark.timeout(120)
async def test_a_backup_made_under_load_is_restored_and_the_tails_are_brought_back(tmp_path: Path) -> None:
    pairs = [Keeper(number) for number in range(PAIRS)]
    before: set[tuple[str, int, str]] = set()
    async with served(tmp_path / "data") as broker:
        pk = broker.pk
        async with trio.open_nursery() as nursery:
            for pair in pairs:
                nursery.start_soon(pair.run, broker)
            for number in range(BACKUPS):
                await trio.sleep(0.3)
                before = set().union(*(pair.acknowledged() for pair in pairs))
                file = str(tmp_path / f"{number}.backup")
                await turret("backup", "--data", str(tmp_path / "data"), file)
            assert (await turret("check", "--data", str(tmp_path / "data")))["ok"], "beside a running broker"
            await trio.sleep(0.2)
            kill(broker, nursery)
    await trio.sleep(1 - time.time() % 1)  # what is said in the second of the restore itself counts as new
    assert len(before) > 50, "too little load to tell anything"
    key = str(tmp_path / "data" / "wire.key")
    made = await turret("restore", file, "--data", str(tmp_path / "new"), "--wire-key", key)
    assert made["faults"] == 0
    async with served(tmp_path / "new") as broker:
        assert broker.pk == pk
        there: set[tuple[str, int, str]] = set()
        brought = 0
        for pair in pairs:
            for party in (pair.caller, pair.called):
                assert (await resumed(party, broker))["reason"] == "epoch_changed"
            async with linked(broker, pair.caller) as link:
                held, tails = await bring_back(pair, link)
                there, brought = there | held, brought + tails
        assert before <= there, "acknowledged before the backup, and lost"
        assert brought > 0, "no tail was lost: that tells nothing"
        await broker.stop()
    assert (await turret("check", "--data", str(tmp_path / "new")))["ok"]
