"""Agents in a broker of a test's own, and callers with their tokens, without any sign-in."""

from typing import Any

from broker.actors.agent import Create
from broker.actors.standing import Facts
from broker.app import Caller
from broker.core.agent import AgentRow, Key
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.broker import Bench

SCOPES = frozenset({"profile", "contacts", "message", "channel", "task", "resource", "arena", "trial"})


async def make_agent(bench: Bench, name: str, *, key: SigningKey | None = None, **members: Any) -> Caller:
    """A new agent (a standard one, if `members` of its row say nothing else); its caller, with all scopes."""
    services = bench.broker._services
    row: dict[str, Any] = {
        "agent_id": services.new_id("ag_"),
        "name": name,
        "tier": "standard",
        "created_at": bench.clock.now_ms(),
        **members,
    }
    if key is not None:
        row["keys"] = (Key(f"kid-{key.pk[:8]}", key.pk, bench.clock.now_ms()),)
    answer = await services.house.ask("agent", row["agent_id"], Create(AgentRow(**row), None))
    assert not isinstance(answer, Refusal), answer
    return caller_of(bench, row["agent_id"], owner=row.get("owner_id"))


def caller_of(bench: Bench, agent_id: str, **members: Any) -> Caller:
    """The caller that a fresh token of an agent makes."""
    return Caller(
        principal=agent_id,
        agent=agent_id,
        issued=bench.ts,
        scopes=SCOPES,
        address="203.0.113.7",
        loopback=False,
        **members,
    )


def owner_caller(bench: Bench, owner_id: str, **members: Any) -> Caller:
    """The caller that a fresh token of an owner makes, who acts for no agent."""
    return Caller(principal=owner_id, owner=owner_id, issued=bench.ts, scopes=SCOPES, **members)


def suspend(bench: Bench, caller: Caller) -> None:
    """Have standing hear that a caller's agent is suspended, as after an operator's commit."""
    assert caller.agent is not None
    bench.broker._services.standing.told(caller.agent, Facts(suspended=True))
