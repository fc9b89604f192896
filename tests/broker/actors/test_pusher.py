"""The worker that sends pushes: order, tries, restarts, and who is sent nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from standardwebhooks import WebhookVerificationError
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.actors.pusher import AT_ONCE, GROUP_S, SHARE
from broker.app import Outcome
from broker.clock import VirtualClock
from broker.core.push import GIVE_UP_MS, PushRow, Secret
from broker.store.memory import MemoryStore
from broker.store.port import Put, Store, Unavailable, Unit
from broker.store.sqlite import SqliteStore
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import START_MS, Bench, open_bench, tuned
from tests.support.pairs import agree
from tests.support.webhooks import URL, Receiver, happens, registered, row_of, settled, verify, world

HOUR_S = 3600


def failing(*bad: int, status: int = 500) -> Callable[[str, int], Outcome]:
    """Answers 500 to these requests, counted from 1 over all."""
    count = iter(range(1, 1_000_000))
    return lambda _id, _times: Outcome(status if next(count) in bad else 204)


@pytest.mark.requirement("webhook.event")
async def test_what_the_stream_carries_is_posted_signed_with_its_cursor(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Receiver()
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann")
        await happens(bench, ann, 1)  # before there is a webhook
        secret = await registered(bench, ann)
        await happens(bench, ann, 2)
        (post,) = await receiver.wait(1)
        got = verify(monkeypatch, secret, post)
        seen = await bench.call("wait_for_events", ann, after="0")
        assert got["data"] == {key: value for key, value in seen["events"][-1].items() if key != "event"}
        assert (got["type"], got["data"]["n"]) == ("notice", 2)
        assert got["timestamp"] == "2026-06-25T00:01:18.000Z"
        assert post.url == URL
        assert post.headers["content-type"] == "application/json"
        with pytest.raises(WebhookVerificationError):
            verify(monkeypatch, secret, msgspec.structs.replace(post, body=post.body + b" "))


@pytest.mark.requirement("webhook.order")
async def test_a_hundred_events_to_a_receiver_that_fails_a_fifth_come_in_order(
    autojump_clock: MockClock,
) -> None:
    receiver = Receiver(failing(*range(3, 300, 5)))
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
        for number in range(100):
            await happens(bench, ann, number)
        await settled(bench)
        taken = list(dict.fromkeys(receiver.numbers))
        assert taken == list(range(100))
        assert receiver.numbers == sorted(receiver.numbers)
        assert len(receiver.posts) == 125
        assert receiver.most == 1
        ids = [post.id for post in receiver.posts]
        assert len(set(ids)) == 100
        assert not any("." in each for each in ids)


@pytest.mark.requirement("webhook.attempt")
async def test_each_attempt_has_the_same_id_and_a_time_and_signature_of_its_own(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Receiver(failing(1, 2))
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann")
        secret = await registered(bench, ann)
        await happens(bench, ann, 1)
        posts = await receiver.wait(3)
        assert len({post.id for post in posts}) == 1
        assert len({post.headers["webhook-timestamp"] for post in posts}) == 3
        assert len({post.headers["webhook-signature"] for post in posts}) == 3
        assert {verify(monkeypatch, secret, post)["data"]["n"] for post in posts} == {1}
        first, second, third = (post.at for post in posts)
        assert 4_500 <= second - first <= 5_500
        assert 27_000 <= third - second <= 33_000


@pytest.mark.requirement("webhook.given-up")
async def test_after_24_hours_the_webhook_is_disabled_and_the_inbox_says_so(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def still(*_: Any) -> None:
        await trio.sleep_forever()

    for other in ("broker.actors.timers.Timers.run", "broker.tools.auditing.run"):
        monkeypatch.setattr(other, still)  # what wakes once a minute, 1,440 times a day
    receiver = Receiver(500)
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
        began = bench.clock.now_ms()
        await happens(bench, ann, 1, 2)
        await receiver.wait(1)
        state = (await bench.call("get_webhook", ann))["webhook"]
        await trio.sleep(HOUR_S)
        state = (await bench.call("get_webhook", ann))["webhook"]
        assert (state["state"], state["waiting"], state["last_status"]) == ("failing", 2, 500)
        assert state["failing_since"] == pytest.approx(began, abs=1000)
        assert bench.clock.now_ms() < state["next_try_at"] <= began + GIVE_UP_MS
        await settled(bench, every_s=600)
        assert receiver.posts[-1].at - receiver.posts[0].at == pytest.approx(GIVE_UP_MS, abs=1000)
        assert set(receiver.numbers) == {1}
        tries = len(receiver.posts)
        state = (await bench.call("get_webhook", ann))["webhook"]
        assert (state["state"], state["disabled_reason"], state["tries"]) == (
            "disabled",
            "expired",
            tries - 1,
        )
        inbox = await bench.call("get_inbox", ann)
        assert inbox["unread"] == 1
        (message,) = inbox["messages"]
        assert (message["from_agent_id"], URL in message["body"]) == ("network", True)
        events = (await bench.call("wait_for_events", ann, after="0"))["events"]
        (notice,) = [each for each in events if each.get("what") == "webhook_disabled"]
        assert (notice["reason"], notice["url"]) == ("expired", URL)
        await happens(bench, ann, 3)
        await trio.sleep(HOUR_S)
        assert len(receiver.posts) == tries
        assert bench.broker.statistics().pushes.disabled == 1
        receiver.answer = 200
        assert (await bench.call("redeliver_webhook_events", ann)) == {"waiting": 5}
        await settled(bench)
        assert receiver.numbers[tries:] == [1, 2, 3]


@pytest.mark.requirement("webhook.given-up")
async def test_410_disables_at_once(autojump_clock: MockClock) -> None:
    receiver = Receiver(410)
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
        await happens(bench, ann, 1)
        await settled(bench)
        assert len(receiver.posts) == 1
        assert (await bench.call("get_webhook", ann))["webhook"]["disabled_reason"] == "gone"
        assert (await bench.call("get_inbox", ann))["unread"] == 1


@pytest.mark.requirement("webhook.retry-after")
async def test_a_receiver_that_asks_for_time_gets_it(autojump_clock: MockClock) -> None:
    receiver = Receiver(lambda _id, times: Outcome(429, retry_after_s=600.0) if times == 1 else Outcome(200))
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
        await happens(bench, ann, 1)
        first, second = await receiver.wait(2)
        assert second.at - first.at == pytest.approx(600_000, abs=100)


@pytest.mark.requirement("webhook.rotation")
async def test_for_a_day_after_a_rotation_both_secrets_sign(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Receiver()
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann")
        old = await registered(bench, ann)
        new = (await bench.call("rotate_webhook_secret", ann))["secret"]
        assert new != old
        await happens(bench, ann, 1)
        (post,) = await receiver.wait(1)
        assert verify(monkeypatch, old, post) == verify(monkeypatch, new, post)
        bench.clock.step(24 * HOUR_S * 1000)
        await happens(bench, ann, 2)
        post = (await receiver.wait(2))[1]
        assert verify(monkeypatch, new, post)["data"]["n"] == 2
        with pytest.raises(WebhookVerificationError):
            verify(monkeypatch, old, post)


@pytest.mark.requirement("webhook.restart")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_broker_that_dies_loses_none_and_repeats_under_the_same_ids(
    autojump_clock: MockClock, tmp_path: Path, kind: str
) -> None:
    """Nothing is written between the events and the end of the first broker; the last request is under way then."""
    memory = MemoryStore()

    def opened() -> Store:
        return memory if kind == "memory" else SqliteStore(tmp_path, hop="inline")

    receiver, again = Receiver(), Receiver()
    store, clock = opened(), VirtualClock(START_MS)
    async with world(receiver, store, clock) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
        await happens(bench, ann, *range(20))
        await receiver.wait(5)
        receiver.shut = trio.Event()
        await wait_all_tasks_blocked()
    if kind == "sqlite":
        await store.aclose()
        store = opened()
    async with world(again, store, clock) as bench:
        await again.wait(20 - len(receiver.posts))
        await settled(bench)
    known = {post.id: post.body for post in receiver.posts}
    for post in again.posts:
        assert known.setdefault(post.id, post.body) == post.body
    assert sorted({*receiver.numbers, *again.numbers}) == list(range(20))
    assert again.numbers == sorted(again.numbers)
    assert len(known) == 20
    await store.aclose()


@pytest.mark.requirement("webhook.restart")
async def test_a_failing_webhook_waits_for_its_time_across_a_restart(autojump_clock: MockClock) -> None:
    receiver, again = Receiver(500), Receiver()
    store, clock = MemoryStore(), VirtualClock(START_MS)
    async with world(receiver, store, clock) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
        await happens(bench, ann, 1)
        await receiver.wait(4)
        await trio.sleep(1)
        due = (await bench.call("get_webhook", ann))["webhook"]["next_try_at"]
    async with world(again, store, clock) as bench:
        (post,) = await again.wait(1)
        assert post.at == pytest.approx(due, abs=100)
        assert post.id == receiver.posts[0].id


@pytest.mark.requirement("webhook.idle")
async def test_a_thousand_idle_webhooks_cost_no_write_and_no_wait_at_the_start(
    autojump_clock: MockClock,
) -> None:
    class Counting(MemoryStore):
        commits = reads = 0

        async def commit(self, unit: Unit) -> None:
            self.commits += 1
            await super().commit(unit)

        async def find(self, *args: Any, **options: Any) -> Any:
            self.reads += args[0] == "push"
            return await super().find(*args, **options)

    store = Counting()
    for number in range(1000):
        row = PushRow(
            push_id=f"ag_{number:026}",
            form="webhook",
            agent_id=f"ag_{number:026}",
            stream=f"agent:ag_{number:026}",
            url=URL,
            position=0,
            created_at=0,
            secrets=(Secret("00"),),
        )
        await store.commit(
            Unit(puts=(Put("push", row.push_id, 0, msgspec.json.encode(row), (("live", "1"),)),))
        )
    store.commits, receiver = 0, Receiver()
    async with world(receiver, store) as bench:
        assert store.reads == 0  # the broker is there, and nobody has waited for that
        await trio.sleep(10)
        assert bench.broker.statistics().pushes.pushes == 1000
        assert bench.broker.statistics().pushes.waiting == 0
        assert (store.commits, receiver.posts) == (0, [])


async def test_many_events_in_a_moment_are_few_writes(autojump_clock: MockClock) -> None:
    receiver = Receiver()
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
        await happens(bench, ann, *range(200))
        await settled(bench)
        document = await bench.store.get("push", str(ann.agent))
        assert document is not None
        assert len(receiver.posts) == 200
        assert document.version == 2
        assert (await row_of(bench, ann)).delivered == 200
        receiver.answer = lambda _id, _times: Outcome(200)
        monotonic = bench.clock.monotonic

        async def slow(url: str, headers: Any, body: bytes) -> Outcome:
            await trio.sleep(GROUP_S / 4)
            return Outcome(200)

        receiver.send = slow  # type: ignore[method-assign]
        began = monotonic()
        await happens(bench, ann, *range(40))
        await settled(bench)
        assert monotonic() - began >= 10
        document = await bench.store.get("push", str(ann.agent))
        assert document is not None
        assert 10 <= document.version <= 14  # one a second


@pytest.mark.requirement("webhook.parallel")
async def test_who_never_answers_holds_up_nobody_else_and_attempts_are_bounded(
    autojump_clock: MockClock,
) -> None:
    receiver = Receiver()
    receiver.shut = trio.Event()
    async with world(receiver) as bench:
        agents = [await make_agent(bench, f"Agent {number}") for number in range(AT_ONCE + 6)]
        for agent in agents:
            await registered(bench, agent)
        for agent in agents:
            await happens(bench, agent, 1)
        await wait_all_tasks_blocked()
        assert receiver.under_way == AT_ONCE
        receiver.shut.set()
        await settled(bench)
        assert receiver.most == AT_ONCE
        assert len(receiver.posts) == len(agents)


@pytest.mark.requirement("webhook.parallel")
async def test_an_agent_with_many_pushes_has_a_share_of_the_attempts(autojump_clock: MockClock) -> None:
    receiver = Receiver()
    receiver.shut = trio.Event()
    async with world(receiver) as bench:
        ann, bob, cay = [await make_agent(bench, name) for name in ("Ann", "Bob", "Cay")]
        await agree(bench, ann, bob, scopes=["task"])
        await registered(bench, cay)
        for _ in range(4):
            task = (await bench.call("send_task", ann, target_agent_id=bob.agent, text="x"))["task"]
            for n in range(5):
                params = {"task_id": task["task_id"], "url": URL, "config_id": f"c{n}", "after": 0}
                assert not isinstance(await bench.call("set_task_push", ann, **params), Refusal)
        await wait_all_tasks_blocked()
        assert receiver.under_way == SHARE
        await happens(bench, cay, 1)
        await wait_all_tasks_blocked()
        assert receiver.under_way == SHARE + 1
        receiver.shut.set()
        await settled(bench)
        assert len(receiver.posts) == 4 * 5 + 1


@pytest.mark.requirement("webhook.parallel")
async def test_an_agent_has_so_many_attempts_a_minute_and_others_have_their_own(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One who answers is asked as fast as events come, and a task's come to five pushes and two webhooks."""
    monkeypatch.setattr("broker.actors.pusher.A_MINUTE", 3)
    receiver = Receiver()
    async with world(receiver) as bench:
        ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
        await registered(bench, ann)
        await registered(bench, bob)
        began = bench.clock.now_ms()
        await happens(bench, ann, *range(7))
        await happens(bench, bob, *range(10, 12))
        await settled(bench)
        waits = {post.event["data"]["n"]: (post.at - began) // 60_000 for post in receiver.posts}
        assert waits == {0: 0, 1: 0, 2: 0, 10: 0, 11: 0, 3: 1, 4: 1, 5: 1, 6: 2}


async def test_a_fault_ends_no_other_push_and_is_tried_again(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    receiver = Receiver()
    async with world(receiver) as bench:
        ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
        await registered(bench, ann, "https://fault.example/")
        await registered(bench, bob)
        sound, times = receiver.send, []

        async def send(url: str, headers: Any, body: bytes) -> Outcome:
            if "fault" in url and not times:
                times.append(1)
                raise RuntimeError("a fault")
            return await sound(url, headers, body)

        receiver.send = send  # type: ignore[method-assign]
        await happens(bench, ann, 1)
        await happens(bench, bob, 2)
        await settled(bench)
        assert receiver.numbers == [2, 1]
        assert "a push met a fault" in caplog.text
        assert "fault.example" not in caplog.records[-1].getMessage()


async def test_a_store_that_takes_nothing_is_waited_for(autojump_clock: MockClock) -> None:
    class Sick(MemoryStore):
        sick = 0

        async def commit(self, unit: Unit) -> None:
            if self.sick and any(put.kind == "push" for put in unit.puts):
                self.sick -= 1
                raise Unavailable
            await super().commit(unit)

    store, receiver = Sick(), Receiver()
    async with world(receiver, store) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
        store.sick = 3
        await happens(bench, ann, 1)
        await receiver.wait(1)
        await settled(bench)
        assert store.sick == 0
        assert (await row_of(bench, ann)).position == 1


async def test_without_a_way_out_nothing_is_sent(bench: Bench, autojump_clock: MockClock) -> None:
    ann = await make_agent(bench, "Ann")
    await registered(bench, ann)
    await happens(bench, ann, 1)
    await trio.sleep(HOUR_S)
    state = (await bench.call("get_webhook", ann))["webhook"]
    assert (state["state"], state["waiting"]) == ("active", 1)


@pytest.mark.requirement("webhook.secret")
async def test_a_secret_that_can_be_read_no_more_disables(autojump_clock: MockClock) -> None:
    """The store was restored where the wire has another key."""
    receiver, store, clock = Receiver(), MemoryStore(), VirtualClock(START_MS)
    async with world(receiver, store, clock) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
    async with open_bench(None, store, clock, SigningKey.generate(), receiver) as bench:
        await happens(bench, ann, 1)
        await settled(bench)
        assert receiver.posts == []
        assert (await bench.call("get_webhook", ann))["webhook"]["disabled_reason"] == "no_secret"
        assert not isinstance(await bench.call("rotate_webhook_secret", ann), Refusal)
        await bench.call("redeliver_webhook_events", ann)
        await settled(bench)
        assert receiver.numbers == [1]


async def test_events_that_come_while_the_last_one_is_sent_are_sent_too(autojump_clock: MockClock) -> None:
    receiver = Receiver()
    async with world(receiver, settings=tuned(streams={"keep_events": 100})) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
        for number in range(60):
            await happens(bench, ann, number)
            for _ in range(number % 13):
                await trio.lowlevel.checkpoint()
        await settled(bench)
        assert receiver.numbers == list(range(60))
        assert json.loads(receiver.posts[0].body)["data"]["cursor"].endswith(".1")
