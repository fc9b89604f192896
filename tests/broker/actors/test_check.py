"""The check: each fault of a call, a document or a log is named, and the rest is looked at all the same."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from broker.actors.check import Counts, check_store
from broker.store import sqlite_check
from broker.store.port import Fault
from broker.store.sqlite import SqliteStore
from broker.wire.envelope import bootstrap
from broker.wire.ids import ConvId
from tests.support.broker import code, open_bench
from tests.support.stores import dealt, spoiled

ROW = (
    "UPDATE text SET data = CAST(replace(data, ?, ?) AS BLOB) WHERE log = (SELECT id FROM log WHERE name = ?)"
)
DOCUMENT = "UPDATE document SET data = CAST(replace(data, ?, ?) AS BLOB) WHERE kind = 'conv' AND name = ?"


def found(path: Path) -> tuple[list[Fault], Counts]:
    counts = Counts()
    with sqlite_check.opened(path) as (snapshot, faults):
        assert snapshot is not None
        assert faults == []
        return [step for step in check_store(snapshot, counts) if isinstance(step, Fault)], counts


@pytest.mark.requirement("store.check")
async def test_a_store_with_calls_of_every_phase_holds(tmp_path: Path, autojump_clock: Any) -> None:
    await dealt(tmp_path / "data")
    faults, counts = found(spoiled(tmp_path / "data"))
    assert faults == []
    assert counts == Counts(conversations=11, envelopes=29, events=58)


@pytest.mark.requirement("store.check-call")
@pytest.mark.parametrize(
    ("phase", "old", "new", "why", "n"),
    [
        ("open", "1.0842", "1.0843", "bad_signature", 2),
        ("open", '"n":3', '"n":4', "bad_signature", 3),
        ("open", '{"chain"', '{"chian"', "bad_request", 0),
        ("wire", '"evicted"', '"operator"', "bad_signature", 2),
    ],
)
async def test_a_row_that_was_changed_is_named(
    phase: str, old: str, new: str, why: str, n: int, tmp_path: Path, autojump_clock: Any
) -> None:
    convs = await dealt(tmp_path / "data")
    path = spoiled(tmp_path / "data", ROW, values=(old, new, f"conv:{convs[phase]}"))
    faults, counts = found(path)
    [fault] = faults
    assert (fault.where, fault.name, fault.n) == ("conversation", convs[phase], n)
    assert fault.message.startswith(why)
    assert counts.conversations == 11


@pytest.mark.requirement("store.check-call")
async def test_the_chain_that_a_row_shows_is_compared(tmp_path: Path, autojump_clock: Any) -> None:
    convs = await dealt(tmp_path / "data")
    sql = (
        ROW.replace("replace(data, ?, ?)", "substr(data, 1, 10) || 'ffff' || substr(data, 15)") + " AND n = 2"
    )
    [fault] = found(spoiled(tmp_path / "data", sql, values=(f"conv:{convs['open']}",)))[0]
    assert (fault.n, fault.message.split(":")[0]) == (2, "bad_chain")


@pytest.mark.requirement("store.check-document")
@pytest.mark.parametrize(
    ("phase", "old", "new", "member"),
    [
        ("open", '"phase":"open"', '"phase":"ended"', "phase"),
        ("ringing", '"phase":"ringing"', '"phase":"open"', "phase"),
        ("ended", '"done"', '"gone"', "end"),
        ("open", '"caller":"', '"caller":"00', "caller"),
        ("open", '"callee":"', '"callee":"00', "callee"),
        ("open", '"code_from":"ALFA"', '"code_from":"ZULU"', "code_from"),
        ("open", '"code_to":"BRAV"', '"code_to":"ZULU"', "code_to"),
        ("open", '"opened_at":', '"opened_at":1', "opened_at"),
        ("open", '"answered_at":', '"answered_at":1', "answered_at"),
        ("declined", '"ended_at":', '"ended_at":1', "ended_at"),
        ("open", '"conv":"0000', '"conv":"ffff', "conv"),
    ],
)
async def test_a_document_that_says_something_else_than_its_log_is_named(
    phase: str, old: str, new: str, member: str, tmp_path: Path, autojump_clock: Any
) -> None:
    convs = await dealt(tmp_path / "data")
    faults, _ = found(spoiled(tmp_path / "data", DOCUMENT, values=(old, new, convs[phase])))
    assert [(fault.where, fault.name) for fault in faults] == [("document", convs[phase])]
    assert faults[0].message.startswith(f"{member} is ")


@pytest.mark.requirement("store.check-document")
@pytest.mark.parametrize("mark", ["open", "party", "due", "pair", "ended"])
async def test_a_document_that_is_not_found_by_what_it_should_is_named(
    mark: str, tmp_path: Path, autojump_clock: Any
) -> None:
    convs = await dealt(tmp_path / "data")
    conv = convs["ended" if mark == "ended" else "open"]
    sql = (
        "DELETE FROM mark WHERE document = (SELECT id FROM document WHERE kind = 'conv' AND name = ?)"
        " AND facet = (SELECT id FROM facet WHERE kind = 'conv' AND name = ?)"
    )
    [fault] = found(spoiled(tmp_path / "data", sql, values=(conv, mark)))[0]
    assert (fault.name, fault.message.split()[0]) == (conv, "index")


@pytest.mark.requirement("store.check-document")
async def test_rows_without_a_document_and_a_document_without_rows_are_named(
    tmp_path: Path, autojump_clock: Any
) -> None:
    convs = await dealt(tmp_path / "data")
    log = f"conv:{convs['open']}"
    gone = "DELETE FROM document WHERE kind = 'conv' AND name = ?"
    [fault] = found(spoiled(tmp_path / "data", gone, values=(convs["open"],)))[0]
    assert (fault.where, fault.name) == ("log", log)
    runs = "DELETE FROM log_run WHERE log = (SELECT id FROM log WHERE name = ?)"
    faults, _ = found(spoiled(tmp_path / "data", runs, values=(log,)))
    assert [(fault.where, fault.name) for fault in faults] == [("conversation", convs["open"]), ("log", "")]
    assert faults[1].message == "29 rows are stored, but the logs lead to 24"


@pytest.mark.requirement("store.check-document")
async def test_what_is_no_conversations_document_is_named(tmp_path: Path, autojump_clock: Any) -> None:
    convs = await dealt(tmp_path / "data")
    faults, counts = found(spoiled(tmp_path / "data", DOCUMENT, values=("{", "[", convs["open"])))
    assert [(fault.where, fault.name) for fault in faults] == [("document", convs["open"])]
    assert counts.conversations == 11


@pytest.mark.requirement("store.check-document")
async def test_a_removed_transcript_leaves_a_tombstone_and_no_rows(
    tmp_path: Path, autojump_clock: Any
) -> None:
    convs = await dealt(tmp_path / "data")
    values = ('"phase"', '"dropped":true,"phase"', convs["ended"])
    [fault] = found(spoiled(tmp_path / "data", DOCUMENT, values=values))[0]
    assert "6 rows are there" in fault.message
    log = f"(SELECT id FROM log WHERE name = 'conv:{convs['ended']}')"
    path = spoiled(
        tmp_path / "data",
        DOCUMENT,
        f"DELETE FROM text WHERE log = {log}",
        f"DELETE FROM log_run WHERE log = {log}",
        f"UPDATE log SET dropped = 1 WHERE id = {log}",
        values=values,
    )
    assert found(path)[0] == []


@pytest.mark.requirement("store.check-call")
async def test_a_call_that_the_present_key_did_not_open_is_judged_by_the_keys_of_before(
    tmp_path: Path, autojump_clock: Any
) -> None:
    convs = await dealt(tmp_path / "data")
    known = msgspec.json.encode({"pks": ["0" * 64]})
    keys = "INSERT INTO document (kind, name, version, data) VALUES ('wire', 'keys', 1, ?)"
    assert found(spoiled(tmp_path / "data", keys, values=(known,)))[0] == []
    other = ('"wire":"', '"wire":"00', convs["wire"])
    assert found(spoiled(tmp_path / "data", DOCUMENT, values=other))[0] == []  # CALL's body.wire names it


@pytest.mark.requirement("store.check")
async def test_the_wires_end_of_a_call_that_names_no_wire_is_known_by_the_document(
    tmp_path: Path, autojump_clock: Any
) -> None:
    store = SqliteStore(tmp_path / "data", hop="inline")
    async with open_bench(store=store) as bench:
        caller, called = await bench.open("ALFA"), await bench.open("BRAV")
        conv, body = "a" * 16, {"code_from": "ALFA", "code_to": "BRAV"}
        call = caller.envelope(conv, 0, "CALL", called.pk, bench.ts, bootstrap(ConvId(conv)), body)
        sent = {name: call[name] for name in ("from_pk", "sig", "envelope")}
        assert code(await bench.call("send_call", to_code="BRAV", **sent)) == "accepted"
        await trio.sleep(31)
    await store.aclose()
    assert found(spoiled(tmp_path / "data"))[0] == []


@pytest.mark.requirement("store.check-sums")
async def test_the_check_looks_at_sums_too(tmp_path: Path, autojump_clock: Any) -> None:
    await dealt(tmp_path / "data")
    assert found(spoiled(tmp_path / "data", sums=True))[0] == []
    sql = "UPDATE document SET data = CAST(replace(data, 'ALFA', 'ALFB') AS BLOB) WHERE kind = 'desk'"
    faults, _ = found(spoiled(tmp_path / "data", sql, sums=True))
    assert [(fault.where, fault.message) for fault in faults] == [
        ("document", "is not what was written (desk)")
    ]
