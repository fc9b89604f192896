"""Owners as operators make and see them."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from broker.core.secret import digest
from broker.store.memory import MemoryStore
from broker.tools.owner_accounts import INVITED_MS
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.owners import CHEAP, PASSWORD, signin
from tests.support.registration import OPERATOR

EMAIL = "ann@x.example"


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A broker where nobody signs up by themselves."""
    async with open_bench(tuned(owners=msgspec.structs.asdict(CHEAP) | {"sign_up": "closed"})) as bench:
        yield bench


async def create(bench: Bench, **params: Any) -> Any:
    return await bench.call("create_owner", OPERATOR, **{"email": EMAIL, **params})


async def accept(bench: Bench, made: Any, email: str = EMAIL, password: str = PASSWORD) -> Any:
    return await signin(bench, "sign_up", email=email, password=password, invitation=made["invitation"])


async def sign_in(bench: Bench, password: str = PASSWORD) -> str:
    return code(await signin(bench, "sign_in", email=EMAIL, password=password))


@pytest.mark.requirement("moderation.owners")
async def test_an_owner_made_with_a_password_signs_in_with_it(bench: Bench) -> None:
    made = await create(bench, email=" Ann@X.example", password=PASSWORD)
    assert set(made) == {"owner_id", "email", "created_at"}
    assert (made["email"], await sign_in(bench)) == (EMAIL, "accepted")
    again = await create(bench, password=PASSWORD)
    assert (code(again), again.detail) == ("already_exists", {"path": "email"})
    assert code(await create(bench, invitation=True)) == "already_exists"


@pytest.mark.requirement("moderation.owners", "owners.invitations")
async def test_an_invited_owner_sets_the_password_once_by_the_link(bench: Bench) -> None:
    bench.broker.mcp_url = "https://turret.example/mcp"
    made = await create(bench, invitation=True)
    assert made["link"] == f"https://turret.example/sign-up?invitation={made['invitation']}"
    assert made["expires_at"] - made["created_at"] == INVITED_MS
    assert await sign_in(bench, "") == await sign_in(bench) == "unauthenticated"
    agent = await make_agent(bench, "Ann's")
    assigned = await bench.call(
        "assign_agent_owner", OPERATOR, agent_id=agent.agent, owner_id=made["owner_id"]
    )
    assert assigned["tier"] == "claimed"  # before the owner was there
    assert (await accept(bench, made, "bob@x.example")).detail == {"path": "invitation"}
    assert (await accept(bench, made, password="password1234")).detail == {"path": "password"}
    signed = await accept(bench, made)
    assert signed["owner_id"] == made["owner_id"]
    assert (await signin(bench, "session", session=signed["session"]))["email"] == EMAIL
    owned = await signin(bench, "my_agents", owner_id=made["owner_id"])
    assert [each["name"] for each in owned["agents"]] == ["Ann's"]
    assert code(await accept(bench, made, password="another good horse")) == "not_found"
    assert await sign_in(bench) == "accepted"
    nobody = await signin(bench, "sign_up", email="bob@x.example", password=PASSWORD)
    assert code(nobody) == "not_found"  # nobody else signs up here


@pytest.mark.requirement("moderation.owners", "owners.invitations")
async def test_another_invitation_ends_the_one_before_and_none_outlasts_its_time(bench: Bench) -> None:
    first = await create(bench, invitation=True)
    second = await create(bench, invitation=True)
    assert second["owner_id"] == first["owner_id"]
    assert code(await accept(bench, first)) == "not_found"
    assert await bench.store.get("invitation", digest(first["invitation"])) is None
    bench.clock.step(INVITED_MS)
    assert code(await accept(bench, second)) == "not_found"
    third = await create(bench, invitation=True)
    assert code(await accept(bench, third)) == "accepted"


@pytest.mark.requirement("moderation.owners")
async def test_what_is_no_owner_is_refused_with_its_field(bench: Bench) -> None:
    for params, path in (
        ({"email": "ann"}, "email"),
        ({}, "invitation"),
        ({"password": PASSWORD, "invitation": True}, "password"),
        ({"password": "short"}, "password"),
        ({"password": "ann@x.example"}, "password"),
    ):
        answer = await create(bench, **params)
        assert (code(answer), answer.detail.get("path")) == ("bad_request", path), params
    assert (await bench.call("list_owners", OPERATOR))["owners"] == []


@pytest.mark.requirement("moderation.owners")
async def test_owners_are_listed_with_their_agents_and_without_a_secret(bench: Bench) -> None:
    ann = await create(bench, password=PASSWORD)
    bob = await create(bench, email="bob@x.example", invitation=True)
    for name in ("one", "two"):
        await make_agent(bench, name, owner_id=ann["owner_id"])
    page = await bench.call("list_owners", OPERATOR)
    assert page["owners"] == [
        {
            "owner_id": ann["owner_id"],
            "email": EMAIL,
            "created_at": ann["created_at"],
            "agents": 2,
            "invited": False,
        },
        {
            "owner_id": bob["owner_id"],
            "email": "bob@x.example",
            "created_at": bob["created_at"],
            "agents": 0,
            "invited": True,
        },
    ]
    first = await bench.call("list_owners", OPERATOR, limit=1)
    rest = await bench.call("list_owners", OPERATOR, limit=1, after=first["next"])
    assert [each["email"] for each in rest["owners"]] == ["bob@x.example"]
    for nobody in (await make_agent(bench, "Nosy"),):
        with pytest.raises(LookupError):
            await bench.call("list_owners", nobody)


@pytest.mark.requirement("moderation.owners")
async def test_no_password_and_no_code_stands_in_the_store(bench: Bench) -> None:
    assert isinstance(bench.store, MemoryStore)
    await create(bench, email="bob@x.example", password=PASSWORD)
    made = await create(bench, invitation=True)
    assert not isinstance(made, Refusal)
    kept = b"".join(document.doc for document in bench.store._docs.values())
    assert PASSWORD.encode() not in kept
    assert made["invitation"].encode() not in kept
    assert b"bob@x.example" in kept
