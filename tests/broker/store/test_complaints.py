"""What goes wrong with a store is said once, however often it is met."""

import logging
import sqlite3
from pathlib import Path

import pytest

from broker.store.complaints import KEPT, QUIET_S, Complaints
from broker.store.port import InDoubt, Unavailable
from broker.store.sqlite import SqliteStore
from tests.broker.store.units import row


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


def test_the_same_is_said_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    complaints = Complaints(logging.getLogger("turret.test"), lambda: now[0])
    for _ in range(3):
        complaints.say("the disk is full")
    complaints.say("a page is damaged")
    assert said(caplog) == ["the disk is full", "a page is damaged"]
    now[0] += QUIET_S
    complaints.say("the disk is full")
    assert said(caplog)[2:] == ["the disk is full"]


def test_what_is_remembered_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints(logging.getLogger("turret.test"), lambda: 0.0)
    for number in range(3 * KEPT):
        complaints.say(f"fault {number}")
    assert len(complaints._said) <= KEPT


@pytest.mark.requirement("faults.named")
async def test_a_commit_that_failed_is_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    store = SqliteStore(tmp_path, hop="inline")
    with monkeypatch.context() as patch:
        patch.setattr(store.writer, "finish", fail)
        with pytest.raises(InDoubt):
            await store.commit(row("a", 0))
    for n in range(3):
        with pytest.raises(Unavailable):
            await store.commit(row("a", n))
    assert said(caplog) == [
        "nothing is written until the store is opened anew: a commit failed: disk I/O error"
    ]
    await store.aclose()


@pytest.mark.requirement("faults.named")
async def test_a_disk_that_is_full_is_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorname = "SQLITE_FULL"
        raise error

    store = SqliteStore(tmp_path, hop="inline")
    with monkeypatch.context() as patch:
        patch.setattr(store.writer, "finish", full)
        for _ in range(3):
            with pytest.raises(Unavailable):
                await store.commit(row("a", 0))
    assert said(caplog) == ["a commit was refused: database or disk is full"]
    await store.commit(row("a", 0))
    await store.aclose()


@pytest.mark.requirement("faults.named")
async def test_what_can_not_be_read_is_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore(tmp_path, hop="inline")
    store.writer.db.execute("DROP TABLE remembered")
    for _ in range(3):
        with pytest.raises(Unavailable):
            await store.recall("a", "b")
    assert said(caplog) == ["can't read: no such table: remembered"]
    await store.aclose()
