"""SIGKILL under load: what was acknowledged is there, nothing is doubled, everybody resumes by cursor.

A real broker process on real files, loaded over the dealing port by an independent WebSocket client, killed at a
random moment and started again on the same data. What the clients saw is kept, and must fit one append-only order a
conversation, the same for all (tests/history). KILL_ROUNDS sets the rounds (10 here, more in soak).
"""

import os
import random
from pathlib import Path

import pytest

from tests.crash.dealers import Pair, deal, settle
from tests.history.checker import check
from tests.history.model import History
from tests.support.process import served

ROUNDS = int(os.environ.get("KILL_ROUNDS", "10"))
PAIRS = 6


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
    history.write(tmp_path / "history.json")
    assert not any(pair.refused for pair in pairs)
    assert check(history) == [], f"python -m tests.history {tmp_path / 'history.json'}"
    assert acknowledged > 20 * ROUNDS, f"too little load to tell anything: {acknowledged}"
