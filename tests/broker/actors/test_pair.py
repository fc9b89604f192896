"""The pair's actor: what two letters at once lead to, and what a restart finds."""

from typing import Any

import pytest
import trio

from broker.actors.pair import Ask, Respond
from broker.store.memory import MemoryStore
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.pairs import ask, posted, send, told


@pytest.mark.requirement("agreement.once")
async def test_of_an_acceptance_and_a_decline_the_first_one_counts(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    request = await ask(bench, ann, bob)
    replies = [
        posted(bench, ann, bob, Respond(request["request_id"], str(bob.agent), accept, f"agr_{n}"))
        for n, accept in enumerate((False, True))
    ]
    answers = [await reply.wait() for reply in replies]
    assert answers[0].status == "declined"
    assert code(answers[1]) == "already_exists"


@pytest.mark.requirement("agreement.one-open")
async def test_of_two_that_ask_each_other_at_once_one_asks(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    one, other = str(ann.agent), str(bob.agent)
    first = posted(bench, ann, bob, Ask("cr_1", "agr_1", one, other, "p", ("message",), 30))
    second = posted(bench, ann, bob, Ask("cr_2", "agr_2", other, one, "p", ("message",), 30))
    assert code(await first.wait()) == "accepted"
    assert (await second.wait()).detail == {"request_id": "cr_1"}


@pytest.mark.requirement("agreement.expires")
async def test_what_was_due_while_nobody_was_there_ends_at_the_start(autojump_clock: Any) -> None:
    store = MemoryStore()
    settings = tuned(streams={"keep_days": 1000})
    async with open_bench(settings, store) as bench:
        ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
        await ask(bench, ann, bob)
        clock = bench.clock
    clock.step(31 * 86_400_000)
    async with open_bench(settings, store, clock) as bench:
        await trio.sleep(2)
        assert [each["what"] for each in await told(bench, ann, "contact")] == ["expired"]


async def test_a_letter_that_is_none_is_a_fault(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await ask(bench, ann, bob)
    assert type(await posted(bench, ann, bob, "x").wait()).__name__ == "Crashed"
    assert isinstance(await send(bench, ann, bob), Refusal)  # another actor took its place
