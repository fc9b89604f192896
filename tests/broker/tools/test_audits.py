"""What operators read of the audit, and that they are told where it does not hold."""

from typing import Any

import pytest
import trio

from broker.actors.auditor import HEAD, KEY, ROW, row_id
from broker.actors.headkeeper import MemoryHead
from broker.app import open_broker
from broker.clock import VirtualClock
from broker.config import Settings
from broker.store.memory import MemoryStore
from broker.store.port import Put, Unavailable, Unit
from broker.wire.keyring import Keyring, WireKey
from broker.wire.refusals import Refusal
from tests.broker.actors.test_auditor import kept_in, put_back
from tests.support.agents import make_agent
from tests.support.audits import DAMAGES, WIRE
from tests.support.broker import START_MS, Bench, code
from tests.support.registration import OPERATOR


async def busy(bench: Bench, count: int = 6) -> str:
    """So many rows: an agent that is suspended and released."""
    ann = str((await make_agent(bench, "Ann")).agent)
    for n in range(count):
        tool = ("unsuspend_agent", {}) if n % 2 else ("suspend_agent", {"reason": f"reason {n}"})
        await bench.call(tool[0], OPERATOR, agent_id=ann, **tool[1])
    return ann


async def listed(bench: Bench, **params: Any) -> list[int]:
    """The numbers of all rows in all pages."""
    found: list[int] = []
    while True:
        page = await bench.call("list_audit_events", OPERATOR, limit=2, **params)
        found += [row["n"] for row in page["events"]]
        if "next" not in page:
            return found
        params["after"] = page["next"]


@pytest.mark.requirement("audit.tools")
async def test_events_are_listed_by_who_did_what_the_newest_first(bench: Bench) -> None:
    ann = await busy(bench)
    bob = await make_agent(bench, "Bob")
    await bench.call("report_agent", bob, target_agent_id=ann, category="spam", details="x")
    await trio.testing.wait_all_tasks_blocked()
    assert await listed(bench) == [7, 6, 5, 4, 3, 2, 1]
    assert await listed(bench, kind="suspend_agent") == [5, 3, 1]
    assert await listed(bench, kind="suspend-agent") == [5, 3, 1], (
        "none would be read as: nobody was suspended"
    )
    assert await listed(bench, actor=bob.agent) == [7]
    assert await listed(bench, actor="operator") == [6, 5, 4, 3, 2, 1]
    assert await listed(bench, actor="operator", kind="report_agent") == []
    assert await listed(bench, actor=bob.agent, kind="report_agent") == [7]
    assert await listed(bench, subject=ann) == [7, 6, 5, 4, 3, 2, 1]
    assert await listed(bench, subject=bob.agent) == []
    page = await bench.call("list_audit_events", OPERATOR, limit=1, kind="suspend_agent")
    assert page["events"][0]["detail"] == {"agent_id": ann, "reason": "reason 4"}
    wrong = await bench.call("list_audit_events", OPERATOR, kind="suspend_agent", after="actor-1")
    assert code(wrong) == "bad_request"
    assert code(await bench.call("list_audit_events", OPERATOR, kind="x", subject="y")) == "bad_request"


async def test_only_operators_read_it(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    for tool in ("list_audit_events", "verify_audit_log"):
        with pytest.raises(LookupError):
            await bench.call(tool, ann)


@pytest.mark.requirement("audit.tools")
async def test_a_log_that_nobody_touched_holds_and_says_by_which_key(bench: Bench) -> None:
    empty = await bench.call("verify_audit_log", OPERATOR)
    assert empty == {"ok": True, "rows": 0}
    await busy(bench)
    verdict = await bench.call("verify_audit_log", OPERATOR)
    assert (verdict["ok"], verdict["rows"], verdict["head"]["count"]) == (True, 6, 6)
    assert verdict["head"]["wire"] == bench.broker.pk


@pytest.mark.requirement("audit.tools", "audit.heads")
@pytest.mark.parametrize("name", DAMAGES)
async def test_each_damage_is_found_by_the_running_broker(name: str) -> None:
    store, keeper, clock = MemoryStore(), MemoryHead(), VirtualClock(START_MS)
    keyring = Keyring((WireKey(WIRE, START_MS),))
    async with open_broker(Settings(), store, clock, keyring, keeper=keeper) as broker:
        bench = Bench(broker, store, clock)
        await busy(bench, 3)
        older = kept_in(store, keeper)
        ann = str((await make_agent(bench, "Bob")).agent)
        for _ in range(3):
            await bench.call("suspend_agent", OPERATOR, agent_id=ann, reason="x")
        kept = kept_in(store, keeper)
        kept.older = older
        damage, first, words = DAMAGES[name]
        damage(kept)
        await put_back(kept, store, keeper)
        verdict = await bench.call("verify_audit_log", OPERATOR)
    assert not verdict["ok"]
    assert verdict.get("first") == first
    assert any(words in fault["message"] for fault in verdict["faults"]), verdict


@pytest.mark.requirement("audit.tools")
async def test_both_heads_and_the_tail_are_found_gone_by_what_the_broker_remembers() -> None:
    store, keeper, clock = MemoryStore(), MemoryHead(), VirtualClock(START_MS)
    keyring = Keyring((WireKey(WIRE, START_MS),))
    async with open_broker(Settings(), store, clock, keyring, keeper=keeper) as broker:
        bench = Bench(broker, store, clock)
        ann = await busy(bench, 3)
        older = kept_in(store, keeper)
        await bench.call("suspend_agent", OPERATOR, agent_id=ann, reason="x")
        await put_back(older, store, keeper)
        verdict = await bench.call("verify_audit_log", OPERATOR)
    assert verdict["first"] == 4


async def test_a_row_that_can_not_be_read_is_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await busy(bench, 3)
    get = bench.store.get

    async def damaged(kind: str, id: str) -> Any:
        if (kind, id) == (ROW, row_id(2)):
            raise Unavailable
        return await get(kind, id)

    monkeypatch.setattr(bench.store, "get", damaged)
    verdict = await bench.call("verify_audit_log", OPERATOR)
    assert (verdict["first"], verdict["count"]) == (2, 1)


@pytest.mark.requirement("audit.order")
async def test_many_operators_at_once_make_one_chain_with_all_they_did(bench: Bench) -> None:
    ann = str((await make_agent(bench, "Ann")).agent)

    async def act(n: int) -> None:
        answer = await bench.call("suspend_agent", OPERATOR, agent_id=ann, reason=f"reason {n}")
        assert not isinstance(answer, Refusal)

    async with trio.open_nursery() as nursery:
        for n in range(40):
            nursery.start_soon(act, n)
        for _ in range(5):
            nursery.start_soon(bench.call, "verify_audit_log", OPERATOR)
    verdict = await bench.call("verify_audit_log", OPERATOR)
    assert (verdict["ok"], verdict["rows"]) == (True, 40)
    rows = await bench.store.find(ROW, "all", "1", limit=100)
    assert len({row.doc.split(b'"reason":"')[1].split(b'"')[0] for row in rows}) == 40


async def test_rows_that_come_while_it_is_verified_are_no_fault(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await busy(bench, 2)
    get, asked = bench.store.get, 0

    async def slow(kind: str, id: str) -> Any:
        nonlocal asked
        if (kind, id) == (ROW, row_id(1)):
            asked += 1
            if asked == 1:
                await bench.call("suspend_agent", OPERATOR, agent_id=ann, reason="meanwhile")
        return await get(kind, id)

    monkeypatch.setattr(bench.store, "get", slow)
    verdict = await bench.call("verify_audit_log", OPERATOR)
    assert (verdict["ok"], verdict["rows"]) == (True, 2)
    assert len(await bench.store.find(ROW, "all", "1")) == 3


async def test_a_head_without_any_row_is_found(bench: Bench) -> None:
    await busy(bench, 1)
    head = await bench.store.get(HEAD, KEY)
    assert head is not None
    await bench.store.commit(Unit(puts=(Put(ROW, row_id(1), 1, None),)))
    verdict = await bench.call("verify_audit_log", OPERATOR)
    assert (verdict["ok"], verdict["first"], verdict["rows"]) == (False, 1, 0)


async def test_a_head_that_can_not_be_read_is_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await busy(bench, 3)
    get = bench.store.get

    async def damaged(kind: str, id: str) -> Any:
        if kind == HEAD:
            raise Unavailable
        return await get(kind, id)

    monkeypatch.setattr(bench.store, "get", damaged)
    verdict = await bench.call("verify_audit_log", OPERATOR)
    assert [fault["message"] for fault in verdict["faults"]] == [
        "the head in the store is not signed by the wire"
    ]
