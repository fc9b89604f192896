"""The rows of what operators' tools have for an effect: each is played by test_effects.py.

A new tool needs one, which shows from the other end, an agent's, an owner's or a dealer's, what the tool did or lists.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from broker.app import Caller
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.broker import Bench, Party, code
from tests.support.owners import PASSWORD, signin
from tests.support.registration import OPERATOR, jwk

Effect = Callable[[Bench], Awaitable[None]]
EFFECTS: Final[dict[str, Effect]] = {}


def effect(tool: str) -> Callable[[Effect], Effect]:
    """The row of a tool."""

    def register(row: Effect) -> Effect:
        assert tool not in EFFECTS, tool
        EFFECTS[tool] = row
        return row

    return register


async def operator(bench: Bench, tool: str, /, **params: Any) -> Any:
    """An operator's call that is done."""
    answer = await bench.call(tool, OPERATOR, **params)
    assert not isinstance(answer, Refusal), (tool, answer)
    return answer


async def as_agent(bench: Bench, caller: Caller) -> str:
    """What an agent's token is told now."""
    return code(await bench.call("whoami", caller))


async def knows(bench: Bench, caller: Caller, agent_id: str) -> str:
    """Whether an agent sees another."""
    return code(await bench.call("get_agent", caller, agent_id=agent_id))


async def takes(bench: Bench, agent_id: str, credential: str) -> str:
    """Whether a credential gets a token."""
    return code(await signin(bench, "take_credential", agent_id=agent_id, secret=credential))


async def owner(bench: Bench) -> str:
    """An owner, by id."""
    made = await operator(bench, "create_owner", email="ann@x.example", password=PASSWORD)
    return str(made["owner_id"])


def binding(bench: Bench, key: SigningKey, agent_id: str) -> dict[str, Any]:
    proof = Party("", key).statement("bind_key", bench.broker.pk, bench.ts, agent_id=agent_id)
    return {"agent_id": agent_id, "public_key": jwk(key), "proof": proof}
