"""An agent registers itself."""

import json
import unicodedata
from typing import Any

import msgspec
import pytest
import trio

from broker.app import Caller
from broker.core.agent import UNCLAIMED_MS
from broker.store.memory import MemoryStore
from broker.store.port import Document
from broker.wire.jwk import thumbprint
from broker.wire.keys import SigningKey
from tests.support.agents import caller_of
from tests.support.broker import STRANGER, Bench, code, open_bench, tuned
from tests.support.registration import register, request, send

KEY = SigningKey.generate()


@pytest.mark.requirement("identity.register")
async def test_a_name_and_a_key_with_its_word_make_an_agent_that_waits_for_its_owner(bench: Bench) -> None:
    made = await send(bench, request(bench, "Ann's bot", KEY))
    assert made["agent_id"].startswith("ag_")
    assert (made["name"], made["tier"], made["kid"]) == ("Ann's bot", "unclaimed", thumbprint(KEY.pk))
    assert made["expires_at"] == made["created_at"] + UNCLAIMED_MS
    assert len(made["claim_code"]) == 23
    me = caller_of(bench, made["agent_id"], kid=made["kid"])
    assert (await bench.call("whoami", me))["kids"] == [thumbprint(KEY.pk)]


@pytest.mark.requirement("identity.register")
async def test_the_identical_request_again_is_the_same_agent_and_code_also_after_a_restart() -> None:
    store, wire = MemoryStore(), SigningKey.generate()
    async with open_bench(store=store, key=wire) as bench:
        params = request(bench, "bot", KEY)
        made = await send(bench, params)
    async with open_bench(store=store, key=wire) as bench:
        assert await send(bench, params) == {**made, "replayed": True}
        assert code(await send(bench, {**params, "name": "other"})) == "bad_statement"
    async with open_bench(store=store) as bench:  # with another wire's key nobody can open what is sealed
        again = await send(bench, params)
    assert code(again) == "bad_statement"


@pytest.mark.requirement("identity.claim-code")
async def test_the_store_never_holds_a_claim_code_in_clear() -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        made = await register(bench, "bot")
        me = caller_of(bench, made["agent_id"])
        renewed = await bench.call("renew_claim_code", me, idempotency_key="k")
        assert await bench.call("renew_claim_code", me, idempotency_key="k") == renewed
    kept = repr(vars(store))
    assert made["agent_id"] in kept
    for shown in (made["claim_code"], renewed["claim_code"]):
        assert shown not in kept
        assert shown.replace("-", "") not in kept


@pytest.mark.requirement("identity.register")
async def test_the_identical_request_twice_at_once_makes_one_agent(bench: Bench) -> None:
    params = request(bench, "bot", KEY)
    answers: list[Any] = []

    async def one() -> None:
        answers.append(await send(bench, params, Caller()))

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(one)
    assert len({each["agent_id"] for each in answers}) == 1
    assert len({each["claim_code"] for each in answers}) == 1


class Meanwhile(MemoryStore):
    """A store at whose first look at a name the looker waits for something else."""

    def __init__(self) -> None:
        super().__init__()
        self.looked, self.done = trio.Event(), trio.Event()

    async def get(self, kind: str, id: str) -> Document | None:
        if kind == "agentname" and not self.looked.is_set():
            self.looked.set()
            await self.done.wait()
        return await super().get(kind, id)


@pytest.mark.requirement("identity.register")
async def test_whoever_finds_the_name_taken_by_its_own_twin_gets_the_twins_answer() -> None:
    store = Meanwhile()
    async with open_bench(store=store) as bench:
        params, first = request(bench, "bot", KEY), list[Any]()

        async def slow() -> None:
            first.append(await send(bench, params))

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(slow)
                await store.looked.wait()
                twin = await send(bench, params)
                store.done.set()
    assert first == [{**twin, "replayed": True}]


@pytest.mark.requirement("identity.looks")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("jürgen", unicodedata.normalize("NFD", "jürgen")),
        ("agent", "Ａgent"),
        ("coco", "сосо"),
        ("Bot I", "Bot l"),
    ],
)
async def test_a_name_that_looks_like_anothers_is_refused_and_changes_nothing(
    bench: Bench, first: str, second: str
) -> None:
    made = await register(bench, first)
    refused = await send(bench, request(bench, second, KEY))
    assert (code(refused), refused.detail["path"]) == ("already_exists", "name")
    assert (await bench.call("whoami", caller_of(bench, made["agent_id"])))["name"] == first
    assert await bench.store.get("key", KEY.pk) is None  # and the key is as free as before
    assert "agent_id" in await send(bench, request(bench, "another", KEY))


@pytest.mark.requirement("identity.one-agent-a-key")
async def test_a_key_belongs_to_one_agent(bench: Bench) -> None:
    await register(bench, "first", KEY)
    refused = await send(bench, request(bench, "second", KEY))
    assert code(refused) == "already_exists"
    assert "key" in refused.message


@pytest.mark.requirement("identity.register")
async def test_the_proof_must_be_of_that_key_for_that_name_on_this_wire(bench: Bench) -> None:
    other = SigningKey.generate()
    cases = {
        "another key": {"public_jwk": request(bench, "bot", other)["public_jwk"]},
        "another name": {"name": "bott"},
        "another statement": {"proof": {**request(bench, "bot", KEY)["proof"], "sig": "00" * 64}},
    }
    answers = {why: await send(bench, request(bench, "bot", KEY, **change)) for why, change in cases.items()}
    assert {why: code(each) for why, each in answers.items()} == dict.fromkeys(cases, "bad_statement")
    low = await send(
        bench, request(bench, "bot", KEY, public_jwk={"kty": "OKP", "crv": "Ed25519", "x": "A" * 43})
    )
    assert (code(low), low.detail["path"]) == ("bad_request", "public_jwk.x")
    private = {**request(bench, "bot", KEY)["public_jwk"], "d": "A" * 43}
    assert code(await send(bench, request(bench, "bot", KEY, public_jwk=private))) == "bad_request"
    assert code(await send(bench, request(bench, "a  b", KEY))) == "bad_request"


@pytest.mark.requirement("identity.register-limits")
async def test_five_an_hour_register_from_one_address_and_the_refused_spend_nothing(
    bench: Bench, autojump_clock: object
) -> None:
    async def one(name: str, caller: Caller = STRANGER) -> str:
        return code(await send(bench, request(bench, name, SigningKey.generate()), caller))

    assert await one("bot 0") == "accepted"
    assert [await one("bot 0") for _ in range(6)] == ["already_exists"] * 6
    assert [await one(f"bot {n}") for n in range(1, 5)] == ["accepted"] * 4
    assert await one("bot 6") == "rate_limited"
    assert await one("bot 7", Caller(address="203.0.113.10", loopback=False)) == "accepted"
    assert await one("bot 8", Caller()) == "accepted"
    await trio.sleep(3600)
    assert await one("bot 6") == "accepted"


@pytest.mark.requirement("identity.register-limits")
async def test_where_operators_alone_make_agents_nobody_registers() -> None:
    async with open_bench(tuned(agents={"register": "operator"})) as bench:
        refused = await send(bench, request(bench, "bot", KEY))
        assert code(refused) == "insufficient_scope"


async def test_a_full_disk_takes_no_new_agents() -> None:
    store = MemoryStore()
    store.free = 0
    async with open_bench(store=store) as bench:
        assert code(await send(bench, request(bench, "bot", KEY))) == "unavailable"


async def test_no_door_lists_it(bench: Bench) -> None:
    assert "register_agent" not in bench.broker.tools
    assert json.loads(msgspec.json.encode(sorted(bench.broker.operator_tools)))
