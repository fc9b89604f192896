"""Agents and owners: who there is, one agent with its keys, and its suspension."""

import re
from typing import Any, Final

from broker.wire.refusals import Refusal
from gateways.console.site import Console, Shown, Visit, away
from gateways.pages.shell import Moved, Page

TIERS: Final = ("standard", "claimed", "unclaimed")
_ID: Final = re.compile(r"ag_[0-9A-Z]{26}")
DONE: Final = {
    "suspended": "The agent is suspended: it is refused everywhere.",
    "unsuspended": "The agent is no longer suspended.",
}


def register(console: Console) -> None:
    """Add the pages."""
    _add_agents(console)
    _add_owners(console)


def _add_agents(console: Console) -> None:
    async def show(visit: Visit) -> Shown:
        only, after = visit.query.one("only"), visit.query.one("after") or None
        owner, find = visit.query.one("owner") or None, visit.query.one("find").strip()
        if _ID.fullmatch(find):
            return Moved(f"/agents/{find}")
        if find:
            answer = await console.ask(visit.session, "list_agents", name=find[:64])
        elif only == "suspended":
            answer = await console.ask(visit.session, "list_suspended_agents", after=after)
        else:
            tier = only if only in TIERS else None
            answer = await console.ask(visit.session, "list_agents", tier=tier, owner_id=owner, after=after)
        if isinstance(answer, Refusal):
            return away(answer, "/agents")
        values = {
            "agents": [shown(each) for each in answer["agents"]],
            "next": answer.get("next", ""),
            "only": only,
            "find": find,
        }
        return Page("agents.html", {**values, "owner": owner or "", "filters": ("", *TIERS, "suspended")})

    async def show_one(visit: Visit) -> Shown:
        agent_id = visit.query.one("agent_id")
        keys = await console.ask(visit.session, "list_agent_public_keys", agent_id=agent_id)
        if isinstance(keys, Refusal):
            return away(keys, "/agents")
        events = await console.ask(visit.session, "list_audit_events", subject=agent_id, limit=20)
        values = {
            "agent_id": agent_id,
            "agent": await _held(console, visit, agent_id),
            "keys": [{"revoked_at": None, **each} for each in keys["keys"]],
            "events": [] if isinstance(events, Refusal) else events["events"],
            "done": DONE.get(visit.query.one("done"), ""),
            "errors": {},
        }
        return Page("agent.html", values)

    async def change(visit: Visit) -> Shown:
        form = visit.form
        agent_id, key = form.one("agent_id"), form.one("key")
        here = f"/agents/{agent_id}"
        if form.one("do") == "suspend":
            reason = form.one("reason").strip() or "by the operators"
            answer = await console.ask(
                visit.session, "suspend_agent", agent_id=agent_id, reason=reason[:500], idempotency_key=key
            )
            done = "suspended"
        else:
            answer = await console.ask(
                visit.session, "unsuspend_agent", agent_id=agent_id, idempotency_key=key
            )
            done = "unsuspended"
        return away(answer, "/agents") if isinstance(answer, Refusal) else Moved(f"{here}?done={done}")

    console.get("/agents", show)
    console.get("/agents/<agent_id>", show_one)
    console.post("/agents", change)


def shown(agent: dict[str, Any]) -> dict[str, Any]:
    """An agent with what it has not."""
    return {"description": "", "owner_id": None, "suspended": None, **agent}


async def _held(console: Console, visit: Visit, agent_id: str) -> dict[str, Any] | None:
    """The agent as list_agents has it; None for one that is gone."""
    found = await console.ask(visit.session, "list_agents", agent_id=agent_id)
    return None if isinstance(found, Refusal) or not found["agents"] else shown(found["agents"][0])


def _add_owners(console: Console) -> None:
    async def show(visit: Visit) -> Shown:
        answer = await console.ask(visit.session, "list_owners", after=visit.query.one("after") or None)
        if isinstance(answer, Refusal):
            return away(answer)
        return Page("owners.html", {"owners": answer["owners"], "next": answer.get("next", "")})

    console.get("/owners", show)
