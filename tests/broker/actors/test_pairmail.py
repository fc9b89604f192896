"""The messages of a pair, at its actor: order with a revocation, and what a failed commit leaves."""

from typing import Any

import pytest

from broker.actors.pair import Revoke
from broker.actors.pairmail import Send
from broker.store.memory import MemoryStore
from broker.store.port import InDoubt, Unavailable
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench
from tests.support.pairs import agree, posted, send


@pytest.mark.requirement("agreement.revoked")
async def test_a_message_behind_a_revocation_in_the_same_turn_is_refused(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    held = await agree(bench, ann, bob)
    one, other = str(ann.agent), str(bob.agent)
    replies = [
        posted(bench, ann, bob, command)
        for command in (
            Send("msg_1", one, other, "before"),
            Revoke(held, other),
            Send("msg_2", one, other, "after"),
        )
    ]
    answers = [await reply.wait() for reply in replies]
    assert [code(each) for each in answers] == ["accepted", "accepted", "agreement_required"]
    inbox = await bench.call("get_inbox", bob)
    assert [each["body"] for each in inbox["messages"]] == ["before"]


class Failing(MemoryStore):
    """Fails the commits that remember an answer as it is told."""

    fails: type[Exception] | None = None
    lands = False

    async def commit(self, unit: Any) -> None:
        if self.fails is not None and unit.remember is not None:
            fails, self.fails = self.fails, None
            if self.lands:
                await super().commit(unit)
            raise fails
        await super().commit(unit)


FAULTS = [(Unavailable, False, "unavailable"), (InDoubt, False, "in_doubt"), (InDoubt, True, "in_doubt")]


@pytest.mark.requirement("message.once")
@pytest.mark.parametrize(("fails", "lands", "expected"), FAULTS)
async def test_what_failed_is_sent_again_under_its_key_and_arrives_once(
    fails: type[Exception], lands: bool, expected: str
) -> None:
    store = Failing()
    async with open_bench(store=store) as bench:
        ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
        await agree(bench, ann, bob)
        store.fails, store.lands = fails, lands
        assert code(await send(bench, ann, bob, idempotency_key="k")) == expected
        again = await send(bench, ann, bob, idempotency_key="k")
        assert code(again) == "accepted"
        inbox = await bench.call("get_inbox", bob)
        assert [each["message_id"] for each in inbox["messages"]] == [again["message_id"]]
        assert inbox["unread"] == 1


@pytest.mark.requirement("message.once", "message.read")
@pytest.mark.parametrize(("fails", "lands", "expected"), FAULTS)
async def test_what_is_remembered_of_marking_has_happened_and_what_is_unavailable_has_not(
    fails: type[Exception], lands: bool, expected: str
) -> None:
    store = Failing()
    async with open_bench(store=store) as bench:
        ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
        await agree(bench, ann, bob)
        ids = [(await send(bench, ann, bob, each))["message_id"] for each in ("one", "two")]
        params = {"message_ids": [*ids, "msg_none"], "idempotency_key": "k"}
        store.fails, store.lands = fails, lands
        assert code(await bench.call("mark_messages_read", bob, **params)) == expected
        assert (await bench.call("get_inbox", bob))["unread"] == (0 if lands else 2)
        again = await bench.call("mark_messages_read", bob, **params)
        assert again == {"marked": ids, "missing": ["msg_none"]}
        assert (await bench.call("get_inbox", bob))["unread"] == 0
        other = {**params, "message_ids": ids}
        assert code(await bench.call("mark_messages_read", bob, **other)) == "IDEMPOTENCY_MISMATCH"


@pytest.mark.requirement("message.tier")
@pytest.mark.parametrize(("fails", "lands", "expected"), FAULTS)
async def test_a_message_counts_in_its_senders_day_if_it_was_sent_and_once(
    fails: type[Exception], lands: bool, expected: str
) -> None:
    store = Failing()
    async with open_bench(store=store) as bench:
        ends = bench.clock.now_ms() + 2 * 86_400_000
        ann, bob = (
            await make_agent(bench, "Ann", tier="unclaimed", expires_at=ends),
            await make_agent(bench, "Bob"),
        )
        await agree(bench, bob, ann)
        for number in range(19):
            assert code(await send(bench, ann, bob, str(number))) == "accepted"
        store.fails, store.lands = fails, lands
        assert code(await send(bench, ann, bob, "the last", idempotency_key="k")) == expected
        assert code(await send(bench, ann, bob, "the last", idempotency_key="k")) == "accepted"
    async with open_bench(store=store, clock=bench.clock) as bench:
        assert code(await send(bench, ann, bob, "one more")) == "quota_exceeded"
        bench.clock.step(86_400_000)
        assert code(await send(bench, ann, bob, "one more")) == "accepted"
