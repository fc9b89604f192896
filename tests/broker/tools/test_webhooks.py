"""The tools of a webhook."""

import base64
import json
import logging
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from broker.app import Caller, Outcome
from broker.clock import VirtualClock
from broker.store.memory import MemoryStore
from broker.wire.events import read_cursor
from broker.wire.refusals import Refusal
from gateways.mcp.results import sentence
from tests.support.agents import make_agent
from tests.support.broker import START_MS, Bench, code, open_bench, tuned
from tests.support.webhooks import URL, Receiver, happens, registered, row_of, settled

OPERATOR = Caller(operator=True)
BAD = (
    "http://hooks.example/", "file:///etc/passwd", "gopher://hooks.example/", "ftp://hooks.example/",
    "//hooks.example/", "hooks.example", "https://", "https:///x", "https://u:p@hooks.example/", "https://u@hooks.example/",
    "https://hooks.example:22/", "https://hooks.example:8443/", "https://hooks.example:443443/",
    "https://hooks.example:x/", "https://hooks.example/#part", "https://hooks.example/a b", "https://hooks.example/\n",
    "https://hooks.example/\x00", "https://bücher.example/", "https://127。0。0。1/", "https://hooks.example\\@x.example/",
    "https://[::1/", "http://localhost:80/", "https://localhost:8443/", "https://hooks.example/" + "a" * 2048,
    "javascript:x",
)  # fmt: skip


@pytest.fixture
async def ann(bench: Bench) -> Caller:
    return await make_agent(bench, "Ann")


async def look(bench: Bench, caller: Caller) -> Any:
    return (await bench.call("get_webhook", caller))["webhook"]


@pytest.mark.requirement("webhook.tools")
async def test_a_webhook_is_registered_shown_replaced_and_deleted(bench: Bench, ann: Caller) -> None:
    assert await look(bench, ann) is None
    made = await bench.call("set_webhook", ann, url=URL)
    assert made["url"] == URL
    assert made["created_at"] == pytest.approx(bench.clock.now_ms(), abs=1000)
    assert len(base64.b64decode(made["secret"].removeprefix("whsec_"))) == 32
    assert await look(bench, ann) == {
        "url": URL,
        "state": "active",
        "created_at": made["created_at"],
        "waiting": 0,
        "delivered": 0,
    }
    other = await bench.call("set_webhook", ann, url="https://other.example/")
    assert other["secret"] != made["secret"]
    assert (await look(bench, ann))["url"] == "https://other.example/"
    assert await bench.call("delete_webhook", ann) == {"deleted": True}
    assert await look(bench, ann) is None
    for tool in ("delete_webhook", "rotate_webhook_secret", "redeliver_webhook_events", "test_webhook"):
        assert code(await bench.call(tool, ann)) == "not_found"


@pytest.mark.requirement("webhook.tools")
@pytest.mark.parametrize("url", BAD)
async def test_what_is_no_https_url_on_its_own_port_is_refused(bench: Bench, ann: Caller, url: str) -> None:
    refused = await bench.call("set_webhook", ann, url=url)
    assert (code(refused), refused.detail["path"]) == ("bad_request", "url")
    assert await look(bench, ann) is None


@pytest.mark.parametrize(
    "url", ["https://hooks.example", "https://hooks.example:443/a?b=c", "https://1.1.1.1/"]
)
async def test_these_are(bench: Bench, ann: Caller, url: str) -> None:
    assert code(await bench.call("set_webhook", ann, url=url)) == "accepted"


@pytest.mark.requirement("webhook.tools")
@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x", "https://localhost:8443/", "http://[::1]:80/"])
async def test_loopback_is_named_where_the_operator_allows_it(url: str) -> None:
    for allowed in (False, True):
        async with open_bench(tuned(webhooks={"allow_loopback": allowed})) as bench:
            ann = await make_agent(bench, "Ann")
            told = code(await bench.call("set_webhook", ann, url=url))
            assert told == ("accepted" if allowed else "bad_request")
            assert code(await bench.call("set_webhook", ann, url="http://10.0.0.1/")) == "bad_request"


@pytest.mark.requirement("webhook.tools")
async def test_an_agent_that_nobody_has_claimed_has_none(bench: Bench) -> None:
    young = await make_agent(bench, "Yo", tier="unclaimed", expires_at=bench.clock.now_ms() + 1000)
    refused = await bench.call("set_webhook", young, url=URL)
    assert (code(refused), refused.detail["reason"]) == ("quota_exceeded", "webhook")


@pytest.mark.requirement("webhook.secret")
async def test_a_secret_is_shown_once_and_kept_nowhere_as_it_is(
    bench: Bench, ann: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = await bench.call("set_webhook", ann, url=URL, idempotency_key="k")
    again = await bench.call("set_webhook", ann, url=URL, idempotency_key="k")
    assert again == made  # who asks the identical request gets the identical answer
    new = await bench.call("rotate_webhook_secret", ann)
    assert new["old_secret_until"] == pytest.approx(bench.clock.now_ms() + 24 * 3_600_000, abs=1000)
    shown = json.dumps([await look(bench, ann), (await bench.call("wait_for_events", ann, after="0"))])
    kept = repr(bench.store._docs) + repr(bench.store._remembered) + repr(bench.store._streams)  # type: ignore[attr-defined]
    for secret in (made["secret"], new["secret"]):
        for text in (shown, kept, caplog.text):
            assert secret not in text
            assert secret.removeprefix("whsec_") not in text
    assert (await look(bench, ann))["old_secret_until"] == new["old_secret_until"]


@pytest.mark.requirement("webhook.tools")
async def test_what_follows_a_cursor_is_sent_again(autojump_clock: MockClock) -> None:
    receiver = Receiver()
    async with open_bench(courier=receiver) as bench:
        ann = await make_agent(bench, "Ann")
        await happens(bench, ann, 1)
        await registered(bench, ann)
        await happens(bench, ann, 2, 3, 4)
        await settled(bench)
        ids = {post.event["data"]["n"]: post.id for post in receiver.posts}
        cursor = receiver.posts[0].event["data"]["cursor"]
        assert await bench.call("redeliver_webhook_events", ann, after=cursor) == {"waiting": 2}
        await settled(bench)
        assert receiver.numbers == [2, 3, 4, 3, 4]
        assert [post.id for post in receiver.posts[3:]] == [ids[3], ids[4]]
        assert await bench.call("redeliver_webhook_events", ann, after="0") == {"waiting": 4}
        await settled(bench)
        assert receiver.numbers[5:] == [1, 2, 3, 4]
        assert await bench.call("redeliver_webhook_events", ann) == {"waiting": 0}
        assert (await look(bench, ann))["delivered"] == 9


@pytest.mark.requirement("webhook.tools")
async def test_a_cursor_of_another_stream_or_a_made_up_one_is_refused(bench: Bench, ann: Caller) -> None:
    bob = await make_agent(bench, "Bob")
    await registered(bench, ann)
    for caller in (ann, bob):
        await happens(bench, caller, 1)
    own, foreign = [
        (await bench.call("wait_for_events", caller, after="0"))["cursor"] for caller in (ann, bob)
    ]
    made = read_cursor(own)
    assert made is not None
    for after in (foreign, "", "x", "1", f"{made.tag}.{made.epoch}.9", f"{made.tag}.{'0' * 16}.1"):
        refused = await bench.call("redeliver_webhook_events", ann, after=after)
        assert (code(refused), refused.detail["path"]) == ("bad_request", "after")
    assert code(await bench.call("redeliver_webhook_events", ann, after=own)) == "accepted"


@pytest.mark.requirement("webhook.tools")
async def test_ten_attempts_a_minute_begin_by_hand(autojump_clock: MockClock) -> None:
    """Else whoever asks for it again and again has us call at somebody's door as often."""
    receiver = Receiver(500)
    async with open_bench(courier=receiver) as bench:
        ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
        await registered(bench, ann)
        await happens(bench, ann, 1)
        for _ in range(9):
            assert code(await bench.call("redeliver_webhook_events", ann)) == "accepted"
            await receiver.wait(len(receiver.posts))
        for tool in ("redeliver_webhook_events", "rotate_webhook_secret"):
            assert code(await bench.call(tool, ann)) == "rate_limited"
        refused = await bench.call("set_webhook", ann, url=URL)
        assert code(refused) == "rate_limited"
        assert len(receiver.posts) <= 10
        assert await registered(bench, bob)
        await trio.sleep(refused.detail["retry_after_ms"] / 1000)
        assert await registered(bench, ann)


@pytest.mark.requirement("webhook.tools")
async def test_a_ping_says_what_came_of_it_and_is_sent_once_in_ten_seconds(autojump_clock: MockClock) -> None:
    receiver = Receiver()
    async with open_bench(courier=receiver) as bench:
        ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
        await registered(bench, ann)
        await registered(bench, bob)
        assert await bench.call("test_webhook", ann) == {"taken": True, "status": 204}
        assert receiver.posts[0].event["type"] == "ping"
        assert receiver.posts[0].event["data"] == {}
        refused = await bench.call("test_webhook", ann)
        assert code(refused) == "rate_limited"
        receiver.answer = 302
        assert await bench.call("test_webhook", bob) == {"taken": False, "status": 302}
        await trio.sleep(refused.detail["retry_after_ms"] / 1000)
        receiver.answer = lambda _id, _times: Outcome(None, "not_public")
        assert await bench.call("test_webhook", ann) == {"taken": False, "error": "not_public"}
        assert (await row_of(bench, ann)).last is None  # it is no event: nothing follows from it


async def test_a_ping_waits_for_its_answer_within_a_bound(autojump_clock: MockClock) -> None:
    receiver = Receiver()
    receiver.shut = trio.Event()
    async with open_bench(courier=receiver) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
        with trio.fail_after(21):
            assert await bench.call("test_webhook", ann) == {"taken": False, "error": "no_answer"}
        assert receiver.under_way == 0


async def test_a_broker_without_a_way_out_tests_nothing(bench: Bench, ann: Caller) -> None:
    await registered(bench, ann)
    assert code(await bench.call("test_webhook", ann)) == "unavailable"


@pytest.mark.requirement("webhook.tools")
async def test_how_it_does_is_shown(autojump_clock: MockClock) -> None:
    receiver = Receiver(503)
    async with open_bench(courier=receiver) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
        await happens(bench, ann, 1, 2)
        await receiver.wait(2)
        await trio.sleep(1)
        state = await look(bench, ann)
        assert (state["state"], state["tries"], state["waiting"], state["last_status"]) == (
            "failing",
            2,
            2,
            503,
        )
        assert state["last_at"] == pytest.approx(START_MS + 5000, abs=600)
        assert state["next_try_at"] - state["last_at"] == pytest.approx(30_000, abs=3000)
        receiver.answer = lambda _id, _times: Outcome(None, "no_answer")
        await receiver.wait(3)
        await trio.sleep(1)
        state = await look(bench, ann)
        assert "last_status" not in state
        assert state["last_error"] == "no_answer"
        receiver.answer = 200
        await settled(bench)
        state = await look(bench, ann)
        assert (state["state"], state["delivered"], state["waiting"]) == ("active", 2, 0)
        assert not {"tries", "failing_since"} & state.keys()
        statistics = bench.broker.statistics().pushes
        assert (statistics.delivered, statistics.failed, statistics.pushes) == (2, 3, 1)


@pytest.mark.requirement("webhook.operators")
async def test_operators_see_what_was_disabled_and_the_others(autojump_clock: MockClock) -> None:
    receiver = Receiver(lambda _id, _times: Outcome(410))
    async with open_bench(courier=receiver) as bench:
        agents = [await make_agent(bench, name) for name in ("Ann", "Bob", "Cay")]
        for agent in agents:
            await registered(bench, agent)
        for agent in agents[:2]:
            await happens(bench, agent, 1)
        await settled(bench)
        listed = await bench.call("list_webhooks", OPERATOR, limit=1)
        more = await bench.call("list_webhooks", OPERATOR, limit=1, after=listed["next"])
        found = [*listed["webhooks"], *more["webhooks"]]
        assert {each["agent_id"] for each in found} == {agent.agent for agent in agents[:2]}
        assert {(each["form"], each["push"]["disabled_reason"]) for each in found} == {("webhook", "gone")}
        assert "next" not in more
        (live,) = (await bench.call("list_webhooks", OPERATOR, disabled=False))["webhooks"]
        assert (live["agent_id"], live["push"]["url"]) == (agents[2].agent, URL)
        assert code(await bench.call("list_webhooks", OPERATOR, after="x")) == "bad_request"
        assert "whsec_" not in json.dumps([found, live])


async def test_two_agents_have_a_webhook_each(bench: Bench, ann: Caller) -> None:
    bob = await make_agent(bench, "Bob")
    await registered(bench, ann)
    await registered(bench, bob, "https://bob.example/")
    assert (await look(bench, ann))["url"] == URL
    await bench.call("delete_webhook", bob)
    assert (await look(bench, ann))["url"] == URL


async def test_a_webhook_outlives_a_restart() -> None:
    store, clock = MemoryStore(), VirtualClock(START_MS)
    async with open_bench(store=store, clock=clock) as bench:
        ann = await make_agent(bench, "Ann")
        await registered(bench, ann)
    async with open_bench(store=store, clock=clock) as bench:
        assert (await look(bench, ann))["url"] == URL


def test_the_sentences_say_nothing_that_others_wrote() -> None:
    assert sentence("get_webhook", {"webhook": None}) == "You have no webhook."
    told = sentence(
        "get_webhook", {"webhook": {"state": "failing", "waiting": 3, "url": "https://x/ do this"}}
    )
    assert told == "Your webhook is failing; 3 event(s) wait."
    assert not isinstance(told, Refusal)
