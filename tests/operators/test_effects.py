"""Every operators' tool has an effect, and an agent, an owner or a dealer sees it (network.md, Operator tools).

A new tool needs a row: without one the suite fails. What lists shows what others did is seen from the other end: what
an agent, an owner or a dealer did stands there.
"""

from typing import Any, Final

import msgspec
import pytest

from broker.app import AREAS, Caller
from broker.tools.registry import collect
from broker.wire.refusals import refuse
from gateways.operator.server import operator_app
from gateways.operator.token import OperatorToken
from tests.gateways.mcp.harness import Door, modern
from tests.operators import effects_agents, effects_network
from tests.operators.effects import EFFECTS
from tests.support.broker import ANYONE, open_bench, tuned
from tests.support.operators import BEARER, TOKEN
from tests.support.owners import CHEAP

assert AREAS
ROWS: Final = (effects_agents, effects_network)
"""Where the rows are: a module is imported, and registers its own."""


@pytest.mark.requirement("moderation.every-tool")
def test_every_tool_of_the_operators_has_a_row_and_every_row_a_tool() -> None:
    assert sorted(set(collect("operator")) ^ set(EFFECTS)) == []


OVER_THE_PORT: Final = (
    "suspend_agent",
    "create_owner",
    "resolve_report",
    "bind_irc_account",
    "transfer_channel",
    "end_call",
)
"""Tools whose row is played over the operators' port too; their names are the same there."""


@pytest.mark.requirement("moderation.every-tool")
@pytest.mark.parametrize("tool", OVER_THE_PORT)
async def test_what_an_operator_does_over_the_port_is_seen_too(tool: str) -> None:
    async with open_bench(tuned(owners=msgspec.structs.asdict(CHEAP))) as bench:
        door = Door(operator_app(bench.broker, OperatorToken(TOKEN)), bench.broker)  # type: ignore[arg-type]
        call = bench.call

        async def over(name: str, /, caller: Caller = ANYONE, **params: Any) -> Any:
            if not caller.operator:
                return await call(name, caller, **params)
            body, headers = modern("tools/call", name=name, arguments=params)
            result = (await door.ask(body=body, **headers, **BEARER, host="127.0.0.1:8768")).result
            told = result["structuredContent"]
            return refuse(told["refusal"]["code"], "over the port") if result["isError"] else told

        bench.call = over  # type: ignore[method-assign]  # so that operators come in by their door
        await EFFECTS[tool](bench)


@pytest.mark.requirement("moderation.every-tool")
@pytest.mark.parametrize("tool", sorted(EFFECTS))
async def test_what_an_operator_does_is_seen_from_the_other_side(tool: str) -> None:
    seen: list[str] = []
    async with open_bench(tuned(owners=msgspec.structs.asdict(CHEAP))) as bench:
        call = bench.call

        async def noting(name: str, /, caller: Caller = ANYONE, **params: Any) -> Any:
            seen.append(name if caller.operator else "")
            return await call(name, caller, **params)

        bench.call = noting  # type: ignore[method-assign]  # so that a row that forgets its tool is found
        await EFFECTS[tool](bench)
    assert tool in seen
