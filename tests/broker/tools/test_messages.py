"""Direct messages over the tools: bodies, replies, inboxes and their pages, what is kept."""

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from broker.app import Caller
from broker.config import Settings
from broker.store.memory import MemoryStore
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.pairs import agree, send, told

DAY_MS = 86_400_000


@pytest.fixture
async def ann(bench: Bench) -> Caller:
    return await make_agent(bench, "Ann")


@pytest.fixture
async def bob(bench: Bench, ann: Caller) -> Caller:
    made = await make_agent(bench, "Bob")
    await agree(bench, ann, made)
    return made


async def inbox(bench: Bench, caller: Caller, **params: Any) -> list[Any]:
    return list((await bench.call("get_inbox", caller, **params))["messages"])


@pytest.mark.requirement("message.sent")
async def test_a_message_is_in_the_inbox_and_comes_as_an_event(
    bench: Bench, ann: Caller, bob: Caller
) -> None:
    sent = await send(bench, ann, bob, "hello")
    assert sent == {
        "message_id": sent["message_id"],
        "to_agent_id": bob.agent,
        "sent_at": pytest.approx(bench.clock.now_ms(), abs=1000),
        "hops": 0,
    }
    (message,) = await inbox(bench, bob)
    assert message == {
        "message_id": sent["message_id"],
        "from_agent_id": ann.agent,
        "from_name": "Ann",
        "to_agent_id": bob.agent,
        "body": "hello",
        "in_reply_to": None,
        "sent_at": sent["sent_at"],
        "hops": 0,
        "read": False,
    }
    assert await told(bench, bob, "message") == [message]
    assert await inbox(bench, ann) == []  # who sent it has no copy there
    assert await told(bench, ann, "message") == []


@pytest.mark.requirement("message.body")
@pytest.mark.parametrize(
    "body",
    [
        "\x00",
        "a\r\n\nevent: x\n",
        "\u0085\u2028\u2029",
        "\ufeff",
        "e\u0301",
        "👩‍👩‍👧",
        " ",
        '{"a":1}',
        "\x7f\x1b[",
    ],
)
async def test_a_body_is_kept_as_it_is(bench: Bench, ann: Caller, bob: Caller, body: str) -> None:
    assert code(await send(bench, ann, bob, body)) == "accepted"
    assert [each["body"] for each in await inbox(bench, bob)] == [body]
    assert [each["body"] for each in await told(bench, bob, "message")] == [body]


@pytest.mark.requirement("message.body")
async def test_a_body_has_at_most_sixteen_kib(bench: Bench, ann: Caller, bob: Caller) -> None:
    assert code(await send(bench, ann, bob, "é" * 8192)) == "accepted"
    refused = await send(bench, ann, bob, "é" * 8192 + "x")
    assert (refused.code, refused.detail) == ("too_large", {"path": "body", "limit": 16_384, "size": 16_385})
    assert code(await send(bench, ann, bob, "")) == "bad_request"
    for text in (b'"\\ud800"', b'"\xff"', b"1", b"null"):
        params = b'{"recipient_agent_id":"%s","body":%s}' % (str(bob.agent).encode(), text)
        assert code(await bench.broker.call(ann, "send_direct_message", params)) == "bad_request"
    assert len(await inbox(bench, bob)) == 1


@pytest.mark.requirement("message.reply")
async def test_a_reply_names_a_message_that_the_two_share(bench: Bench, ann: Caller, bob: Caller) -> None:
    cay = await make_agent(bench, "Cay")
    await agree(bench, ann, cay)
    first = (await send(bench, ann, bob))["message_id"]
    other = (await send(bench, ann, cay))["message_id"]
    missing = await send(bench, bob, ann, in_reply_to="msg_00000000000000000000000000")
    assert missing.code == "not_found"
    assert await send(bench, bob, ann, in_reply_to=other) == missing  # ann has it, bob has not
    assert await send(bench, ann, bob, in_reply_to=other) == missing
    assert (await send(bench, bob, ann, in_reply_to=first))["hops"] == 1
    assert (await inbox(bench, ann))[0]["in_reply_to"] == first
    assert code(await send(bench, ann, bob, in_reply_to=first)) == "accepted"  # one's own is shared too


@pytest.mark.requirement("message.agreed")
async def test_without_an_agreement_nobody_can_be_told_from_nobody(bench: Bench, ann: Caller) -> None:
    eve = await make_agent(bench, "Eve")
    fay = await make_agent(bench, "Fay")
    await agree(bench, ann, fay, scopes=["task"])
    missing = await bench.call(
        "send_direct_message", ann, recipient_agent_id="ag_01KVY19F5JERCW57K0QBWQ1Y7N", body="x"
    )
    assert missing.code == "agreement_required"
    for other in (eve, fay, ann):
        assert await send(bench, ann, other) == missing
        assert await send(bench, other, ann) == missing


@pytest.mark.requirement("agreement.revoked", "message.agreed")
async def test_a_message_on_its_way_is_stopped_by_a_revocation_before_it(
    bench: Bench, ann: Caller, bob: Caller
) -> None:
    (held,) = (await bench.call("list_agreements", ann))["agreements"]
    for _ in range(10):
        order: list[tuple[str, str]] = []

        async def act(what: str, name: str, caller: Caller, params: Any, order: Any = order) -> None:
            order.append((what, code(await bench.call(name, caller, **params))))

        before = len(await inbox(bench, bob, limit=100))
        async with trio.open_nursery() as nursery:
            for n in range(6):
                text = {"recipient_agent_id": bob.agent, "body": "x"}
                nursery.start_soon(act, "send", "send_direct_message", ann, text)
                if n == 2:
                    revoke = {"agreement_id": held["agreement_id"]}
                    nursery.start_soon(act, "revoke", "revoke_agreement", bob, revoke)
        after = order[[what for what, _ in order].index("revoke") :]
        assert all(outcome == "agreement_required" for what, outcome in after if what == "send")
        accepted = sum(outcome == "accepted" for what, outcome in order if what == "send")
        assert len(await inbox(bench, bob, limit=100)) == before + accepted
        agreement = await agree(bench, ann, bob)
        held = {"agreement_id": agreement}


@pytest.mark.requirement("message.inbox")
async def test_the_inbox_is_newest_first_and_counts_what_is_unread(
    bench: Bench, ann: Caller, bob: Caller
) -> None:
    cay = await make_agent(bench, "Cay")
    await agree(bench, cay, bob)
    ids = [(await send(bench, each, bob))["message_id"] for each in (ann, cay, ann, cay)]
    page = await bench.call("get_inbox", bob)
    assert [each["message_id"] for each in page["messages"]] == ids[::-1]
    assert page["unread"] == 4
    assert "next" not in page
    assert (await bench.call("get_inbox", bob))["unread"] == 4  # reading marks nothing
    await bench.call("mark_messages_read", bob, message_ids=[ids[0], ids[3]])
    page = await bench.call("get_inbox", bob)
    assert [each["read"] for each in page["messages"]] == [True, False, False, True]
    assert page["unread"] == 2
    unread = await bench.call("get_inbox", bob, unread_only=True)
    assert [each["message_id"] for each in unread["messages"]] == [ids[2], ids[1]]


@pytest.mark.requirement("message.read")
async def test_only_ones_own_messages_are_marked(bench: Bench, ann: Caller, bob: Caller) -> None:
    cay = await make_agent(bench, "Cay")
    await agree(bench, ann, cay)
    own = (await send(bench, ann, bob))["message_id"]
    foreign = (await send(bench, ann, cay))["message_id"]
    missing = "msg_00000000000000000000000000"
    for caller in (ann, bob):  # who sent it, and a stranger
        refused = await bench.call("mark_messages_read", caller, message_ids=[foreign])
        assert refused.code == "not_found"
        assert refused == await bench.call("mark_messages_read", caller, message_ids=[missing])
    marked = await bench.call("mark_messages_read", bob, message_ids=[foreign, own, missing, own])
    assert marked == {"marked": [own], "missing": [foreign, missing]}
    assert await bench.call("mark_messages_read", bob, message_ids=[own]) == {"marked": [own], "missing": []}
    assert (await inbox(bench, cay))[0]["read"] is False
    assert (await bench.call("get_inbox", bob))["unread"] == 0


@pytest.mark.requirement("message.read")
async def test_two_hundred_are_marked_at_once_and_no_more(ann: Caller, bob: Caller, bench: Bench) -> None:
    ids = [(await send(bench, ann, bob, str(n)))["message_id"] for n in range(200)]
    assert len((await bench.call("mark_messages_read", bob, message_ids=ids))["marked"]) == 200
    assert (await bench.call("get_inbox", bob))["unread"] == 0
    assert code(await bench.call("mark_messages_read", bob, message_ids=[*ids, "x"])) == "bad_request"
    assert code(await bench.call("mark_messages_read", bob, message_ids=[])) == "bad_request"


@pytest.mark.requirement("message.paged")
async def test_each_message_comes_once_while_others_arrive(bench: Bench, ann: Caller, bob: Caller) -> None:
    there = [(await send(bench, ann, bob, f"old {n}"))["message_id"] for n in range(150)]
    for unread_only in (False, True):
        seen: list[str] = []
        after: dict[str, Any] = {}
        while True:
            page = await bench.call("get_inbox", bob, limit=25, unread_only=unread_only, **after)
            seen += [each["message_id"] for each in page["messages"]]
            for n in range(50):
                await send(bench, ann, bob, f"new {n}")
            if unread_only:  # what was read leaves the list that is being paged
                await bench.call("mark_messages_read", bob, message_ids=seen[-25:])
            if "next" not in page:
                break
            after = {"after": page["next"]}
        assert [each for each in seen if each in there] == there[::-1]
        assert len(set(seen)) == len(seen)


@pytest.mark.requirement("message.paged")
async def test_a_page_of_long_messages_is_bounded_in_bytes(bench: Bench, ann: Caller, bob: Caller) -> None:
    ids = [(await send(bench, ann, bob, "x" * 16_000))["message_id"] for _ in range(20)]
    page = await bench.call("get_inbox", bob, limit=100)
    assert 10 < len(page["messages"]) < 20
    rest = await bench.call("get_inbox", bob, limit=100, after=page["next"])
    assert [each["message_id"] for each in page["messages"] + rest["messages"]] == ids[::-1]


async def test_a_cursor_of_another_list_is_refused(bench: Bench, ann: Caller, bob: Caller) -> None:
    for n in range(3):
        await send(bench, ann, bob, str(n))
    after = (await bench.call("get_inbox", bob, limit=1))["next"]
    assert code(await bench.call("get_inbox", bob, after=after)) == "accepted"
    for bad in (after.replace("inbox", "unread"), "x", "inbox-", "inbox-1e1", "inbox-" + "9" * 30):
        assert code(await bench.call("get_inbox", bob, after=bad)) == "bad_request"
    assert code(await bench.call("get_inbox", bob, after=after, unread_only=True)) == "bad_request"


@pytest.mark.requirement("message.kept")
async def test_what_is_too_much_goes_the_read_ones_first() -> None:
    async with open_bench(tuned(network={"messages_kept": 3})) as bench:
        ann, bob, cay = [await make_agent(bench, name) for name in ("Ann", "Bob", "Cay")]
        await agree(bench, ann, bob)
        await agree(bench, cay, bob)
        other = (await send(bench, cay, bob))["message_id"]
        ids = [(await send(bench, ann, bob, str(n)))["message_id"] for n in range(3)]
        await bench.call("mark_messages_read", bob, message_ids=[ids[1]])
        ids.append((await send(bench, ann, bob, "3"))["message_id"])
        kept = [each["message_id"] for each in await inbox(bench, bob)]
        assert kept == [ids[3], ids[2], ids[0], other]
        ids.append((await send(bench, ann, bob, "4"))["message_id"])
        page = await bench.call("get_inbox", bob)
        assert [each["message_id"] for each in page["messages"]] == [ids[4], ids[3], ids[2], other]
        assert page["unread"] == 4
        gone = await bench.call("mark_messages_read", bob, message_ids=ids)
        assert gone["missing"] == [ids[0], ids[1]]


@pytest.mark.requirement("message.kept")
async def test_a_lowered_setting_is_followed_in_time() -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
        await agree(bench, ann, bob)
        for n in range(8):
            await send(bench, ann, bob, str(n))
    async with open_bench(tuned(network={"messages_kept": 2}), store=store) as bench:
        for n in range(6):
            await send(bench, ann, bob, str(n))
        assert len(await inbox(bench, bob)) == 2


@pytest.mark.requirement("message.tier")
async def test_an_unclaimed_agent_sends_twenty_a_day(bench: Bench, ann: Caller) -> None:
    young = await make_agent(bench, "Young", tier="unclaimed", expires_at=bench.clock.now_ms() + 7 * DAY_MS)
    await agree(bench, young, ann)
    answers: list[Any] = []

    async def one(n: int) -> None:
        answers.append(await send(bench, young, ann, str(n)))

    assert code(await send(bench, young, ann, "x", in_reply_to="msg_none")) == "not_found"  # spends nothing
    async with trio.open_nursery() as nursery:
        for n in range(25):
            nursery.start_soon(one, n)
    assert sorted({code(each) for each in answers}) == ["accepted", "quota_exceeded"]
    assert sum(code(each) == "accepted" for each in answers) == 20
    assert code(await send(bench, ann, young)) == "accepted"
    bench.clock.step(DAY_MS)
    assert code(await send(bench, young, ann)) == "accepted"


@pytest.mark.requirement("message.once")
async def test_fifty_identical_sends_with_one_key_are_one_message() -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
        await agree(bench, ann, bob)
        params = {"recipient_agent_id": bob.agent, "body": "once", "idempotency_key": "k"}
        answers: list[bytes] = []

        async def one() -> None:
            answer = await bench.broker.call(ann, "send_direct_message", json.dumps(params).encode())
            answers.append(msgspec.json.encode(answer))

        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(one)
        assert len(set(answers)) == 1
        assert len(await inbox(bench, bob)) == 1
    async with open_bench(store=store) as bench:
        answers.clear()
        await one_more(bench, ann, params, answers)
        assert len(await inbox(bench, bob)) == 1
        other = await bench.call("send_direct_message", ann, **{**params, "body": "twice"})
        assert code(other) == "IDEMPOTENCY_MISMATCH"


async def one_more(bench: Bench, caller: Caller, params: Any, answers: list[bytes]) -> None:
    answer = await bench.broker.call(caller, "send_direct_message", json.dumps(params).encode())
    answers.append(msgspec.json.encode(answer))


@pytest.mark.requirement("message.once")
@pytest.mark.parametrize(
    "name",
    ["request_contact", "respond", "cancel", "revoke_agreement", "set_contact_policy", "mark_messages_read"],
)
async def test_each_tool_that_changes_something_takes_a_key(
    bench: Bench, ann: Caller, bob: Caller, name: str
) -> None:
    sent = (await send(bench, ann, bob))["message_id"]
    (held,) = (await bench.call("list_agreements", bob))["agreements"]
    cay = await make_agent(bench, "Cay")
    asked = {"target_agent_id": ann.agent, "purpose": "x"}
    request = (
        "" if name == "request_contact" else (await bench.call("request_contact", cay, **asked))["request_id"]
    )
    tools: dict[str, tuple[str, Caller, dict[str, Any]]] = {
        "request_contact": ("request_contact", cay, asked),
        "respond": ("respond_to_contact_request", ann, {"request_id": request, "accept": True}),
        "cancel": ("cancel_contact_request", cay, {"request_id": request}),
        "revoke_agreement": ("revoke_agreement", bob, {"agreement_id": held["agreement_id"]}),
        "set_contact_policy": ("set_contact_policy", bob, {"policy": "deny"}),
        "mark_messages_read": ("mark_messages_read", bob, {"message_ids": [sent, "msg_x"]}),
    }
    tool, caller, params = tools[name]
    first = await bench.call(tool, caller, **params, idempotency_key="k")
    assert not isinstance(first, Refusal)
    bench.clock.step(5000)
    assert await bench.call(tool, caller, **params, idempotency_key="k") == first


@pytest.mark.requirement("message.sent")
async def test_a_full_disk_takes_no_message(bench: Bench, ann: Caller, bob: Caller) -> None:
    free = bench.store.free_bytes
    bench.store.free_bytes = lambda: 0  # type: ignore[method-assign]
    assert code(await send(bench, ann, bob)) == "unavailable"
    bench.store.free_bytes = free  # type: ignore[method-assign]
    assert code(await send(bench, ann, bob)) == "accepted"


@pytest.mark.requirement("loop.told")
async def test_a_loop_is_refused_with_its_reason_and_both_are_told_once(
    bench: Bench, ann: Caller, bob: Caller
) -> None:
    turns = [(ann, bob), (bob, ann)]
    answers = [await send(bench, *turns[n % 2], str(n)) for n in range(60)]
    passed = [each for each in answers if not isinstance(each, Refusal)]
    assert len(passed) == 49
    assert [each["hops"] for each in passed] == list(range(49))
    refused = next(each for each in answers if isinstance(each, Refusal))
    assert (refused.code, refused.detail) == ("quota_exceeded", {"reason": "loop", "hops": 49, "limit": 50})
    assert all(isinstance(each, Refusal) for each in answers[49:])
    for caller, other in turns:
        (notice,) = [each for each in await told(bench, caller, "notice") if each["what"] == "loop"]
        assert (notice["counterpart"], notice["by"]) == (other.agent, bob.agent)
        assert (notice["reason"], notice["hops"], notice["limit"]) == ("loop", 49, 50)


class Bots:
    """Agents that answer by what comes on their streams, some seconds later."""

    def __init__(self, bench: Bench, delay: float, replying: bool) -> None:
        self.bench = bench
        self.delay = delay
        self.replying = replying
        self.passed = 0
        self.stopped: list[Refusal] = []

    async def run(self, bot: Caller, to: Caller) -> None:
        """Send on to `to` (or back, if that is who wrote) all that the bot gets."""
        reader = await self.bench.broker.follow(bot, after="0")
        assert not isinstance(reader, Refusal)
        async with reader:
            while True:
                for delivery in await reader.receive():
                    if delivery.kind == "message":
                        await self.answer(bot, to, json.loads(delivery.params))

    async def answer(self, bot: Caller, to: Caller, message: Any) -> None:
        await trio.sleep(self.delay)
        reply = {"in_reply_to": message["message_id"]} if self.replying else {}
        answer = await send(self.bench, bot, to, "re: " + message["body"][-20:], **reply)
        if isinstance(answer, Refusal):
            self.stopped.append(answer)
        else:
            self.passed += 1


@pytest.mark.requirement("loop.stopped")
@pytest.mark.parametrize(
    ("count", "delay", "replying"),
    [(2, 0.0, False), (2, 0.0, True), (2, 3.0, False), (2, 60.0, True), (3, 0.0, False), (3, 1.0, False)],
)
async def test_bots_that_answer_each_other_are_stopped(
    autojump_clock: MockClock, count: int, delay: float, replying: bool
) -> None:
    async with open_bench() as bench, trio.open_nursery() as nursery:
        ring = [await make_agent(bench, f"Bot{n}") for n in range(count)]
        for n in range(count if count > 2 else 1):
            await agree(bench, ring[n], ring[(n + 1) % count])
        bots = Bots(bench, delay, replying)
        for n in range(count):
            nursery.start_soon(bots.run, ring[n], ring[(n + 1) % count])
        await trio.testing.wait_all_tasks_blocked()
        assert code(await send(bench, ring[0], ring[1], "begin")) == "accepted"
        await trio.sleep(60 * max(delay, 0.1) + 5)
        assert bots.passed + 1 < 50
        assert [each.detail["reason"] for each in bots.stopped] == ["loop"]
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("loop.relay")
async def test_a_relay_of_different_messages_goes_on(autojump_clock: MockClock) -> None:
    async with open_bench() as bench, trio.open_nursery() as nursery:
        source, one, two, three = [await make_agent(bench, f"Bot{n}") for n in range(4)]
        chain = [source, one, two, three]
        for sender, recipient in pairwise(chain):
            await agree(bench, sender, recipient)
        bots = Bots(bench, 0.0, False)
        nursery.start_soon(bots.run, one, two)
        nursery.start_soon(bots.run, two, three)
        await trio.testing.wait_all_tasks_blocked()
        for n in range(120):
            assert code(await send(bench, source, one, f"news {n}")) == "accepted"
            await trio.sleep(0.01)
        await trio.sleep(5)
        assert bots.stopped == []
        assert len(await inbox(bench, three, limit=100)) == 100
        assert bots.passed == 240
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("loop.stopped")
async def test_what_is_sent_after_a_rest_begins_anew(
    autojump_clock: MockClock, bench: Bench, ann: Caller, bob: Caller
) -> None:
    turns = [(ann, bob), (bob, ann)]
    answers = [await send(bench, *turns[n % 2], str(n)) for n in range(50)]
    assert code(answers[-1]) == "quota_exceeded"
    await trio.sleep(31)
    assert (await send(bench, bob, ann))["hops"] == 0


@pytest.mark.requirement("message.paged")
@given(st.lists(st.tuples(st.sampled_from(["send", "page", "mark"]), st.integers(1, 7)), max_size=40))
def test_whoever_pages_sees_each_old_message_once(steps: list[tuple[str, int]]) -> None:
    trio.run(page_through, steps, clock=MockClock(autojump_threshold=0))


async def page_through(steps: list[tuple[str, int]]) -> None:
    store = MemoryStore()
    settings = Settings()
    async with open_bench(settings, store=store) as bench:
        ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
        await agree(bench, ann, bob)
        old = [(await send(bench, ann, bob, str(n)))["message_id"] for n in range(20)]
        seen: list[str] = []
        after: dict[str, Any] | None = {}
        for step, n in [*steps, *[("page", 7)] * 30]:
            if step == "send":
                for _ in range(n):
                    await send(bench, ann, bob, "new")
            elif step == "mark":
                await bench.call("mark_messages_read", bob, message_ids=old[:n])
            elif after is not None:
                page = await bench.call("get_inbox", bob, limit=n, **after)
                seen += [each["message_id"] for each in page["messages"]]
                after = {"after": page["next"]} if "next" in page else None
        assert [each for each in seen if each in old] == old[::-1]
        assert len(seen) == len(set(seen))
