"""The operators' tools for tapes, and the catalog for whoever tries plans."""

import msgspec
import pytest
from msgspec.structs import replace

from broker.app import Caller
from broker.core.tapes.synthetic import KINDS
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent, owner_caller
from tests.support.broker import ANYONE, Bench, code, open_bench, tuned
from tests.support.imports import bring, finish, foreign, send
from tests.support.operators import OPERATOR


@pytest.mark.requirement("catalog.entry")
async def test_the_catalog_has_what_is_made_and_what_was_imported(bench: Bench) -> None:
    ann, tape = await make_agent(bench, "Ann"), foreign()
    await bring(bench, tape, title="A thin day")
    whole = await bench.broker.catalog(ann, "all")
    shown = msgspec.to_builtins(whole)["entries"]
    assert [each["index"] for each in shown] == [0, 1, 2, 3, 100]
    assert [each.get("kind") for each in shown] == [*KINDS, None]
    assert [each["licence"] for each in shown] == ["CC0-1.0"] * 4 + ["CC-BY-4.0"]
    last = shown[-1]
    about = {"instrument": "USDSEK", "title": "A thin day", "ticks": len(tape), "start": tape.about.start}
    assert about.items() <= last.items()
    assert (last["ref"], last["licence"], last["step"]) == (tape.ref(), "CC-BY-4.0", 1000)
    for index in (0, 3, 100):
        one = msgspec.to_builtins(await bench.broker.catalog(ann, index))
        assert one == next(each for each in shown if each["index"] == index)
        found = await bench.broker._services.tapes.find(index, None)
        assert not isinstance(found, Refusal)
        assert found.ref == one["ref"], "what is shown is what a session has"
    assert await bench.broker.catalog(ann, "pricing") == {"free": True}
    for index in (4, 99, 101):
        assert code(await bench.broker.catalog(ann, index)) == "NOT_FOUND"
    assert b"bid" not in msgspec.json.encode(whole), "no tick is shown"


@pytest.mark.requirement("catalog.scope")
async def test_the_catalog_is_for_tokens_with_the_scope(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    for which in ("all", "pricing", 0, 100):
        told: Caller
        for told, said in (
            (ANYONE, "unauthenticated"),
            (replace(ann, scopes=frozenset()), "insufficient_scope"),
        ):
            refused = await bench.broker.catalog(told, which)  # type: ignore[arg-type]  # mypy widens the texts
            assert (code(refused), refused.detail["scope"]) == (said, "trial")
    assert code(await bench.broker.catalog(owner_caller(bench, "ow_" + "0" * 26), "pricing")) in (
        "accepted",
        "unauthenticated",
    )
    assert not {"send_tape_rows", "import_tape", "remove_tape", "list_tapes"} & set(bench.broker.tools)


@pytest.mark.requirement("catalog.import")
async def test_what_is_no_tape_is_refused_and_nothing_is_written(bench: Bench) -> None:
    tape = foreign()
    about = {"ref": tape.ref(), "part": 0}
    wrong = await bench.call("send_tape_rows", OPERATOR, **about, rows="5,6 – 7\n")
    assert (code(wrong), wrong.detail["path"]) == ("bad_request", "rows")
    assert (
        code(await bench.call("send_tape_rows", OPERATOR, **{**about, "ref": "x"}, rows="1")) == "bad_request"
    )
    assert (
        code(await bench.call("send_tape_rows", OPERATOR, **{**about, "part": 1024}, rows="1"))
        == "bad_request"
    )
    assert await bench.store.get("tape", tape.ref()) is None
    parts = await send(bench, tape)
    for words in ({"title": ""}, {"title": "a\nb"}, {"title": "x" * 121}, {"licence": ""}):
        assert code(await finish(bench, tape, parts, **words)) == "bad_request"


@pytest.mark.requirement("catalog.import")
async def test_without_room_on_the_disk_no_tape_comes() -> None:
    async with open_bench(tuned(store={"min_free_bytes": 2**62})) as bench:
        tape = foreign()
        rows = tape.content().decode()
        assert (
            code(await bench.call("send_tape_rows", OPERATOR, ref=tape.ref(), part=0, rows=rows))
            == "unavailable"
        )


@pytest.mark.requirement("catalog.audited")
async def test_what_operators_do_to_the_catalog_is_audited_without_the_quotes(bench: Bench) -> None:
    tape = foreign()
    await bring(bench, tape)
    await bench.call("remove_tape", OPERATOR, ref=tape.ref())
    await bench.call("verify_audit_log", OPERATOR)
    events = (await bench.call("list_audit_events", OPERATOR))["events"]
    said = {each["kind"]: each for each in events}
    assert set(said) == {"import_tape", "remove_tape"}, "parts are many, and nobody sees them"
    assert {each["subject"] for each in said.values()} == {tape.ref()}
    assert said["import_tape"]["detail"]["title"] == "A day in March"
