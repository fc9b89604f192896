"""What a check finds in an audit log on the disk, whoever has changed it with whatever program."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from broker.actors.check_audit import Beside, check_audit
from broker.app import open_broker
from broker.clock import VirtualClock
from broker.config import Settings
from broker.store import sqlite_backup, sqlite_check, sqlite_file
from broker.store.port import Fault
from broker.store.sqlite import SqliteStore
from broker.store.sums import sum_of
from broker.wire.auditlog import seal
from broker.wire.keyring import Keyring, WireKey
from gateways.headfile import FILE, read_head_file
from tests.support.audited import InlineHead, kept_on_disk, put_on_disk, serve, served
from tests.support.audits import DAMAGES, THIEF, WIRE, event
from tests.support.broker import START_MS, Bench
from tests.support.registration import OPERATOR


async def asked(directory: Path) -> tuple[Any, Any]:
    """What verify_audit_log and list_audit_events say, where the directory is served."""
    store, clock = SqliteStore(directory, hop="inline"), VirtualClock(START_MS)
    keyring = Keyring((WireKey(WIRE, 1),))
    try:
        async with open_broker(Settings(), store, clock, keyring, keeper=InlineHead(directory)) as broker:
            bench = Bench(broker, store, clock)
            return await bench.call("verify_audit_log", OPERATOR), await bench.call(
                "list_audit_events", OPERATOR
            )
    finally:
        await store.aclose()


def faults(directory: Path, beside: bool = True, whole: bool = True) -> list[Fault]:
    near = Beside(read_head_file(directory), (WIRE.pk,)) if beside else None
    with sqlite_check.opened(directory / sqlite_file.FILE) as (snapshot, _):
        assert snapshot is not None
        steps = list(check_audit(snapshot, near))
    if whole:
        assert sum(step for step in steps if isinstance(step, int)) == len(kept_on_disk(directory).rows)
    return [step for step in steps if isinstance(step, Fault)]


@pytest.mark.requirement("audit.check")
async def test_a_log_that_nobody_touched_has_no_fault(tmp_path: Path, autojump_clock: Any) -> None:
    await served(tmp_path / "data")
    assert faults(tmp_path / "data") == []
    assert faults(tmp_path / "data", beside=False) == []


@pytest.mark.requirement("audit.check", "audit.heads")
@pytest.mark.parametrize("name", DAMAGES)
async def test_each_damage_is_found_in_the_file(name: str, tmp_path: Path, autojump_clock: Any) -> None:
    kept = await served(tmp_path / "data")
    damage, first, words = DAMAGES[name]
    damage(kept)
    put_on_disk(kept, tmp_path / "data")
    found = faults(tmp_path / "data")
    assert any(words in fault.message for fault in found), found
    assert min((fault.n for fault in found if fault.n is not None), default=None) == first


@pytest.mark.requirement("audit.check")
async def test_a_row_that_the_list_does_not_show_is_found(tmp_path: Path, autojump_clock: Any) -> None:
    await served(tmp_path / "data")
    with closing(sqlite3.connect(tmp_path / "data" / sqlite_file.FILE, isolation_level=None)) as db:
        one = "(SELECT id FROM document WHERE kind = 'audit' AND name = '000000000003')"
        db.execute(f"DELETE FROM mark WHERE document = {one} AND value = 'operator'")
    assert [(fault.where, fault.name, fault.n) for fault in faults(tmp_path / "data")] == [
        ("audit", "index", 3)
    ]


@pytest.mark.requirement("audit.check", "audit.tools")
@pytest.mark.parametrize("name", ["x", "3", "000000000000", "0000000000003", "-00000000001", "000000001000"])
async def test_what_lies_among_the_rows_and_is_none_is_named_and_not_listed(
    name: str, tmp_path: Path, autojump_clock: Any
) -> None:
    """Whoever writes into the file can have it found by whatever they like."""
    await served(tmp_path / "data")
    text, _ = seal(THIEF, "0" * 64, event(int(name) if name.isdigit() else 3, actor="mallory"), 1)
    with closing(sqlite3.connect(tmp_path / "data" / sqlite_file.FILE, isolation_level=None)) as db:
        put = "INSERT INTO document (kind, name, version, data, sum) VALUES ('audit', ?, 1, ?, ?)"
        row = db.execute(put, (name, text, sum_of(text))).lastrowid
        mark = "INSERT INTO mark (document, facet, value) SELECT ?, id, '1' FROM facet WHERE kind = 'audit'"
        db.execute(f"{mark} AND name = 'all'", (row,))
    found = faults(tmp_path / "data", whole=False)
    assert any("lies among the rows" in fault.message or fault.n == 1000 for fault in found), found
    verdict, listed = await asked(tmp_path / "data")
    assert [fault["message"] for fault in verdict["faults"]] == [f"{name!r} lies among the rows, and is none"]
    assert [row["n"] for row in listed["events"]] == [6, 5, 4, 3, 2, 1]


@pytest.mark.requirement("audit.tools")
async def test_what_the_list_hides_or_moves_is_named(tmp_path: Path, autojump_clock: Any) -> None:
    one = "(SELECT id FROM document WHERE kind = 'audit' AND name = '00000000000{}')"
    for number, (change, rows) in enumerate(
        (
            (f"DELETE FROM mark WHERE document = {one.format(3)}", "rows 3 to 3"),
            (f"DELETE FROM mark WHERE document >= {one.format(5)}", "rows 5 to 6"),
            (f"UPDATE mark SET id = id + 1000 WHERE document = {one.format(2)}", "rows 2 to 2"),
        )
    ):
        await served(tmp_path / str(number))
        with closing(sqlite3.connect(tmp_path / str(number) / sqlite_file.FILE, isolation_level=None)) as db:
            db.execute(change)
        verdict, _ = await asked(tmp_path / str(number))
        said = f"{rows} are not in the list, or not in their place"
        assert [fault["message"] for fault in verdict["faults"]] == [said]


@pytest.mark.requirement("audit.check")
async def test_a_row_that_is_a_text_in_the_file_is_named_and_stops_nothing(
    tmp_path: Path, autojump_clock: Any
) -> None:
    await served(tmp_path / "data")
    with closing(sqlite3.connect(tmp_path / "data" / sqlite_file.FILE, isolation_level=None)) as db:
        db.execute("UPDATE document SET data = CAST(data AS TEXT) WHERE name = '000000000003'")
    with sqlite_check.opened(tmp_path / "data" / sqlite_file.FILE) as (snapshot, _):
        assert snapshot is not None
        assert [fault.name for fault in snapshot.sums()] == ["000000000003"]
    assert [(fault.n, fault.message) for fault in faults(tmp_path / "data")] == [(3, "row 3 can't be read")]
    verdict, listed = await asked(tmp_path / "data")
    assert (listed.code, "turret audit export" in listed.message) == ("unavailable", True)
    said = [fault["message"] for fault in verdict["faults"]]
    assert said == ["row 3 can't be read", "the list of the rows can't be read"]


@pytest.mark.requirement("audit.heads")
async def test_an_older_database_beside_the_newer_head_is_found(tmp_path: Path, autojump_clock: Any) -> None:
    await served(tmp_path / "data")
    shutil.copytree(tmp_path / "data", tmp_path / "older")
    await serve(tmp_path / "data", 2, "Later")
    newer = tmp_path / "data" / FILE
    assert faults(tmp_path / "data") == []
    shutil.copy2(newer, tmp_path / "older" / FILE)
    found = faults(tmp_path / "older")
    assert [(fault.n, "an older store put back" in fault.message) for fault in found] == [(7, True)]
    await serve(tmp_path / "older", 1, "Even later")  # the broker goes on, and says so in a row
    found = faults(tmp_path / "older")
    assert found[0].message == "rows 7 to 8 are missing"
    assert "row 9 is an alarm" in found[1].message


@pytest.mark.requirement("audit.heads")
async def test_an_older_head_beside_the_newer_database_is_no_fault(
    tmp_path: Path, autojump_clock: Any
) -> None:
    kept = await served(tmp_path / "data")
    assert kept.older is not None
    kept.beside = kept.older.beside
    put_on_disk(kept, tmp_path / "data")
    assert faults(tmp_path / "data") == []
    await serve(tmp_path / "data", 1, "Later")
    assert faults(tmp_path / "data") == []


@pytest.mark.requirement("audit.restored")
async def test_a_restored_store_holds_before_it_was_served_and_after(
    tmp_path: Path, autojump_clock: Any
) -> None:
    def told(*_: Any) -> None:
        pass

    await served(tmp_path / "data")
    sqlite_backup.back_up(tmp_path / "data", tmp_path / "one.backup", at=1, key=None, told=told)
    await serve(tmp_path / "data", 2, "Later")
    found = sqlite_backup.contents(tmp_path / "one.backup")
    with sqlite_backup.restoring(tmp_path / "one.backup", tmp_path / "new", found, now_ms=2, told=told):
        pass
    for file in ("wire.key", FILE):
        shutil.copy2(tmp_path / "data" / file, tmp_path / "new" / file)
    assert faults(tmp_path / "new") == []
    await serve(tmp_path / "new", 1, "After")
    assert faults(tmp_path / "new") == []
    rows = kept_on_disk(tmp_path / "new").rows
    assert b'"kind":"restored"' in rows[7]
    assert b'"former":{"at":' in rows[7]
    assert len(rows) == 8
