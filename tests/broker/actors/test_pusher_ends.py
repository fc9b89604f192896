"""Pushes that are held, go, move or have a gap: who is sent nothing, and what is said of what is missing."""

import pytest
import trio
from standardwebhooks import WebhookVerificationError
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.app import Caller, Outcome
from broker.store.port import Retention
from tests.support.agents import make_agent
from tests.support.broker import Bench
from tests.support.webhooks import URL, Receiver, happens, registered, settled, verify, world

OPERATOR = Caller(operator=True)
HOUR_S = 3600


@pytest.mark.requirement("webhook.standing")
async def test_a_suspended_agent_is_sent_nothing_and_all_of_it_afterwards(autojump_clock: MockClock) -> None:
    receiver = Receiver()
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
        receiver.shut = trio.Event()
        await happens(bench, ann, 1)
        await receiver.wait(1)
        await bench.call("suspend_agent", OPERATOR, agent_id=ann.agent, reason="x")
        await wait_all_tasks_blocked()
        assert receiver.under_way == 0  # what was under way is broken off
        receiver.shut = None
        await happens(bench, ann, 2)
        await trio.sleep(HOUR_S)
        assert len(receiver.posts) == 1
        await bench.call("unsuspend_agent", OPERATOR, agent_id=ann.agent)
        await settled(bench)
        assert receiver.numbers == [1, 1, 2]
        assert [post.event["data"]["what"] for post in receiver.posts][1:] == [
            "test",
            "suspended",
            "test",
            "unsuspended",
        ]


@pytest.mark.requirement("webhook.standing")
async def test_with_its_agent_a_webhook_is_gone(autojump_clock: MockClock) -> None:
    receiver = Receiver(500)
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann", test=True)
        await registered(bench, ann)
        await happens(bench, ann, 1)
        await receiver.wait(2)
        await bench.call("delete_test_agent", OPERATOR, agent_id=ann.agent)
        await settled(bench)
        assert await bench.store.get("push", str(ann.agent)) is None
        assert bench.broker.statistics().pushes.pushes == 0
        count = len(receiver.posts)
        await happens(bench, ann, 2)
        await trio.sleep(HOUR_S)
        assert len(receiver.posts) == count


@pytest.mark.requirement("webhook.standing")
async def test_a_webhook_goes_in_the_commit_that_takes_its_agent(bench: Bench) -> None:
    """Also where nothing is sent, and nobody looks."""
    ann = await make_agent(bench, "Ann", test=True)
    await registered(bench, ann)
    await bench.call("delete_test_agent", OPERATOR, agent_id=ann.agent)
    assert await bench.store.get("push", str(ann.agent)) is None


@pytest.mark.requirement("webhook.gap")
async def test_what_the_stream_keeps_no_more_is_a_gap_that_the_payload_names(
    autojump_clock: MockClock,
) -> None:
    receiver = Receiver(lambda _id, times: Outcome(500))
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
        await happens(bench, ann, *range(10))
        await receiver.wait(1)
        await trio.sleep(10)
        await bench.store.sweep(
            Retention(now=bench.clock.now_ms(), events_before=bench.clock.now_ms(), events_keep=4)
        )
        receiver.answer = 200
        await settled(bench)
        assert receiver.numbers[-4:] == [6, 7, 8, 9]
        gaps = [post.event.get("gap") for post in receiver.posts]
        assert gaps[-4:] == ["trimmed", None, None, None]
        assert set(gaps[:-4]) == {None}


@pytest.mark.requirement("webhook.gap")
async def test_a_store_restored_from_a_backup_is_a_gap_too(autojump_clock: MockClock) -> None:
    receiver = Receiver()
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
        await happens(bench, ann, 1)
        await settled(bench)
        bench.store._secret = b"another"  # type: ignore[attr-defined]
        await happens(bench, ann, 2, 3)
        await settled(bench)
        assert [post.event.get("gap") for post in receiver.posts] == [None, "epoch_changed", None]
        assert receiver.numbers == [1, 2, 3]


@pytest.mark.requirement("webhook.replaced")
async def test_another_url_takes_over_what_waits_and_the_old_one_gets_no_more(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Receiver()
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann")
        old = await registered(bench, ann)
        receiver.shut = trio.Event()
        await happens(bench, ann, 1, 2)
        await wait_all_tasks_blocked()
        receiver.shut, held = None, receiver.shut
        new = await registered(bench, ann, "https://other.example/")
        await settled(bench)
        assert not held.is_set()
        assert [post.url for post in receiver.posts] == [URL, *["https://other.example/"] * 2]
        assert receiver.numbers == [1, 1, 2]
        assert verify(monkeypatch, new, receiver.posts[1])
        with pytest.raises(WebhookVerificationError):
            verify(monkeypatch, old, receiver.posts[1])


@pytest.mark.requirement("webhook.replaced")
async def test_a_deleted_webhook_gets_no_more(autojump_clock: MockClock) -> None:
    receiver = Receiver(500)
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
        await happens(bench, ann, 1)
        await receiver.wait(1)
        assert await bench.call("delete_webhook", ann) == {"deleted": True}
        await happens(bench, ann, 2)
        await settled(bench)
        await trio.sleep(HOUR_S)
        assert len(receiver.posts) == 1
        assert await bench.call("get_webhook", ann) == {"webhook": None}
