"""SIGKILL under load: what was acknowledged is there, nothing is doubled, everybody resumes by cursor.

A real broker process on real files, loaded over the dealing port by an independent WebSocket client, killed at a
random moment and started again on the same data. What the clients saw is kept, and must fit one append-only order a
conversation, the same for all (tests/history). KILL_ROUNDS sets the rounds (20 here, more in soak).
"""

import json
import os
import random
from pathlib import Path

import pytest
import trio

from broker.wire.chain import verify_transcript
from tests.crash.dealers import Pair, deal, linked, read_conv
from tests.history.checker import check
from tests.history.model import History
from tests.support.process import Served, served

ROUNDS = int(os.environ.get("KILL_ROUNDS", "20"))
PAIRS = 6


async def settle(broker: Served, pairs: list[Pair], history: History) -> int:
    """Read every transcript and stream to its end; how many envelopes were acknowledged and verify."""
    acknowledged = 0
    for pair in pairs:
        events = 0
        async with linked(broker) as link:
            for conv, acked in pair.acked.items():
                rows = await read_conv(link, conv, history)
                stored = {row["n"]: row["sig"] for row in rows}
                assert acked.items() <= stored.items(), "an acknowledged envelope is lost"
                verdict = verify_transcript([json.dumps(row) for row in rows])
                assert verdict.ok, verdict.broken
                acknowledged += len(acked)
                events += len(rows)
        for party in (pair.caller, pair.called):
            async with party.connected(broker):
                with trio.fail_after(10):
                    while party.seen < events:  # noqa: ASYNC110  # sockets of another library
                        await trio.sleep(0.01)
            await party.read_again(broker, "again")
    return acknowledged


@pytest.mark.requirement("retries.crash", "faults.history")
@pytest.mark.timeout(60 + 12 * ROUNDS)
async def test_nothing_acknowledged_is_lost_when_the_broker_is_killed_under_load(tmp_path: Path) -> None:
    chance = random.Random(20_261_130)
    history = History()
    pairs = [Pair(number, history, chance) for number in range(PAIRS)]
    acknowledged = 0
    for _ in range(ROUNDS):
        async with served(tmp_path / "data") as broker:
            await deal(broker, pairs, chance.uniform(0.15, 0.6), history, chance)
    acknowledged = sum(len(sigs) for pair in pairs for sigs in pair.acked.values())
    async with served(tmp_path / "data") as broker:
        assert await settle(broker, pairs, history) == acknowledged
    history.complete = True
    history.write(tmp_path / "history.json")
    assert check(history) == [], f"python -m tests.history {tmp_path / 'history.json'}"
    assert acknowledged > 20 * ROUNDS, f"too little load to tell anything: {acknowledged}"
