"""Whose an id is: clients and agents as the verbs of the sign-in look them up."""

from broker.core.client import ClientRow
from broker.tools.clients import agent_of, client_of, random_text
from broker.tools.context import Context
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import ANYONE, Bench
from tests.support.signin import new_owner, register


async def test_a_client_is_the_one_that_registered_or_that_its_document_describes(bench: Bench) -> None:
    context = Context(ANYONE, bench.broker._services)
    made = await register(bench)
    found = await client_of(context, made["client_id"])
    assert isinstance(found, ClientRow)
    assert found.client_id == made["client_id"]
    url = "https://app.example/client"
    document = {"client_id": url, "client_name": "App", "redirect_uris": ["https://app.example/back"]}
    assert isinstance(await client_of(context, url, document), ClientRow)
    for name, shown in ((url, None), ("https://app.example/", document), ("x", None), ("cl_x", None)):
        assert isinstance(await client_of(context, name, shown), Refusal)


async def test_an_agent_whose_time_has_passed_is_none(bench: Bench) -> None:
    context = Context(ANYONE, bench.broker._services)
    owner = await new_owner(bench)
    caller = await make_agent(bench, "short", owner_id=owner, expires_at=bench.clock.now_ms() + 60_000)
    assert caller.agent is not None
    assert await agent_of(context, caller.agent) is not None
    assert await agent_of(context, caller.agent, owner) is not None
    assert await agent_of(context, caller.agent, await new_owner(bench)) is None
    bench.clock.step(60_000)
    assert await agent_of(context, caller.agent) is None
    assert await agent_of(context, "ag_01ARZ3NDEKTSV4RRFFQ69G5FAV") is None


async def test_chance_comes_from_the_services(bench: Bench) -> None:
    context = Context(ANYONE, bench.broker._services)
    assert len(random_text(context)) == 43
    assert random_text(context, 16) != random_text(context, 16)
