"""Clients that all come back at once: none sees a gap or an event twice."""

from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

from bench.history import make
from bench.kit.machine import rss_mib
from bench.kit.server import turret
from bench.restart import meet
from bench.storm import storm

CLIENTS = 300
BEHIND = 60


@pytest.mark.requirement("faults.resume-no-gap")
def test_clients_that_resume_at_once_miss_nothing(tmp_path: Path) -> None:
    parties = trio.run(make, tmp_path / "data", 100 * CLIENTS // 2 + 3_000, CLIENTS, BEHIND)
    with turret(tmp_path / "data", unsafe_limits=False) as broker, ExitStack() as stack:
        clients = meet(broker, parties)
        before = rss_mib(broker.pid)
        for client in clients:
            stack.callback(client.close)
        storm(broker.dealing, clients)  # raises where another event comes than the one that is due
        assert [client.got for client in clients] == [len(client.missed) for client in clients]
        assert sum(client.got for client in clients) > CLIENTS * BEHIND / 2
        assert rss_mib(broker.pid) - before < 100
