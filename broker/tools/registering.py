"""An agent registers itself: a name, a key, and the key's word for it (network.md, Sign-in).

A verb for the door POST /agents/register. The statement is its own idempotency key: the identical one again is the same
agent, and its answer.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from broker.actors.agent import Create
from broker.actors.once import joined
from broker.core.agent import UNCLAIMED_MS, AgentRow, Key
from broker.core.claim import ENTROPY, new_code, read_code
from broker.core.names import judge_name
from broker.tools.agents import NameParam, Proof, prove_key
from broker.tools.context import Context
from broker.tools.lookup import disk_full
from broker.tools.proof import Proven, settle
from broker.tools.registry import tool
from broker.tools.sealing import seal
from broker.wire.jwk import Jwk, thumbprint
from broker.wire.refusals import Refusal, refuse


class Registered(msgspec.Struct, frozen=True, omit_defaults=True):
    """A new agent that waits for its owner. Times are Unix milliseconds."""

    agent_id: str
    name: str
    tier: str
    kid: str
    """Its key's name: the RFC 7638 thumbprint."""
    created_at: int
    expires_at: int
    """Without an owner it is gone then."""
    claim_code: str | None = None
    """For its owner to enter; shown here alone. A new one: renew_claim_code."""
    replayed: bool = False


@tool(face="signin", title="Register an agent", secrets=("claim_code",), audited=True)
async def register_agent(
    context: Context,
    name: NameParam,
    public_jwk: Annotated[Jwk, Meta(description="the agent's public key as a JWK")],
    proof: Annotated[Proof, Meta(description="a register_agent statement by that key, with the same name")],
) -> Registered | Refusal:
    """A new agent, unclaimed: it has 7 days to find an owner. bad_request, bad_statement, insufficient_scope,
    already_exists (the name, or the key), rate_limited, unavailable."""
    refused = judge_name(name)
    if refused is not None:
        return refused
    proven = await prove_key(context, public_jwk, proof, "public_jwk", "register_agent", name=name)
    if not isinstance(proven, Proven):
        return proven  # type: ignore[no-any-return]  # a Refusal, or the stored answer
    answer = _may_register(context) or await _register(context, name, proven)
    if isinstance(answer, Refusal) and answer.code != "in_doubt":
        # A refusal may come of the identical statement, sent twice at once: then the stored answer stands.
        answer = await settle(context, proven) or answer
    return answer


async def _register(context: Context, name: str, proven: Proven) -> Any:
    services, caller = context.services, context.caller
    stopped = services.guard.register_agent(caller.address, caller.loopback)
    if stopped is not None:
        return stopped
    row, code = _new_agent(context, name, proven.statement.pk)
    answer = {
        "agent_id": row.agent_id,
        "name": row.name,
        "tier": row.tier,
        "kid": row.keys[0].kid,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "claim_code": seal(services, code),
    }
    made = await services.house.ask(
        "agent", row.agent_id, Create(row, answer, joined(context.once, proven.once))
    )
    if isinstance(made, Refusal) and made.code != "in_doubt":
        services.guard.unregistered(caller.address, caller.loopback)  # a refused one spends nothing
    return made


def _new_agent(context: Context, name: str, pk: str) -> tuple[AgentRow, str]:
    services = context.services
    now, code = services.clock.now_ms(), new_code(services.entropy(ENTROPY))
    row = AgentRow(
        agent_id=services.new_id("ag_"),
        name=name,
        tier="unclaimed",
        created_at=now,
        keys=(Key(thumbprint(pk), pk, now),),
        expires_at=now + UNCLAIMED_MS,
        claim=read_code(code),
    )
    return row, code


def _may_register(context: Context) -> Refusal | None:
    services = context.services
    if services.settings.agents.register == "operator":
        return refuse("insufficient_scope", "this network's agents are registered by its operators")
    return disk_full(services, "no new agent is taken")
