"""Programs of agents' lives: names, keys, ends and suspensions as a model of a few dictionaries says, over restarts."""

from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from broker.actors.agent import Claim
from broker.clock import VirtualClock
from broker.core.agent import UNCLAIMED_MS
from broker.core.claim import read_code
from broker.core.names import looks_of
from broker.store.memory import MemoryStore
from broker.wire.jwk import thumbprint
from broker.wire.keys import SigningKey
from tests.support.agents import caller_of
from tests.support.broker import START_MS, Bench, Party, code, open_bench
from tests.support.registration import OPERATOR, jwk, request, send

NAMES = ("Ann", "ANN", "Anna", "AnnI", "Annl", "b0b", "bOb")
KEYS = tuple(SigningKey(bytes([n]) * 32) for n in range(1, 4))
WIRE = SigningKey(bytes(32))

WHO, KEY = st.integers(0, 5), st.integers(0, len(KEYS) - 1)
STEPS = st.one_of(
    st.tuples(st.just("self"), st.sampled_from(NAMES), KEY),
    st.tuples(st.just("made"), st.sampled_from(NAMES)),
    st.tuples(st.just("rename"), WHO, st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(["bind", "revoke"]), WHO, KEY),
    st.tuples(st.sampled_from(["delete", "claim", "suspend", "unsuspend"]), WHO),
    st.tuples(st.sampled_from(["week", "restart"])),
)


class Life(msgspec.Struct):
    """An agent as the model has it."""

    agent_id: str
    name: str
    keys: set[int]
    code: str | None = None
    ends_at: int | None = None
    suspended: bool = False
    deleted: bool = False


class World:
    """A broker and the model beside it."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.lives: list[Life] = []
        self.revoked: set[int] = set()

    def living(self) -> list[Life]:
        now = self.bench.clock.now_ms()
        return [
            each for each in self.lives if not each.deleted and (each.ends_at is None or each.ends_at > now)
        ]

    def is_free(self, name: str, but: Life | None = None) -> bool:
        taken = {look for each in self.living() if each is not but for look in looks_of(each.name)}
        return not taken & set(looks_of(name))

    def may_join(self, key: int) -> bool:
        return key not in self.revoked and not any(key in each.keys for each in self.living())

    async def ask(self, tool: str, agent_id: str, **params: Any) -> str:
        return code(await self.bench.call(tool, OPERATOR, agent_id=agent_id, **params))

    async def play(self, step: tuple[Any, ...]) -> None:
        match step:
            case "self", name, key:
                made = await send(self.bench, request(self.bench, name, KEYS[key]), OPERATOR)
                free = self.is_free(name) and self.may_join(key)
                assert code(made) == ("accepted" if free else "already_exists")
                if free:
                    life = Life(made["agent_id"], name, {key}, made["claim_code"], made["expires_at"])
                    self.lives.append(life)
            case "made", name:
                made = await self.bench.call("register_agent", OPERATOR, name=name)
                assert code(made) == ("accepted" if self.is_free(name) else "already_exists")
                if self.is_free(name):
                    self.lives.append(Life(made["agent_id"], name, set()))
            case verb, int(who), *more if who < len(self.lives):
                await self.live(verb, self.lives[who], *more)
            case ("week",):
                self.bench.clock.step(UNCLAIMED_MS)

    async def live(self, verb: str, life: Life, *more: Any) -> None:
        lives = life in self.living()
        expected, got = "accepted", ""
        match verb, *more:
            case "rename", name:
                got = code(
                    await self.bench.call(
                        "update_my_profile", caller_of(self.bench, life.agent_id), name=name
                    )
                )
                free = self.is_free(name, life)
                expected = "already_exists" if not free else expected
                expected = "unauthenticated" if not lives else "suspended" if life.suspended else expected
                life.name = name if expected == "accepted" else life.name
            case "bind", key:
                proof = Party("", KEYS[key]).statement(
                    "bind_key", self.bench.broker.pk, self.bench.ts, agent_id=life.agent_id
                )
                params = {"public_key": jwk(KEYS[key]), "proof": proof}
                expected = (
                    "accepted" if lives and self.may_join(key) else "already_exists" if lives else "not_found"
                )
                got = await self.ask("add_agent_public_key", life.agent_id, **params)
                life.keys |= {key} if expected == "accepted" else set()
            case "revoke", key:
                expected = "accepted" if lives and key in life.keys else "not_found"
                got = await self.ask("revoke_agent_public_key", life.agent_id, kid=thumbprint(KEYS[key].pk))
                if expected == "accepted":
                    life.keys.remove(key)
                    self.revoked.add(key)
            case ("delete",):
                expected = "not_found" if not lives else "bad_request" if life.ends_at is None else "accepted"
                got = await self.ask("delete_unclaimed_agent", life.agent_id)
                life.deleted |= expected == "accepted"
            case ("claim",):
                kept = read_code(life.code or "0" * 20)
                assert kept is not None
                good = lives and life.ends_at is not None and not life.suspended
                expected = "accepted" if good else "not_found"
                house = self.bench.broker._services.house
                got = code(await house.ask("agent", life.agent_id, Claim("ow_1", kept.digest)))
                life.ends_at = None if good else life.ends_at
            case ("suspend" | "unsuspend",):
                expected = "accepted" if lives else "not_found"
                reason = {"reason": "x"} if verb == "suspend" else {}
                got = await self.ask(f"{verb}_agent", life.agent_id, **reason)
                life.suspended = verb == "suspend" if lives else life.suspended
        assert got == expected, (verb, more)

    async def compare(self) -> None:
        """What operators and the wire see is what the model says."""
        listed = (await self.bench.call("list_agents", OPERATOR))["agents"]
        shown = {each["agent_id"]: (each["name"], set(each["kids"]), "suspended" in each) for each in listed}
        living = self.living()
        assert shown == {
            each.agent_id: (each.name, {thumbprint(KEYS[key].pk) for key in each.keys}, each.suspended)
            for each in living
        }
        services = self.bench.broker._services
        for key, signing in enumerate(KEYS):
            holder = [each for each in living if key in each.keys]
            if holder:
                assert services.standing.holder(signing.pk) == holder[0].agent_id
                assert (signing.pk in services.suspended) == holder[0].suspended


async def play(steps: list[tuple[Any, ...]]) -> None:
    store, clock = MemoryStore(), VirtualClock(START_MS)
    rest, world = list(steps), None
    while rest or world is None:
        async with open_bench(store=store, clock=clock, key=WIRE) as bench:
            world = world or World(bench)
            world.bench = bench
            await world.compare()
            while rest and (step := rest.pop(0)) != ("restart",):
                await world.play(step)
            await world.compare()
            if not rest:
                await bench.call("purge_expired_unclaimed", OPERATOR)
                await world.compare()
                wanted = {look for each in world.living() for look in looks_of(each.name)}
                assert {id for kind, id in store._docs if kind == "agentname"} == wanted


@pytest.mark.requirement(
    "identity.looks", "identity.one-agent-a-key", "identity.gone", "identity.suspended-keys"
)
@given(st.lists(STEPS, max_size=30))
def test_agents_live_as_the_model_says(steps: list[tuple[Any, ...]]) -> None:
    trio.run(play, steps, clock=MockClock(autojump_threshold=0))
