"""The document of a push: what tools change of it, and what the worker says of an earlier turn."""

from typing import Any

import pytest
from msgspec.structs import replace

from broker.actors.push import Came, RemovePush, RenewSecret, SendAgain, SetPush, read_push
from broker.core.push import Disabled, Failing, Last, PushRow, Secret
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench, code


def new(agent_id: str, **members: Any) -> PushRow:
    row = PushRow(
        push_id=agent_id,
        form="webhook",
        agent_id=agent_id,
        stream=f"agent:{agent_id}",
        url="https://a.example/",
        position=3,
        created_at=1,
        secrets=(Secret("one"),),
    )
    return replace(row, **members)


def came(row: PushRow, **members: Any) -> Came:
    return Came(replace(row, **members))


@pytest.fixture
async def row(bench: Bench) -> PushRow:
    ann = await make_agent(bench, "Ann")
    made = new(str(ann.agent))
    assert await ask(bench, made, SetPush(made, "set")) == "set"
    return made


async def ask(bench: Bench, row: PushRow, command: Any) -> Any:
    return await bench.broker._services.house.ask("push", row.push_id, command)


async def kept(bench: Bench, row: PushRow) -> PushRow:
    found = await read_push(bench.store, row.push_id)
    assert found is not None
    return found


async def test_how_far_the_worker_came_is_kept(bench: Bench, row: PushRow) -> None:
    told = came(row, position=7, epoch="e", delivered=4, failing=Failing(1, 2, 3), last=Last(9, 500))
    assert await ask(bench, row, told) == await kept(bench, row)
    now = await kept(bench, row)
    assert (now.position, now.epoch, now.delivered, now.failing) == (7, "e", 4, Failing(1, 2, 3))
    assert now.last == Last(9, 500)


@pytest.mark.requirement("webhook.replaced")
async def test_what_the_worker_says_of_an_earlier_turn_is_passed_over(bench: Bench, row: PushRow) -> None:
    await ask(bench, row, SendAgain(1, "", "again"))
    assert (await ask(bench, row, came(row, position=9))).position == 1
    assert (await kept(bench, row)).position == 1


@pytest.mark.requirement("webhook.replaced")
async def test_what_the_worker_says_of_a_push_that_was_removed_is_not_said_of_the_next(
    bench: Bench, row: PushRow
) -> None:
    await ask(bench, row, RemovePush("gone"))
    await ask(bench, row, SetPush(replace(row, created_at=row.created_at + 1), "set"))
    assert (await ask(bench, row, came(row, position=9))).position == row.position


async def test_another_url_keeps_the_place_and_forgets_the_failure(bench: Bench, row: PushRow) -> None:
    await ask(bench, row, came(row, position=5, disabled=Disabled(1, "gone"), failing=Failing(1, 2, 3)))
    other = new(row.push_id, url="https://b.example/", position=99, secrets=(Secret("two"),))
    await ask(bench, row, SetPush(other, "set"))
    now = await kept(bench, row)
    assert (now.url, now.position, now.secrets) == ("https://b.example/", 5, (Secret("two"),))
    assert (now.failing, now.disabled, now.turn) == (None, None, 2)


@pytest.mark.requirement("webhook.given-up")
async def test_the_inbox_hears_of_an_end_once(bench: Bench, row: PushRow) -> None:
    told = came(row, disabled=Disabled(1, "gone"))
    await ask(bench, row, told)
    await ask(bench, row, told)
    assert len(await bench.store.find("dm", "inbox", row.agent_id)) == 1
    assert await bench.store.find("push", "live", "1") == []


async def test_a_push_of_another_form_ends_without_a_letter(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    row = new(str(ann.agent), form="a2a")
    await ask(bench, row, SetPush(row, None))
    await ask(bench, row, came(row, disabled=Disabled(1, "gone")))
    assert await bench.store.find("dm", "inbox", row.agent_id) == []


async def test_an_end_of_a_webhook_whose_agent_is_gone_tells_nobody(bench: Bench) -> None:
    row = new("ag_01JZ000000000000000000GONE")
    await ask(bench, row, SetPush(row, None))
    await ask(bench, row, came(row, disabled=Disabled(1, "gone")))
    assert await bench.store.find("dm", "inbox", row.agent_id) == []


async def test_without_a_push_there_is_nothing_to_change(bench: Bench) -> None:
    row = new("ag_01JZ000000000000000000NONE")
    for command in (RemovePush("x"), RenewSecret("s", 1, "x"), SendAgain(None, "", "x")):
        assert code(await ask(bench, row, command)) == "not_found"
    assert await ask(bench, row, came(row)) is None


async def test_a_push_that_was_removed_is_gone(bench: Bench, row: PushRow) -> None:
    assert not isinstance(await ask(bench, row, RemovePush("gone")), Refusal)
    assert await read_push(bench.store, row.push_id) is None
