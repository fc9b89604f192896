"""How often one may ask, and how many agreements one may hold."""

from typing import Any

import pytest
import trio

from broker.app import Caller
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.pairs import agree, answer, ask

DAY_MS = 86_400_000


@pytest.fixture
async def ann(bench: Bench) -> Caller:
    return await make_agent(bench, "Ann")


@pytest.fixture
async def bob(bench: Bench) -> Caller:
    return await make_agent(bench, "Bob")


async def listed(bench: Bench, caller: Caller) -> list[Any]:
    return list((await bench.call("list_agreements", caller))["agreements"])


async def requests(bench: Bench, caller: Caller) -> list[Any]:
    return list((await bench.call("list_contact_requests", caller))["requests"])


@pytest.mark.requirement("agreement.cool-down")
async def test_who_was_declined_waits(bench: Bench, ann: Caller, bob: Caller) -> None:
    await answer(bench, bob, await ask(bench, ann, bob), False)
    first = bench.clock.now_ms()
    refused = await ask(bench, ann, bob)
    assert refused.code == "quota_exceeded"
    assert refused.detail == {"reason": "declined", "until": pytest.approx(first + 7 * DAY_MS, abs=1000)}
    assert (await ask(bench, bob, ann))["status"] == "pending"  # the other way is free
    request = (await requests(bench, ann))[0]
    await bench.call("cancel_contact_request", bob, request_id=request["request_id"])
    for _ in range(2):
        bench.clock.step(7 * DAY_MS)
        await answer(bench, bob, await ask(bench, ann, bob), False)
    refused = await ask(bench, ann, bob)  # three in thirty days
    assert refused.detail["until"] == pytest.approx(first + 30 * DAY_MS, abs=2000)
    bench.clock.step(refused.detail["until"] - bench.clock.now_ms())
    assert (await ask(bench, ann, bob))["status"] == "pending"


@pytest.mark.requirement("agreement.quota")
async def test_twenty_requests_a_day_also_at_once(bench: Bench, ann: Caller) -> None:
    targets = [await make_agent(bench, f"T{n}") for n in range(26)]
    answers: list[Any] = []

    async def one(target: Caller) -> None:
        answers.append(await ask(bench, ann, target))

    async with trio.open_nursery() as nursery:
        for target in targets[:25]:
            nursery.start_soon(one, target)
    assert sum(code(each) == "accepted" for each in answers) == 20
    refused = next(each for each in answers if isinstance(each, Refusal))
    assert (refused.code, refused.detail["reason"], refused.detail["limit"]) == (
        "quota_exceeded",
        "requests",
        20,
    )
    bench.clock.step(refused.detail["until"] - bench.clock.now_ms())
    assert code(await ask(bench, ann, targets[25])) == "accepted"


@pytest.mark.requirement("agreement.quota")
async def test_few_requests_wait_at_once() -> None:
    async with open_bench(tuned(network={"requests_open": 2})) as bench:
        ann, *targets = [await make_agent(bench, f"A{n}") for n in range(4)]
        first = await ask(bench, ann, targets[0])
        await ask(bench, ann, targets[1])
        refused = await ask(bench, ann, targets[2])
        assert (refused.code, refused.detail["reason"]) == ("quota_exceeded", "open_requests")
        await bench.call("cancel_contact_request", ann, request_id=first["request_id"])
        assert code(await ask(bench, ann, targets[2])) == "accepted"


@pytest.mark.requirement("agreement.tier")
async def test_an_unclaimed_agent_holds_one_agreement(bench: Bench, ann: Caller, bob: Caller) -> None:
    young = await make_agent(bench, "Young", tier="unclaimed", expires_at=bench.clock.now_ms() + 7 * DAY_MS)
    held = await agree(bench, young, ann)
    refused = await ask(bench, young, bob)
    assert (refused.code, refused.detail) == (
        "quota_exceeded",
        {"reason": "agreements", "agreement_id": held},
    )
    assert code(await answer(bench, young, await ask(bench, bob, young))) == "quota_exceeded"
    await bench.call("revoke_agreement", young, agreement_id=held)
    assert code(await answer(bench, young, (await requests(bench, young))[0])) == "accepted"


@pytest.mark.requirement("agreement.tier")
async def test_of_two_acceptances_at_once_an_unclaimed_agent_gets_one(bench: Bench) -> None:
    young = await make_agent(bench, "Young", tier="unclaimed", expires_at=bench.clock.now_ms() + 7 * DAY_MS)
    askers = [await make_agent(bench, f"A{n}") for n in range(5)]
    waiting = [await ask(bench, each, young) for each in askers]
    answers: list[Any] = []

    async def accept(request: Any) -> None:
        answers.append(await answer(bench, young, request))

    async with trio.open_nursery() as nursery:
        for request in waiting:
            nursery.start_soon(accept, request)
    assert sorted(code(each) for each in answers) == ["accepted", *["quota_exceeded"] * 4]
    assert len(await listed(bench, young)) == 1
