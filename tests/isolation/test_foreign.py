"""Another's thing looks as a missing one: the same code, words and details, and as many reads of the store."""

from collections.abc import Callable
from typing import Any

import pytest

from broker.tools.registry import collect
from broker.wire.refusals import Refusal
from tests.isolation.rows import ROWS, agent, gone
from tests.isolation.world import World, open_world
from tests.support.pairs import agree

PAIRS = {name: (row.params, row.foreign) for name, row in ROWS.items() if row.foreign is not None}
Make = Callable[[World], dict[str, Any]]


async def told(world: World, name: str, params: dict[str, Any], who: str = "carol") -> tuple[Any, ...]:
    """What somebody can tell from an answer, and what it cost."""
    del world.store.reads[:]
    answer = await world.call(name, who, **params)
    assert isinstance(answer, Refusal), "a stranger is refused"
    return answer.code, answer.message, answer.status, sorted(answer.detail), [*world.store.reads]


async def pair(world: World, name: str, params: tuple[Make, Make]) -> list[tuple[Any, ...]]:
    """What is told of the thing that is there and of the one that is not."""
    return [await told(world, name, make(world)) for make in params]


@pytest.mark.requirement("isolation.foreign-is-missing")
async def test_54_a_stranger_can_not_tell_anothers_thing_from_a_missing_one() -> None:
    different = {}
    async with open_world() as world:
        await world.call("whoami", "carol")  # what is read of her is read
        for name in PAIRS:
            for _ in range(2):  # the second time the thing's actor may be there
                there, missing = await pair(world, name, PAIRS[name])
                if there != missing or there[0] != ROWS[name].stranger:
                    different[name] = there, missing
    assert different == {}


@pytest.mark.requirement("isolation.foreign-is-missing")
async def test_nor_by_asking_again_under_an_idempotency_key() -> None:
    different = {}
    async with open_world() as world:
        await world.call("whoami", "carol")
        for name in [name for name in PAIRS if collect()[name].keyed]:
            answers = []
            for at, make in enumerate(PAIRS[name]):
                params = {**make(world), "idempotency_key": f"k-{at}"}
                answers.append([await told(world, name, params) for _ in range(2)])
            if answers[0] != answers[1]:
                different[name] = answers
    assert different == {}


@pytest.mark.requirement("isolation.foreign-is-missing")
async def test_a_reply_to_anothers_message_is_a_reply_to_none() -> None:
    async with open_world() as world:
        await agree(world.bench, world.people["carol"], world.people["erin"])

        def reply(message_id: str) -> dict[str, Any]:
            return {"recipient_agent_id": agent("erin")(world), "body": "x", "in_reply_to": message_id}

        replies: tuple[Make, Make] = (lambda w: reply(w.message), lambda _: reply(gone("msg_")))
        for _ in range(2):
            there, missing = await pair(world, "send_direct_message", replies)
        assert there == missing
        assert there[0] == "not_found"


@pytest.mark.requirement("isolation.foreign-is-missing")
async def test_of_what_is_marked_as_read_anothers_is_named_as_a_missing_one_is() -> None:
    async with open_world() as world:
        await agree(world.bench, world.people["carol"], world.people["erin"])
        mine = (
            await world.call(
                "send_direct_message", "erin", recipient_agent_id=agent("carol")(world), body="x"
            )
        )["message_id"]
        for other in (world.message, gone("msg_")):
            answer = await world.call("mark_messages_read", "carol", message_ids=[mine, other])
            assert answer == {"marked": [mine], "missing": [other]}
        (kept,) = (await world.call("get_inbox", "alice"))["messages"]
        assert kept["read"] is False


@pytest.mark.requirement("isolation.foreign-is-missing")
async def test_what_was_tried_changes_nothing_and_tells_nobody() -> None:
    async with open_world() as world:
        heads = {
            who: await world.store.head(f"agent:{world.people[who].agent}")
            for who in ("alice", "bob", "erin")
        }
        for name, (existing, _) in PAIRS.items():
            await told(world, name, existing(world))
        assert {who: await world.store.head(f"agent:{world.people[who].agent}") for who in heads} == heads
        assert len((await world.call("list_agreements", "alice"))["agreements"]) == 1
        assert [
            each["status"] for each in (await world.call("list_contact_requests", "erin"))["requests"]
        ] == ["pending"]
        assert (await world.call("get_channel_history", "bob", channel_id=world.channel))["head"] == 1
        assert (
            len((await world.call("list_channel_members", "bob", channel_id=world.channel))["members"]) == 2
        )


@pytest.mark.requirement("isolation.foreign-is-missing")
async def test_lists_and_inboxes_hold_nothing_of_anothers() -> None:
    async with open_world() as world:
        for name, member in (
            ("list_agreements", "agreements"),
            ("list_contact_requests", "requests"),
            ("get_inbox", "messages"),
            ("list_channels", "channels"),
            ("list_my_resources", "resources"),
            ("list_tasks", "tasks"),
        ):
            assert (await world.call(name, "carol"))[member] == [], name
            whose = {"list_contact_requests": "erin", "list_tasks": "bob"}.get(name, "alice")
            assert (await world.call(name, whose))[member], name
