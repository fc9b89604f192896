"""A library's actor: what it publishes, changes and takes away, in one commit each."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
import pytest
import trio

from broker.actors.library import read_content, read_resource
from broker.app import Caller
from broker.store.memory import MemoryStore
from broker.store.port import InDoubt, Put, Unavailable, Unit
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent, suspend
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.registration import OPERATOR
from tests.support.resources import found, publish, read

DAY_S = 86_400


def memory(bench: Bench) -> MemoryStore:
    assert isinstance(bench.store, MemoryStore)
    return bench.store


def kinds(bench: Bench) -> dict[str, int]:
    """How many documents of each kind a library has."""
    names = [kind for kind, _ in memory(bench)._docs]
    return {kind: names.count(kind) for kind in ("resource", "content", "library")}


@pytest.mark.requirement("resource.whole")
async def test_what_fails_changes_neither_the_resource_nor_its_content(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    id = await publish(bench, ann, content="old")
    memory(bench).gate.fail_next(Unavailable("as planned"))
    answer = await bench.call("update_resource", ann, resource_id=id, title="New", content="new")
    assert code(answer) == "unavailable"
    kept = await read(bench, ann, id)
    assert (kept["title"], kept["content"], kept["version"]) == ("Rates", "old", 1)
    memory(bench).gate.fail_next(InDoubt(), applied=True)
    await bench.call("update_resource", ann, resource_id=id, title="New", content="new")
    kept = await read(bench, ann, id)
    assert (kept["title"], kept["content"], kept["version"]) == ("New", "new", 2)
    assert await found(bench, ann, "new") == ["New"]


@pytest.mark.requirement("resource.whole")
async def test_changes_at_once_come_one_after_the_other_and_readers_see_whole_ones(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    id = await publish(bench, ann, title="0", content="0" * 999)
    seen: list[tuple[str, set[str]]] = []

    async def change(number: int) -> None:
        text = str(number)
        answer = await bench.call("update_resource", ann, resource_id=id, title=text, content=text * 999)
        assert code(answer) == "accepted"

    async def look() -> None:
        for _ in range(8):
            answer = await read(bench, ann, id)
            seen.append((answer["title"], set(answer["content"])))

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for number in range(1, 9):
                nursery.start_soon(change, number)
                nursery.start_soon(look)
    assert all({title} == letters for title, letters in seen)
    assert (await read(bench, ann, id))["version"] == 9


@pytest.mark.requirement("resource.whole", "resource.edit")
async def test_of_changes_that_expect_the_same_version_one_is_made(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    id = await publish(bench, ann)
    codes: list[str] = []

    async def change(number: int) -> None:
        answer = await bench.call(
            "update_resource", ann, resource_id=id, title=f"title {number}", expected_version=1
        )
        codes.append(code(answer))

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(change, number)
    assert sorted(codes) == ["accepted", *["conflict"] * 4]


class Moving(MemoryStore):
    """Has something done between the two reads of a resource."""

    def __init__(self) -> None:
        super().__init__()
        self.then: list[Callable[[], Awaitable[Any]]] = []

    async def get(self, kind: str, id: str) -> Any:
        if kind == "content" and self.then:
            await self.then.pop(0)()
        return await super().get(kind, id)


@pytest.mark.requirement("resource.whole", "resource.access")
async def test_a_reader_that_is_overtaken_gets_the_later_one_if_it_may_read_that() -> None:
    async with open_bench(store=(store := Moving())) as bench:
        ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
        id = await publish(bench, ann, content="old")
        update: Any = partial(bench.call, "update_resource", ann, resource_id=id)
        store.then.append(partial(update, content="newer", title="Newer"))
        got = await read(bench, bob, id)
        assert (got["title"], got["content"], got["version"]) == ("Newer", "newer", 2)
        store.then.append(partial(update, content="closed", access="agreement"))
        assert code(await read(bench, bob, id)) == "agreement_required"
        await update(access="public")
        store.then.append(partial(update, content="hidden", access="private"))
        assert code(await read(bench, bob, id)) == "not_found"
        await update(access="public")
        store.then.append(partial(bench.call, "delete_resource", ann, resource_id=id))
        assert code(await read(bench, bob, id)) == "not_found"
        id = await publish(bench, ann, content="old")
        update = partial(bench.call, "update_resource", ann, resource_id=id)
        store.then += [partial(update, content=str(number)) for number in range(4)]
        assert code(await read(bench, bob, id)) == "unavailable"


@pytest.mark.requirement("resource.damaged")
@pytest.mark.parametrize("spoil", [b"something else", None])
async def test_a_content_that_is_not_what_was_published_is_unavailable_and_named(
    bench: Bench, spoil: bytes | None, caplog: Any
) -> None:
    ann = await make_agent(bench, "Ann")
    id = await publish(bench, ann)
    await bench.store.commit(Unit(puts=(Put("content", id, 1, spoil),)))
    assert code(await read(bench, ann, id)) == "unavailable"
    assert f"what is stored of resource {id} is damaged" in caplog.text
    row = await read_resource(bench.store, id)
    assert row is not None
    with pytest.raises(Unavailable):
        await read_content(bench.store, row)


@pytest.mark.requirement("resource.edit")
async def test_a_deleted_one_leaves_nothing_and_is_not_found(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    id = await publish(bench, ann)
    assert kinds(bench) == {"resource": 1, "content": 1, "library": 1}
    assert await bench.call("delete_resource", ann, resource_id=id) == {"resource_id": id, "deleted": True}
    assert kinds(bench) == {"resource": 0, "content": 0, "library": 1}
    for name in ("delete_resource", "update_resource", "read_resource"):
        more = {"title": "x"} if name == "update_resource" else {}
        assert code(await bench.call(name, ann, resource_id=id, **more)) == "not_found"
    assert (await bench.call("list_my_resources", ann)) == {"resources": [], "count": 0, "bytes": 0}


@pytest.mark.requirement("resource.limits")
async def test_many_at_once_do_not_exceed_the_quota() -> None:
    async with open_bench(tuned(network={"resources": 3, "resource_bytes": 12})) as bench:
        ann = await make_agent(bench, "Ann")
        answers: list[Any] = []

        async def one(number: int) -> None:
            answers.append(await bench.call("publish_resource", ann, title=f"t{number}", content="four"))

        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(one, number)
        assert sorted(map(code, answers)) == [*["accepted"] * 3, *["quota_exceeded"] * 3]
        listed = await bench.call("list_my_resources", ann)
        assert (listed["count"], listed["bytes"]) == (3, 12)
        refused = await bench.call("publish_resource", ann, title="t", content="x")
        assert (refused.detail["reason"], refused.detail["limit"]) == ("resources", 3)
        await bench.call("delete_resource", ann, resource_id=listed["resources"][0]["resource_id"])
        refused = await bench.call("publish_resource", ann, title="t", content="fives")
        assert (refused.detail["reason"], refused.detail["limit"]) == ("resource_bytes", 12)


@pytest.mark.requirement("resource.limits")
async def test_an_agent_that_nobody_has_claimed_publishes_nothing(bench: Bench) -> None:
    later = bench.clock.now_ms() + DAY_S * 1000
    young = await make_agent(bench, "Young", tier="unclaimed", expires_at=later)
    refused = await bench.call("publish_resource", young, title="t", content="x")
    assert (code(refused), refused.detail["reason"], refused.detail["limit"]) == (
        "quota_exceeded",
        "resources",
        0,
    )
    assert (await bench.call("get_onboarding_status", young))["limits"]["resources"] is False
    ann = await make_agent(bench, "Ann")
    assert (await read(bench, young, await publish(bench, ann)))["content"] == "text"


@pytest.mark.requirement("resource.removed")
async def test_what_a_gone_agent_published_is_removed_within_a_day_bit_by_bit(
    bench: Bench, autojump_clock: Any
) -> None:
    ann, bob = await make_agent(bench, "Ann", test=True), await make_agent(bench, "Bob")
    for number in range(45):
        await publish(bench, ann, title=f"t{number}")
    kept = await publish(bench, bob, title="kept")
    bench.clock.step(DAY_S * 1000 + 1)
    await trio.sleep(61)
    assert kinds(bench)["resource"] == 46  # whose agent lives keeps all
    assert not isinstance(await bench.call("delete_test_agent", OPERATOR, agent_id=ann.agent), Refusal)
    assert await found(bench, bob) == ["kept"]
    bench.clock.step(DAY_S * 1000)
    await trio.sleep(61)
    assert kinds(bench) == {"resource": 1, "content": 1, "library": 1}
    fresh = Caller(**{**msgspec.structs.asdict(bob), "issued": bench.ts})
    assert (await read(bench, fresh, kept))["content"] == "text"


@pytest.mark.requirement("resource.publisher")
async def test_who_is_not_there_publishes_nothing(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    suspend(bench, ann)
    assert code(await bench.call("publish_resource", ann, title="t", content="x")) == "suspended"
    assert kinds(bench)["library"] == 0
