"""A broker is lost under a call and restored from a backup: both dealers bring back what it lacks, and go on."""

import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest
import trio

from broker.store import sqlite_backup
from broker.wire.keys import SigningKey
from gateways.client.call import Call
from gateways.client.connect import connect
from gateways.client.errors import Refused
from tests.gateways.client.test_restart import Restartable, echo, rally


async def back_up(broker: Restartable) -> Path:
    """Copy the broker's store as it is now."""
    file = broker.directory / "one.backup"
    at = time.time_ns() // 1_000_000
    await trio.to_thread.run_sync(
        lambda: sqlite_backup.back_up(
            broker.directory / "data", file, at=at, key=None, told=lambda done, of: None
        )
    )
    return file


def restore(broker: Restartable, file: Path) -> None:
    """Put the copy in the store's place."""
    old, new = broker.directory / "data", broker.directory / "new"
    found = sqlite_backup.contents(file)
    now = (int(time.time()) + 1) * 1000  # times are whole seconds: what was said in this one is of before
    with sqlite_backup.restoring(file, new, found, now_ms=now, told=lambda done, of: None):
        pass
    (old / "wire.key").rename(new / "wire.key")
    old.rename(broker.directory / "old")
    new.rename(old)


@asynccontextmanager
async def dealing(broker: Restartable) -> AsyncIterator[Call]:
    """Two dealers, one of them an echo, and the call of the other."""
    callee = connect(broker.url("dealing"), SigningKey.generate(), broker.wire)
    caller = connect(broker.url("dealing"), SigningKey.generate(), broker.wire)
    async with callee as brav, caller as alfa, trio.open_nursery() as nursery:
        await brav.open("BRAV")
        await alfa.open("ALFA")

        async def answer() -> None:
            with suppress(Refused):  # where the call is lost
                await echo(brav)

        nursery.start_soon(answer)
        async with alfa.dial("BRAV") as call:
            yield call
        nursery.cancel_scope.cancel()


def marks(broker: Restartable) -> list[int]:
    """Which rows were submitted again."""
    with closing(sqlite3.connect(broker.directory / "data" / "turret.db")) as db:
        rows = db.execute("SELECT n, instr(data, 'resubmitted') > 0 FROM text WHERE log NOT NULL ORDER BY n")
        return [n for n, marked in rows if marked]


@pytest.mark.requirement("client.restored")
async def test_a_call_goes_on_over_a_restore(tmp_path: Path) -> None:
    broker = Restartable(tmp_path)
    with trio.fail_after(50):
        async with broker.run() as first, dealing(broker) as call:
            await rally(call, 2)
            file = await back_up(broker)
            held = call.transcript.next_n
            await rally(call, 3)
            lost = call.transcript.next_n
            first.process.kill()
            await first.process.wait()
            restore(broker, file)
            async with broker.run():
                await rally(call, 3)
                # What is said in the very second of the restore counts as of before it, too.
                assert marks(broker)[: lost - held] == list(range(held, lost))
                await call.end("done")


@pytest.mark.requirement("client.restored")
async def test_a_call_that_the_backup_does_not_know_is_lost_and_everybody_hears_of_it(tmp_path: Path) -> None:
    broker = Restartable(tmp_path)
    with trio.fail_after(50):
        async with broker.run() as first:
            async with connect(broker.url("dealing"), SigningKey.generate(), broker.wire) as desk:
                await desk.open("ZULU")
            file = await back_up(broker)
            async with dealing(broker) as call:
                await rally(call, 1)
                first.process.kill()
                await first.process.wait()
                restore(broker, file)
                async with broker.run():
                    for wait in (call.receive, call.wait_ended):
                        with pytest.raises(Refused, match="unknown_conv"):
                            await wait()
                    with pytest.raises(Refused):
                        await call.send("PING")
