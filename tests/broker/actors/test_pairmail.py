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
    """Fails the commits of messages as it is told."""

    fails: type[Exception] | None = None
    lands = False

    async def commit(self, unit: Any) -> None:
        if self.fails is not None and any(put.kind == "dm" for put in unit.puts):
            fails, self.fails = self.fails, None
            if self.lands:
                await super().commit(unit)
            raise fails
        await super().commit(unit)


@pytest.mark.requirement("message.once")
@pytest.mark.parametrize(
    ("fails", "lands", "expected"),
    [(Unavailable, False, "unavailable"), (InDoubt, False, "in_doubt"), (InDoubt, True, "in_doubt")],
)
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
