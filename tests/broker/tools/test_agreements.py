"""Contact requests and agreements over the tools: policies, quotas, ends, and what each side is told."""

from typing import Any

import msgspec
import pytest
import trio

from broker.actors.agent import Assign, Suspend
from broker.actors.pair import Respond
from broker.app import Caller
from broker.core.agreement import Agreement, pair_key
from broker.core.owner import OwnerRow
from broker.store.memory import MemoryStore
from broker.store.port import Put, Unit
from broker.wire.refusals import Refusal
from tests.support.agents import caller_of, make_agent
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.pairs import agree, answer, ask, send, told, whats

DAY_MS = 86_400_000
OWNER = "ow_01KVY19F5HT4FZME59SZPHP64D"


@pytest.fixture
async def ann(bench: Bench) -> Caller:
    return await make_agent(bench, "Ann")


@pytest.fixture
async def bob(bench: Bench) -> Caller:
    return await make_agent(bench, "Bob")


@pytest.fixture
async def owner(bench: Bench) -> str:
    row = OwnerRow(OWNER, "o@example.com", "", 0)
    await bench.store.commit(Unit(puts=(Put("owner", OWNER, 0, msgspec.json.encode(row)),)))
    return OWNER


async def listed(bench: Bench, caller: Caller, **params: Any) -> list[Any]:
    answered = await bench.call("list_agreements", caller, **params)
    return list(answered["agreements"])


async def requests(bench: Bench, caller: Caller, **params: Any) -> list[Any]:
    answered = await bench.call("list_contact_requests", caller, **params)
    return list(answered["requests"])


@pytest.mark.requirement("agreement.asked")
async def test_a_request_waits_with_its_target_and_is_seen_by_both(
    bench: Bench, ann: Caller, bob: Caller
) -> None:
    made = await ask(bench, ann, bob, purpose="to trade", scopes=["task", "message"], ttl_days=7)
    assert (made["status"], made["direction"]) == ("pending", "outgoing")
    assert (made["scopes"], made["ttl_days"]) == (["message", "task"], 7)
    assert made["expires_at"] == made["asked_at"] + 30 * DAY_MS
    assert "waits_for" not in made
    (incoming,) = await requests(bench, bob)
    assert incoming == {**made, "direction": "incoming", "waits_for": "agent"}
    assert await requests(bench, ann, direction="outgoing") == [made]
    assert await requests(bench, ann) == []
    assert await told(bench, bob, "contact") == [{"what": "requested", "request": incoming}]


@pytest.mark.requirement("agreement.asked")
async def test_what_is_not_said_is_a_message_and_thirty_days(bench: Bench, ann: Caller, bob: Caller) -> None:
    made = await ask(bench, ann, bob)
    assert (made["scopes"], made["ttl_days"]) == (["message"], 30)


@pytest.mark.requirement("agreement.asked")
@pytest.mark.parametrize(
    "params",
    [
        {"scopes": ["mail"]},
        {"scopes": []},
        {"ttl_days": 0},
        {"ttl_days": 366},
        {"purpose": ""},
        {"purpose": "x" * 1001},
    ],
)
async def test_what_can_not_be_asked_for(bench: Bench, ann: Caller, bob: Caller, params: Any) -> None:
    assert code(await ask(bench, ann, bob, **params)) == "bad_request"
    assert code(await ask(bench, ann, ann)) == "bad_request"


@pytest.mark.requirement("agreement.accepted")
async def test_accepting_makes_one_agreement_of_what_was_asked(
    bench: Bench, ann: Caller, bob: Caller
) -> None:
    request = await ask(bench, ann, bob, scopes=["message", "channel"], ttl_days=10)
    accepted = await answer(bench, bob, request)
    assert accepted["status"] == "accepted"
    (hers,), (his,) = await listed(bench, ann), await listed(bench, bob)
    assert hers["agreement_id"] == his["agreement_id"] == accepted["agreement_id"]
    assert hers["counterpart"] == {"agent_id": bob.agent, "name": "Bob"}
    assert his["counterpart"] == {"agent_id": ann.agent, "name": "Ann"}
    assert (hers["scopes"], hers["direction"], hers["made_by"]) == (["message", "channel"], "both", "agents")
    assert hers["expires_at"] == hers["made_at"] + 10 * DAY_MS
    assert hers["irc_accounts"] == []
    assert await whats(bench, ann, "contact", "agreement") == ["accepted", "made"]
    assert await whats(bench, bob, "contact", "agreement") == ["requested", "made"]
    assert (await told(bench, ann, "agreement"))[0]["agreement"] == hers


@pytest.mark.requirement("agreement.accepted")
async def test_the_answer_may_give_less_but_never_more(bench: Bench, ann: Caller, bob: Caller) -> None:
    request = await ask(bench, ann, bob, scopes=["message", "channel"], ttl_days=10)
    assert code(await answer(bench, bob, request, scopes=["task"])) == "bad_request"
    assert code(await answer(bench, bob, request, ttl_days=11)) == "bad_request"
    await answer(bench, bob, request, scopes=["channel"], ttl_days=2)
    (made,) = await listed(bench, ann)
    assert (made["scopes"], made["expires_at"] - made["made_at"]) == (["channel"], 2 * DAY_MS)
    assert code(await send(bench, ann, bob)) == "agreement_required"


@pytest.mark.requirement("agreement.once")
async def test_a_request_is_answered_once(bench: Bench, ann: Caller, bob: Caller) -> None:
    request = await ask(bench, ann, bob)
    answers: list[Any] = []

    async def accept() -> None:
        answers.append(await answer(bench, bob, request))

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(accept)
    assert sorted(code(each) for each in answers) == ["accepted", *["already_exists"] * 7]
    assert len(await listed(bench, ann)) == 1
    late = await answer(bench, bob, request, accept=False)
    assert late.detail == {"request_status": "accepted"}
    assert (
        code(await bench.call("cancel_contact_request", ann, request_id=request["request_id"]))
        == "already_exists"
    )


@pytest.mark.requirement("agreement.one-open")
async def test_one_request_waits_between_two(bench: Bench, ann: Caller, bob: Caller) -> None:
    request = await ask(bench, ann, bob)
    again = await ask(bench, ann, bob, scopes=["task"])
    assert (again.code, again.detail) == ("already_exists", {"request_id": request["request_id"]})
    back = await ask(bench, bob, ann)
    assert (back.code, back.detail) == ("already_exists", {"request_id": request["request_id"]})
    assert "respond_to_contact_request" in back.message
    answers: list[Any] = []

    async def more(caller: Caller, target: Caller) -> None:
        answers.append(await ask(bench, caller, target))

    cay = await make_agent(bench, "Cay")
    async with trio.open_nursery() as nursery:
        for pair in [(ann, cay), (cay, ann)] * 3:
            nursery.start_soon(more, *pair)
    assert sorted(code(each) for each in answers) == ["accepted", *["already_exists"] * 5]


@pytest.mark.requirement("agreement.one-open")
async def test_what_an_agreement_covers_is_not_asked_for_again(
    bench: Bench, ann: Caller, bob: Caller
) -> None:
    held = await agree(bench, ann, bob, scopes=["message", "task"])
    covered = await ask(bench, bob, ann, scopes=["task"])
    assert (covered.code, covered.detail) == ("already_exists", {"agreement_id": held})
    assert (await ask(bench, bob, ann, scopes=["resource"]))["status"] == "pending"


async def test_an_agreement_is_renewed_when_half_of_its_time_is_over(
    bench: Bench, ann: Caller, bob: Caller
) -> None:
    await agree(bench, ann, bob, ttl_days=30)
    bench.clock.step(14 * DAY_MS)
    assert code(await ask(bench, ann, bob)) == "already_exists"
    bench.clock.step(2 * DAY_MS)
    assert code(await ask(bench, ann, bob)) == "accepted"


@pytest.mark.requirement("agreement.cancelled")
async def test_a_request_is_taken_back(bench: Bench, ann: Caller, bob: Caller) -> None:
    request = await ask(bench, ann, bob)
    taken = await bench.call("cancel_contact_request", ann, request_id=request["request_id"])
    assert taken["status"] == "cancelled"
    assert await whats(bench, bob, "contact") == ["requested", "cancelled"]
    assert code(await answer(bench, bob, request)) == "already_exists"
    assert [each["status"] for each in await requests(bench, bob)] == ["cancelled"]
    assert await requests(bench, bob, status="pending") == []
    assert (await ask(bench, ann, bob))["status"] == "pending"


POLICIES = {
    # policy, has the target an owner: status, whom it waits for, events of the target
    ("agent-decides", False): ("pending", "agent", ["requested"]),
    ("agent-decides", True): ("pending", "agent", ["requested"]),
    ("owner-decides", False): ("pending", "agent", ["requested"]),
    ("owner-decides", True): ("pending", "owner", ["requested"]),
    ("auto-accept", False): ("accepted", None, ["made"]),
    ("auto-accept", True): ("accepted", None, ["made"]),
    ("deny", False): ("declined", None, []),
    ("deny", True): ("declined", None, []),
}


@pytest.mark.requirement("agreement.policies")
@pytest.mark.parametrize(("policy", "owned"), POLICIES)
async def test_policies(bench: Bench, ann: Caller, owner: str, policy: str, owned: bool) -> None:
    dan = await make_agent(bench, "Dan", owner_id=owner if owned else None)
    assert await bench.call("set_contact_policy", dan, policy=policy) == {"policy": policy}
    status, waits, events = POLICIES[policy, owned]
    made = await ask(bench, ann, dan, scopes=["message", "task"], ttl_days=3)
    assert made["status"] == status
    assert [each["what"] for each in await told(bench, dan, "contact", "agreement")] == events
    (incoming,) = await requests(bench, dan)
    assert incoming.get("waits_for") == waits
    effective = "agent-decides" if policy == "owner-decides" and not owned else policy
    assert await bench.call("get_contact_policy", dan) == {"policy": policy, "effective": effective}
    agreements = await listed(bench, ann)
    assert len(agreements) == (status == "accepted")
    if agreements:
        assert agreements[0]["agreement_id"] == made["agreement_id"]
        assert agreements[0]["scopes"] == ["message", "task"]
    waiting = await bench.store.find("contact", "owner-waits", owner)
    assert len(waiting) == (waits == "owner")


@pytest.mark.requirement("agreement.policies")
async def test_the_default_is_that_the_agent_decides(bench: Bench, ann: Caller) -> None:
    assert (await bench.call("get_contact_policy", ann))["policy"] == "agent-decides"
    assert code(await bench.call("set_contact_policy", ann, policy="maybe")) == "bad_request"


@pytest.mark.requirement("agreement.owner-decides")
async def test_what_the_owner_decides_the_owner_alone_answers(bench: Bench, ann: Caller, owner: str) -> None:
    dan = await make_agent(bench, "Dan", owner_id=owner, policy="owner-decides")
    request = await ask(bench, ann, dan)
    for accept in (True, False):
        refused = await answer(bench, dan, request, accept)
        assert (refused.code, refused.detail) == ("not_a_party", {"waits_for": "owner"})
    assert "waits_for" not in request  # who asks does not learn who decides
    assert ann.agent is not None
    assert dan.agent is not None
    command = Respond(request["request_id"], dan.agent, True, "agr_1", by_owner=True)
    done = await bench.broker._services.house.ask("pair", pair_key(ann.agent, dan.agent), command)
    assert done.status == "accepted"
    assert len(await listed(bench, ann)) == 1
    assert await bench.store.find("contact", "owner-waits", owner) == []


@pytest.mark.requirement("agreement.owner-decides")
async def test_of_an_agent_that_came_to_another_owner_the_agent_answers(
    bench: Bench, ann: Caller, owner: str
) -> None:
    dan = await make_agent(bench, "Dan", owner_id=owner, policy="owner-decides")
    request = await ask(bench, ann, dan)
    other = "ow_01KVY19F5HT4FZME59SZPHP64E"
    row = OwnerRow(other, "p@example.com", "", 0)
    await bench.store.commit(Unit(puts=(Put("owner", other, 0, msgspec.json.encode(row)),)))
    await bench.broker._services.house.ask("agent", str(dan.agent), Assign(other))
    bench.clock.step(1000)
    dan = caller_of(bench, str(dan.agent), owner=other)
    assert code(await answer(bench, dan, request)) == "accepted"


@pytest.mark.requirement("agreement.decline-alike")
async def test_a_policy_of_deny_looks_like_a_decline(bench: Bench, ann: Caller, bob: Caller) -> None:
    request = await ask(bench, ann, bob)
    await answer(bench, bob, request, False)
    (declined,) = await requests(bench, ann, direction="outgoing")
    dan = await make_agent(bench, "Dan", policy="deny")
    denied = await ask(bench, ann, dan)
    assert denied.keys() == declined.keys()
    assert denied["status"] == declined["status"] == "declined"
    first, second = await told(bench, ann, "contact")
    assert first == {"what": "declined", "request": declined}
    assert second == {"what": "declined", "request": denied}
    one, other = await ask(bench, ann, bob), await ask(bench, ann, dan)
    assert (one.code, one.message, one.detail.keys()) == (other.code, other.message, other.detail.keys())


@pytest.mark.requirement("agreement.expires")
async def test_a_request_and_an_agreement_are_over_by_themselves(autojump_clock: Any) -> None:
    async with open_bench(tuned(streams={"keep_days": 1000})) as bench:
        ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
        await ask(bench, ann, bob)
        bench.clock.step(30 * DAY_MS - 60_000)
        assert await whats(bench, ann, "contact") == []
        await trio.sleep(120)
        assert await whats(bench, ann, "contact") == ["expired"]
        assert await whats(bench, bob, "contact") == ["requested", "expired"]
        assert [each["status"] for each in await requests(bench, ann, direction="outgoing")] == ["expired"]
        await agree(bench, ann, bob, ttl_days=1)
        bench.clock.step(DAY_MS - 60_000)
        assert code(await send(bench, ann, bob)) == "accepted"
        await trio.sleep(120)
        assert code(await send(bench, ann, bob)) == "agreement_required"
        assert await listed(bench, ann) == []
        (over,) = await listed(bench, bob, include_inactive=True)
        assert over["status"] == "expired"
        assert (
            await whats(bench, ann, "agreement")
            == await whats(bench, bob, "agreement")
            == ["made", "expired"]
        )


@pytest.mark.requirement("agreement.expires")
async def test_at_its_end_an_agreement_allows_nothing_whatever_the_timers_do(
    bench: Bench, ann: Caller, bob: Caller
) -> None:
    await agree(bench, ann, bob, ttl_days=1)
    bench.clock.step(DAY_MS - 1000)
    assert code(await send(bench, ann, bob)) == "accepted"
    bench.clock.step(1000)
    assert await listed(bench, ann) == []
    assert code(await send(bench, ann, bob)) == "agreement_required"


@pytest.mark.requirement("agreement.revoked")
@pytest.mark.parametrize("by", [0, 1])
async def test_either_side_revokes_and_both_are_stopped(
    bench: Bench, ann: Caller, bob: Caller, by: int
) -> None:
    held = await agree(bench, ann, bob)
    caller = (ann, bob)[by]
    revoked = await bench.call("revoke_agreement", caller, agreement_id=held)
    assert (revoked["status"], revoked["ended_by"]) == ("revoked", caller.agent)
    assert await bench.call("revoke_agreement", caller, agreement_id=held) == revoked
    for one, other in ((ann, bob), (bob, ann)):
        assert code(await send(bench, one, other)) == "agreement_required"
        assert await listed(bench, one) == []
        assert await whats(bench, one, "agreement") == ["made", "revoked"]
        assert [each["status"] for each in await listed(bench, one, include_inactive=True)] == ["revoked"]


@pytest.mark.requirement("agreement.silent")
async def test_with_somebody_who_is_not_there_an_agreement_is_silent(
    bench: Bench, ann: Caller, bob: Caller
) -> None:
    await agree(bench, ann, bob)
    cay = await make_agent(bench, "Cay")
    waiting = await ask(bench, cay, ann)
    for agent, suspended in ((bob, True), (cay, True)):
        await suspend(bench, agent, suspended)
    assert await listed(bench, ann) == []
    assert [each["status"] for each in await listed(bench, ann, include_inactive=True)] == ["silent"]
    assert code(await send(bench, ann, bob)) == "agreement_required"
    missing = await bench.call(
        "request_contact", ann, target_agent_id="ag_01KVY19F5JERCW57K0QBWQ1Y7N", purpose="x"
    )
    assert await ask(bench, ann, bob) == missing
    assert await requests(bench, ann, status="pending") == []
    nobody = await bench.call("respond_to_contact_request", ann, request_id="cr_nobody", accept=True)
    assert await answer(bench, ann, waiting) == nobody
    for agent in (bob, cay):
        await suspend(bench, agent, False)
    assert len(await listed(bench, ann)) == 1
    assert code(await send(bench, ann, bob)) == "accepted"
    assert code(await answer(bench, ann, waiting)) == "accepted"


async def suspend(bench: Bench, agent: Caller, on: bool) -> None:
    await bench.broker._services.house.ask("agent", str(agent.agent), Suspend("spam" if on else None))


@pytest.mark.requirement("agreement.foreign")
async def test_a_foreign_id_looks_like_a_missing_one(bench: Bench, ann: Caller, bob: Caller) -> None:
    eve = await make_agent(bench, "Eve")
    held = await agree(bench, ann, bob)
    request = await ask(bench, ann, bob, scopes=["task"])
    for name, foreign, params in (
        ("respond_to_contact_request", {"request_id": request["request_id"]}, {"accept": True}),
        ("cancel_contact_request", {"request_id": request["request_id"]}, {}),
        ("revoke_agreement", {"agreement_id": held}, {}),
    ):
        missing = dict.fromkeys(foreign, "xx_00000000000000000000000000")
        refused = await bench.call(name, eve, **foreign, **params)
        assert refused.code == "not_found"
        assert refused == await bench.call(name, eve, **missing, **params)
    # the two themselves: who asked can't answer, whom it was asked can't take it back
    assert code(await answer(bench, ann, request)) == "not_found"
    assert (
        code(await bench.call("cancel_contact_request", bob, request_id=request["request_id"])) == "not_found"
    )
    assert await requests(bench, eve) == []
    assert await listed(bench, eve, include_inactive=True) == []


@pytest.mark.requirement("agreement.foreign")
async def test_what_a_stranger_tries_costs_no_actor(bench: Bench) -> None:
    eve = await make_agent(bench, "Eve")
    for name, params in (
        ("respond_to_contact_request", {"request_id": "cr_x", "accept": True}),
        ("cancel_contact_request", {"request_id": "cr_x"}),
        ("revoke_agreement", {"agreement_id": "agr_x"}),
        ("request_contact", {"target_agent_id": "ag_01KVY19F5JERCW57K0QBWQ1Y7N", "purpose": "x"}),
        ("send_direct_message", {"recipient_agent_id": "ag_01KVY19F5JERCW57K0QBWQ1Y7N", "body": "x"}),
        ("mark_messages_read", {"message_ids": ["msg_x"]}),
    ):
        assert isinstance(await bench.call(name, eve, **params), Refusal)
    assert bench.broker.statistics().actors["pair"] == 0


@pytest.mark.requirement("agreement.listed")
async def test_lists_are_paged_newest_first(bench: Bench, ann: Caller) -> None:
    others = [await make_agent(bench, f"B{n}") for n in range(5)]
    made = [await ask(bench, each, ann) for each in others]
    ids = [each["request_id"] for each in reversed(made)]
    assert [each["request_id"] for each in await requests(bench, ann, limit=3, offset=1)] == ids[1:4]
    seen: list[str] = []
    after: dict[str, Any] = {}
    while True:
        page = await bench.call("list_contact_requests", ann, limit=2, **after)
        seen += [each["request_id"] for each in page["requests"]]
        if "next" not in page:
            break
        after = {"after": page["next"]}
    assert seen == ids
    for request in made:
        await answer(bench, ann, request)
    first = await bench.call("list_agreements", ann, limit=3)
    rest = await bench.call("list_agreements", ann, limit=3, after=first["next"])
    names = [each["counterpart"]["name"] for each in first["agreements"] + rest["agreements"]]
    assert names == ["B4", "B3", "B2", "B1", "B0"]
    assert code(await bench.call("list_agreements", ann, after=after["after"])) == "bad_request"


@pytest.mark.requirement("agreement.kept")
async def test_what_was_agreed_and_declined_outlives_a_restart() -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        ann, bob, cay = [await make_agent(bench, name) for name in ("Ann", "Bob", "Cay")]
        await agree(bench, ann, bob)
        await answer(bench, cay, await ask(bench, ann, cay), False)
        request = await ask(bench, bob, cay)
    async with open_bench(store=store) as bench:
        assert len(await listed(bench, ann)) == 1
        assert code(await send(bench, ann, bob)) == "accepted"
        assert code(await ask(bench, ann, cay)) == "quota_exceeded"
        assert code(await answer(bench, cay, request)) == "accepted"


async def test_a_gone_agent_is_nobody(bench: Bench, ann: Caller) -> None:
    soon = bench.clock.now_ms() + 1000
    young = await make_agent(bench, "Young", tier="unclaimed", expires_at=soon)
    held = await agree(bench, ann, young)
    bench.clock.step(2000)
    assert await listed(bench, ann) == []
    assert code(await send(bench, ann, young)) == "agreement_required"
    assert (await bench.call("revoke_agreement", ann, agreement_id=held))["status"] == "revoked"


async def test_an_agreement_stands_in_the_store_by_itself(bench: Bench, ann: Caller, bob: Caller) -> None:
    held = await agree(bench, ann, bob)
    document = await bench.store.get("agreement", held)
    assert document is not None
    assert msgspec.json.decode(document.doc, type=Agreement).agreement_id == held
