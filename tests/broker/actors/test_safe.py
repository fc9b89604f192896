"""What is kept of secrets, how they are put into headers, and how they get another key."""

from typing import Any

import pytest

from broker.actors.safe import KIND, Safe, SafeActor, UnsetSecret, reseal
from broker.core.push import Outcome
from broker.core.safe import SafeRow
from broker.store.memory import MemoryStore
from broker.store.port import Put, Store, Unit
from broker.store.stored import read_row
from broker.wire.refusals import Refusal
from broker.wire.safekeys import SafeKeys
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench

OLD, NEW = SafeKeys([b"o" * 32]), SafeKeys([b"o" * 32, b"n" * 32])
OWNER = "ow_01ARZ3NDEKTSV4RRFFQ69G5FAV"


def safe(bench: Bench, keys: SafeKeys) -> Safe:
    entropy = bench.broker._services.entropy
    return Safe(store=bench.store, clock=bench.clock, keys=keys, entropy=entropy)


async def keep(bench: Bench, at: Safe, holder: str, name: str, value: str) -> None:
    command = await at.sealing(holder, name, value, None)
    answer = await bench.broker._services.house.ask(KIND, holder, command)
    assert not isinstance(answer, Refusal)


@pytest.mark.requirement("trial.secret-used")
async def test_headers_are_filled_with_the_owners_secrets(store: Store) -> None:
    async with open_bench(store=store) as bench:
        ann = await make_agent(bench, "Ann", owner_id=OWNER)
        lone = await make_agent(bench, "Lone")
        assert ann.agent is not None
        assert lone.agent is not None
        at = safe(bench, NEW)
        await keep(bench, at, OWNER, "A", "${A}")
        await keep(bench, at, lone.agent, "A", "mine")
        headers = (("x-a", "<${A}>"), ("x-b", "$${A}"))
        assert await at.fill(ann.agent, headers) == (("x-a", "<${A}>"), ("x-b", "${A}"))
        assert await at.fill(lone.agent, headers) == (("x-a", "<mine>"), ("x-b", "${A}"))
        for template, name in (("${B}", "B"), ("${A}${C}", "C")):
            assert await at.fill(ann.agent, (("x", template),)) == Outcome(None, "secret_unset", secret=name)
        lost = safe(bench, SafeKeys([b"z" * 32]))
        assert await lost.fill(ann.agent, headers) == Outcome(None, "secret_unreadable", secret="A")
        assert [(each.name, lost.is_readable(OWNER, each)) for each in await lost.kept(OWNER)] == [
            ("A", False)
        ]


@pytest.mark.requirement("trial.secret-rotation")
async def test_all_get_the_new_key_and_what_no_key_opens_stays(store: Store) -> None:
    async with open_bench(store=store) as bench:
        await keep(bench, safe(bench, OLD), OWNER, "A", "one")
        await keep(bench, safe(bench, SafeKeys([b"z" * 32])), OWNER, "LOST", "two")
        await keep(bench, safe(bench, NEW), "ag_x", "B", "three")
    before = await read_row(store, SafeRow, KIND, OWNER)
    entropy: Any = lambda size: b"1" * size  # noqa: E731
    assert await reseal(store, NEW, entropy) == (2, 1)
    after = await read_row(store, SafeRow, KIND, OWNER)
    assert before is not None
    assert after is not None
    assert after.find("LOST") == before.find("LOST")
    alone = SafeKeys([b"n" * 32])
    async with open_bench(store=store) as bench:
        kept = await safe(bench, alone).kept(OWNER)
        assert [safe(bench, alone).is_readable(OWNER, each) for each in kept] == [True, False]
        assert all(
            safe(bench, alone).is_readable("ag_x", each) for each in await safe(bench, alone).kept("ag_x")
        )
    assert await reseal(store, NEW, entropy) == (2, 1)
    assert await read_row(store, SafeRow, KIND, OWNER) == after, "nothing is written for nothing"


async def test_a_holder_with_nothing_left_is_no_document() -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        await keep(bench, safe(bench, NEW), OWNER, "A", "one")
        house = bench.broker._services.house
        assert await house.ask(KIND, OWNER, UnsetSecret("A")) == {"name": "A", "unset": True}
        assert await store.get(KIND, OWNER) is None
        assert code(await house.ask(KIND, OWNER, UnsetSecret("A"))) == "NOT_FOUND"


async def test_it_knows_no_other_command(bench: Bench) -> None:
    assert SafeActor.kind == KIND
    with pytest.raises(Exception, match="int"):
        await bench.broker._services.house.ask(KIND, OWNER, 1)


@pytest.mark.requirement("trial.secret-key-changed")
async def test_nothing_is_sealed_with_a_key_that_is_kept_no_more(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    there = True
    async with open_bench(store=store) as bench:
        at = safe(bench, SafeKeys([b"o" * 32], lambda: there))
        await keep(bench, at, OWNER, "A", "one")
        there = False
        refused = await at.sealing(OWNER, "A", "two", None)
        assert isinstance(refused, Refusal)
        assert (refused.code, refused.detail["reason"]) == ("unavailable", "secrets_key")
        assert await at.fill_for(OWNER, (("x", "${A}"),)) == (("x", "one"),), "what is there is used"
        there = True
        await keep(bench, at, OWNER, "A", "two")
    assert "put it back" in caplog.text


@pytest.mark.requirement("trial.secret-key-lost")
async def test_at_the_start_those_that_no_key_opens_are_counted_aloud(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_bench(store=store) as bench:
        for name in ("A", "B"):
            await keep(bench, safe(bench, OLD), OWNER, name, "one")
        await safe(bench, NEW).look()
        assert "sealed with keys" not in caplog.text
        await safe(bench, SafeKeys([b"z" * 32])).look()
        assert "2 secrets were sealed with keys that are not here" in caplog.text
        document = await store.get(KIND, OWNER)
        assert document is not None
        await store.commit(Unit(puts=(Put(KIND, OWNER, document.version, b"{", (("all", "1"),)),)))
        await safe(bench, NEW).look()
    assert "can't be looked at" in caplog.text
