"""kestrel.secrets.*: kept, listed, used by webhooks, shown to nobody."""

import hashlib
import json
import logging
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.app import Caller
from broker.store.memory import MemoryStore
from broker.store.port import Store
from broker.tools import auditing
from broker.tools.registry import collect
from broker.tools.sealing import hidden
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench
from tests.support.webhooks import URL, Receiver, happens, row_of, settled, world

SET, UNSET, LIST = "kestrel.secrets.set", "kestrel.secrets.unset", "kestrel.secrets.list"
OWNER, OTHER = "ow_01ARZ3NDEKTSV4RRFFQ69G5FAV", "ow_01ARZ3NDEKTSV4RRFFQ69G5FAW"
PLANTED = "planted-7f3a9c-value"
HEADERS = {"Authorization": "Bearer ${HOOK_TOKEN}", "X-Team": "fx"}


async def names(bench: Bench, caller: Caller) -> list[str]:
    return [each["name"] for each in (await bench.call(LIST, caller))["secrets"]]


@pytest.mark.requirement("trial.secret-kept")
async def test_a_secret_is_set_listed_replaced_and_unset(store: Store) -> None:
    async with open_bench(store=store) as bench:
        ann, now = await make_agent(bench, "Ann"), bench.clock.now_ms()
        assert await bench.call(LIST, ann) == {"secrets": []}
        made = await bench.call(SET, ann, name="B", value="one")
        assert made == {
            "name": "B",
            "created_at": pytest.approx(now, abs=1000),
            "updated_at": made["created_at"],
        }
        again = await bench.call(SET, ann, name="B", value="two")
        assert again["created_at"] == made["created_at"]
        await bench.call(SET, ann, name="A_1", value="x")
        listed = (await bench.call(LIST, ann))["secrets"]
        assert [set(each) for each in listed] == [{"name", "created_at", "updated_at", "readable"}] * 2
        assert [(each["name"], each["readable"]) for each in listed] == [("A_1", True), ("B", True)]
        assert await bench.call(UNSET, ann, name="B") == {"name": "B", "unset": True}
        assert code(await bench.call(UNSET, ann, name="B")) == "NOT_FOUND"
        assert await names(bench, ann) == ["A_1"]


@pytest.mark.requirement("trial.secret-names")
@pytest.mark.parametrize("name", ["", "a", "1A", "_A", "A-B", "A.B", "A" * 65, "A\n", "Ä", "${A}"])
async def test_what_is_no_name_is_refused(bench: Bench, name: str) -> None:
    ann = await make_agent(bench, "Ann")
    for tool, more in ((SET, {"value": PLANTED}), (UNSET, {})):
        refused = await bench.call(tool, ann, name=name, **more)
        assert (code(refused), refused.detail["path"]) == ("bad_request", "name")
    assert code(await bench.call(SET, ann, name="A" * 64, value="x")) == "accepted"


@pytest.mark.requirement("trial.secret-hidden")
@pytest.mark.parametrize(
    "value", [f"{PLANTED}\n", f" {PLANTED}", f"{PLANTED}\u00e4", PLANTED * 300, [PLANTED], {PLANTED: 1}]
)
async def test_the_refusal_of_a_value_does_not_show_it(bench: Bench, value: Any) -> None:
    refused = await bench.call(SET, await make_agent(bench, "Ann"), name="A", value=value)
    assert (code(refused), refused.detail["path"]) == ("bad_request", "value")
    assert PLANTED not in json.dumps(refused.body())


@pytest.mark.requirement("trial.secret-owner")
async def test_agents_of_one_owner_share_them_and_others_have_their_own(bench: Bench) -> None:
    ann, bob, eve = [
        msgspec.structs.replace(await make_agent(bench, name, owner_id=owner_id), owner=None)
        for name, owner_id in (("Ann", OWNER), ("Bob", OWNER), ("Eve", OTHER))
    ]  # without one: the owner's standing is not what is looked at
    lone = await make_agent(bench, "Lone")
    await bench.call(SET, ann, name="OURS", value="x")
    await bench.call(SET, lone, name="MINE", value="x")
    assert [await names(bench, each) for each in (ann, bob, eve, lone)] == [["OURS"], ["OURS"], [], ["MINE"]]
    for stranger in (eve, lone):
        assert code(await bench.call(UNSET, stranger, name="OURS")) == "NOT_FOUND"


@pytest.mark.requirement("trial.secret-kept")
async def test_there_are_so_many_and_who_is_claimed_by_nobody_has_none(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    for number in range(64):
        assert code(await bench.call(SET, ann, name=f"N{number}", value="x")) == "accepted"
    refused = await bench.call(SET, ann, name="ONE_MORE", value="x")
    assert (code(refused), refused.detail) == ("quota_exceeded", {"reason": "secrets", "limit": 64})
    ends = bench.clock.now_ms() + 1_000_000
    young = await make_agent(bench, "Young", tier="unclaimed", expires_at=ends)
    for tool, params in ((SET, {"name": "A", "value": "x"}), (UNSET, {"name": "A"}), (LIST, {})):
        refused = await bench.call(tool, young, **params)
        assert (code(refused), refused.detail) == ("quota_exceeded", {"reason": "secrets", "limit": 0})


@pytest.mark.requirement("trial.secret-kept")
async def test_with_its_agent_its_own_secrets_go(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann", test=True)
    assert ann.agent is not None
    await bench.call(SET, ann, name="A", value="x")
    gone = await bench.call("delete_test_agent", Caller(operator=True), agent_id=ann.agent)
    assert code(gone) == "accepted"
    assert await bench.store.get("safe", ann.agent) is None


@pytest.mark.requirement("trial.secret-hidden")
async def test_no_value_is_in_an_answer_a_digest_a_note_or_the_log(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ann = await make_agent(bench, "Ann")
    params = {"name": "A", "value": PLANTED, "idempotency_key": "k"}
    made = await bench.call(SET, ann, **params)
    assert await bench.call(SET, ann, **params) == made
    assert code(await bench.call(SET, ann, **{**params, "value": "other"})) == "IDEMPOTENCY_MISMATCH"
    await bench.call(
        "set_webhook", ann, url=URL, headers={"X-A": "${A}", "X-B": PLANTED}, idempotency_key="k"
    )
    await auditing.drain(bench.broker._services)
    audit = await bench.call("list_audit_events", Caller(operator=True))
    assert [each["kind"] for each in audit["events"]][:2] == ["set_webhook", SET]
    kept = repr({key: each for key, each in bench.store._docs.items() if key[0] != "push"})  # type: ignore[attr-defined]
    kept += repr(bench.store._remembered)  # type: ignore[attr-defined]
    shown = json.dumps([made, audit, await bench.call(LIST, ann), await bench.call("get_webhook", ann)])
    shown += json.dumps(await bench.call("list_webhooks", Caller(operator=True), disabled=False))
    for text in (kept, shown, caplog.text):
        assert PLANTED not in text
        assert PLANTED.encode().hex() not in text


@pytest.mark.requirement("trial.secret-hidden")
async def test_a_digest_in_the_store_fits_no_guess(bench: Bench) -> None:
    """Who reads the store and guesses a value can't see that he is right: the digest needs the wire's key."""
    ann = await make_agent(bench, "Ann")
    await bench.call(SET, ann, name="A", value="1234", idempotency_key="k")
    (remembered,) = [
        each
        for key, each in bench.store._remembered.items()
        if SET in key[0]  # type: ignore[attr-defined]
    ]
    guess = hashlib.sha256(b'{"name":"A","value":"1234"}').digest()
    assert remembered.digest != guess
    assert remembered.digest == hidden(bench.broker._services, guess)
    assert collect()[SET].hides
    assert collect()["set_webhook"].hides
    assert not collect()[UNSET].hides


@pytest.mark.requirement("trial.secret-used", "webhook.headers")
async def test_a_webhook_is_sent_the_value_as_it_is_then(autojump_clock: MockClock) -> None:
    receiver = Receiver()
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann")
        await bench.call(SET, ann, name="HOOK_TOKEN", value="one")
        await bench.call("set_webhook", ann, url=URL, headers=HEADERS)
        await happens(bench, ann, 1)
        await settled(bench)
        await trio.sleep(1)
        await bench.call(SET, ann, name="HOOK_TOKEN", value=PLANTED)
        await happens(bench, ann, 2)
        await settled(bench)
        listed = {each["name"]: each for each in (await bench.call(LIST, ann))["secrets"]}["HOOK_TOKEN"]
        assert listed["created_at"] < listed["updated_at"] <= bench.clock.now_ms()
        sent = [(post.headers["authorization"], post.headers["x-team"]) for post in receiver.posts]
        assert sent == [("Bearer one", "fx"), (f"Bearer {PLANTED}", "fx")]
        hook = (await bench.call("get_webhook", ann))["webhook"]
        assert hook["headers"] == ["authorization", "x-team"]
        assert PLANTED not in json.dumps(hook)
        assert PLANTED not in repr(await row_of(bench, ann))
        await bench.call("set_webhook", ann, url=URL)
        await happens(bench, ann, 3)
        await settled(bench)
        assert "authorization" not in receiver.posts[-1].headers


@pytest.mark.requirement("trial.secret-used", "webhook.headers")
async def test_without_the_secret_nothing_is_sent_and_the_webhook_says_which(
    autojump_clock: MockClock,
) -> None:
    receiver = Receiver()
    async with world(receiver) as bench:
        ann = await make_agent(bench, "Ann")
        await bench.call("set_webhook", ann, url=URL, headers=HEADERS)
        pinged = await bench.call("test_webhook", ann)
        assert pinged == {"taken": False, "error": "secret_unset", "secret": "HOOK_TOKEN"}
        await happens(bench, ann, 1)
        await bench.call("redeliver_webhook_events", ann)
        await trio.sleep(1)
        await wait_all_tasks_blocked()
        hook = (await bench.call("get_webhook", ann))["webhook"]
        assert (hook["last_error"], hook["last_secret"], "last_status" in hook) == (
            "secret_unset",
            "HOOK_TOKEN",
            False,
        )
        assert receiver.posts == []
        await bench.call(SET, ann, name="HOOK_TOKEN", value=PLANTED)
        await receiver.wait(1)
        await settled(bench)
        hook = (await bench.call("get_webhook", ann))["webhook"]
        assert (hook["state"], hook.get("last_secret"), hook["delivered"]) == ("active", None, 1)
        assert receiver.numbers == [1]


@pytest.mark.requirement("trial.secret-key-lost")
async def test_after_the_key_is_lost_names_are_listed_and_using_one_says_so(
    autojump_clock: MockClock,
) -> None:
    receiver, store = Receiver(), MemoryStore()
    async with world(receiver, store) as bench:
        ann = await make_agent(bench, "Ann")
        await bench.call(SET, ann, name="HOOK_TOKEN", value=PLANTED)
        await bench.call("set_webhook", ann, url=URL, headers=HEADERS)
    async with world(receiver, store) as bench:  # without safe_keys each broker has others
        (listed,) = (await bench.call(LIST, ann))["secrets"]
        assert (listed["name"], listed["readable"]) == ("HOOK_TOKEN", False)
        pinged = await bench.call("test_webhook", ann)
        assert pinged == {"taken": False, "error": "secret_unreadable", "secret": "HOOK_TOKEN"}
        assert receiver.posts == []
        await bench.call(SET, ann, name="HOOK_TOKEN", value=PLANTED)
        assert [each["readable"] for each in (await bench.call(LIST, ann))["secrets"]] == [True]


async def test_the_tools_are_of_the_face_of_trials() -> None:
    for name in (SET, UNSET, LIST):
        tool = collect()[name]
        assert (tool.face, tool.scope, tool.read_only, tool.audited) == (
            "trial",
            "trial",
            name == LIST,
            name != LIST,
        )
    assert not [name for name in collect() if name.startswith("kestrel.secrets.") and "get" in name]
