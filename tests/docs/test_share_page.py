"""The programs and commands of docs/how-to/share-a-resource.md, run beside a broker."""

from types import ModuleType
from typing import Any

import pytest

from broker.actors.agent import Create
from broker.core.agent import AgentRow, Key
from broker.wire.jwk import thumbprint
from broker.wire.refusals import Refusal
from gateways.client.agent import open_agent
from gateways.client.registration import Identity, save_identity
from gateways.keyfile import load_key
from tests.docs.pages import blocks, command_lines
from tests.gateways.client.live import Live
from tests.gateways.commands.conftest import Turret, live, turret

PAGE = "share-a-resource.md"
ADDRESS = '"http://127.0.0.1:8766"'
TEXT = "EURUSD,1.0842\nGBPUSD,1.2711\n"
__all__ = ["live", "turret"]


def program(number: int, live: Live) -> Any:
    """A program of the page as a module."""
    text = blocks(PAGE, "python")[number]
    assert text.count(ADDRESS) == 1
    module = ModuleType(f"program{number}")
    exec(compile(text.replace(ADDRESS, repr(live.http)), PAGE, "exec"), module.__dict__)
    return module


async def owned_agent(live: Live, turret: Turret, name: str) -> None:
    """An agent that somebody owns, with its key file and what stands beside it."""
    path = turret.directory / f"{name}.key"
    turret.key(name)
    key, services = load_key(path), live.broker._services
    now, agent_id = services.clock.now_ms(), services.new_id("ag_")
    row = AgentRow(agent_id, name, "claimed", now, keys=(Key(thumbprint(key.pk), key.pk, now),))
    answer = await services.house.ask("agent", agent_id, Create(row, None))
    assert not isinstance(answer, Refusal), answer
    save_identity(path.with_name(f"{path.name}.agent"), Identity(agent_id, name, key.pk, live.wire))


@pytest.mark.requirement("resource.client")
async def test_the_programs_publish_change_ask_and_read(live: Live, turret: Turret) -> None:
    for name in ("ann", "bob"):
        await owned_agent(live, turret, name)
    publisher, reader = program(0, live), program(1, live)
    assert (await publisher.publish("EURUSD,1\n")).version == 1
    assert await reader.look("rates fx") == "nothing to read yet"
    async with open_agent(live.http, "ann.key") as ann:
        async for request in ann.requests():
            assert (request.scopes, request.purpose) == (("resource",), "to read 'FX rates of the day'")
            await ann.respond(request, accept=True)
            break
    assert (await publisher.publish(TEXT)).version == 2
    assert await reader.look("rates fx") == TEXT
    search, mine = command_lines(PAGE)
    found = await turret(*search[1:], "--wire", live.wire)
    assert [each["can_read"] for each in found.json["resources"]] == [True], found.err
    listed = await turret(*mine[1:], "--wire", live.wire)
    assert (listed.json["count"], listed.json["bytes"]) == (1, len(TEXT))
