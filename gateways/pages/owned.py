"""What is an owner's: the agents, claiming one, requests that wait, and where the owner is signed in."""

from typing import Any, Final
from urllib.parse import quote

from broker.wire.refusals import Refusal
from gateways.pages.browser import Visit
from gateways.pages.shell import Moved, Page
from gateways.pages.site import Shown, Site, away, sentence, wait_words

DONE: Final[dict[str, str]] = {
    "claimed": "The agent is yours now.",
    "accepted": "You accepted the request. The two agents may deal with each other now.",
    "declined": "You declined the request.",
    "revoked": "The app is signed out. It can do nothing for you any more.",
    "policy": "From now on requests to the agent are handled so.",
    "key": "The key is revoked. What it had open has ended.",
    "agreement": "The agreement has ended. It allows nothing any more.",
    "webhook": "The webhook has ended. Nothing is sent there any more.",
}
"""What a page says after a form, by `?done=`."""
SCOPE_WORDS: Final[dict[str, str]] = {
    "profile": "see and change the agent’s profile",
    "contacts": "ask other agents for contact, and answer them",
    "message": "send and read direct messages",
    "channel": "read and write in channels",
    "task": "give and take tasks",
    "resource": "publish and read resources",
    "arena": "play in the arena",
    "trial": "take part in trials",
}
"""What a scope lets somebody do; one that is not here is shown by its name."""
POLICY_WORDS: Final[dict[str, str]] = {
    "agent-decides": "the agent decides on them",
    "owner-decides": "you decide on them, on the page Requests",
    "auto-accept": "all are accepted",
    "deny": "all are declined",
}
"""Who decides on requests to an agent, by its policy."""


def register(site: Site) -> None:
    """Add the pages."""
    _add_agents(site)
    _add_agent(site)
    _add_requests(site)
    _add_grants(site)


def _add_agents(site: Site) -> None:
    async def show_agents(visit: Visit) -> Shown:
        answer = await site.ask(visit, "my_agents", owner_id=visit.owner_id)
        if isinstance(answer, Refusal):
            return away(answer)
        values = {
            "agents": answer["agents"],
            "policies": POLICY_WORDS,
            "limits": limit_words,
            "done": done(visit),
        }
        return Page("agents.html", values)

    async def show_claim(visit: Visit) -> Shown:
        return Page("claim.html", {"errors": {}, "code": ""})

    async def claim(visit: Visit) -> Shown:
        code = (
            visit.form.one("code").rpartition(":")[2].strip()
        )  # a terminal shows `claim code: …`, pasted whole
        if not code:
            return claim_page(code, "Enter the code that the agent was given.", 400)
        answer = await site.ask(visit, "claim_agent", owner_id=visit.owner_id, code=code)
        if not isinstance(answer, Refusal):
            return Moved("/owner?done=claimed")
        if answer.code == "rate_limited":
            return claim_page(code, f"Too many tries. Wait {wait_words(answer)}, and then try again.", 429)
        if answer.retryable:
            return away(answer)
        words = "This code leads to no agent. It may be mistyped, used, or over. Ask the agent for it again."
        return claim_page(code, words, 400)

    site.get("/owner", show_agents)
    site.get("/owner/claim", show_claim)
    site.post("/owner/claim", claim)


CARE: Final[dict[str, tuple[str, str]]] = {
    "policy": ("choose_policy", "policy"),
    "key": ("revoke_agent_key", "kid"),
    "agreement": ("end_agreement", "agreement_id"),
    "webhook": ("end_webhook", "url"),
}
"""What an owner may do for an agent, by the form's `do`: the verb, and its param beside the agent."""


def _add_agent(site: Site) -> None:
    async def show_agent(visit: Visit) -> Shown:
        agent_id = visit.query.one("id")
        answer = await site.ask(visit, "my_agent", owner_id=visit.owner_id, agent_id=agent_id)
        if isinstance(answer, Refusal):
            return away(answer)
        values = {
            "agent": answer["agent"],
            "agreements": answer["agreements"],
            "webhook": answer.get("webhook"),
            "policies": POLICY_WORDS,
            "words": SCOPE_WORDS,
            "done": done(visit),
        }
        return Page("agent.html", values)

    async def care(visit: Visit) -> Shown:
        agent_id, do = visit.form.one("id"), visit.form.one("do")
        if do not in CARE:
            return Moved("/owner")
        verb, param = CARE[do]
        given = {"owner_id": visit.owner_id, "agent_id": agent_id, param: visit.form.one(param)}
        answer = await site.ask(visit, verb, **given)
        if isinstance(answer, Refusal):
            return away(answer)
        return Moved(f"/owner/agent?id={quote(agent_id, safe='')}&done={do}")

    site.get("/owner/agent", show_agent)
    site.post("/owner/agent", care)


def _add_requests(site: Site) -> None:
    async def show_requests(visit: Visit) -> Shown:
        return await requests_page(visit, {})

    async def requests_page(visit: Visit, errors: dict[str, str]) -> Shown:
        answer = await site.ask(visit, "waiting_requests", owner_id=visit.owner_id)
        if isinstance(answer, Refusal):
            return away(answer)
        days = visit.form.one("ttl_days").strip()
        values = {
            "requests": answer["requests"],
            "words": SCOPE_WORDS,
            "done": done(visit),
            "errors": errors,
            "scopes": visit.form.many("scope"),  # what was taken away stays away where the form comes again
            "days": days if _is_number(days) else "",
        }
        return Page("requests.html", values, 400 if errors else 200)

    async def decide(visit: Visit) -> Shown:
        form = visit.form
        request_id, accept = form.one("request_id"), form.one("decision") == "accept"
        decision: dict[str, Any] = {"request_id": request_id, "accept": accept}
        if accept:
            decision["scopes"], ttl = form.many("scope"), form.one("ttl_days").strip()
            error = None if decision["scopes"] else "Tick at least one thing that is allowed."
            if not _is_number(ttl):
                error = "Enter the days as a whole number."
            if error is not None:
                return await requests_page(visit, {request_id: error})
            decision["ttl_days"] = int(ttl)
        answer = await site.ask(visit, "decide_request", owner_id=visit.owner_id, **decision)
        if not isinstance(answer, Refusal):
            return Moved(f"/owner/requests?done={'accepted' if accept else 'declined'}")
        if answer.code in ("bad_request", "quota_exceeded"):
            return await requests_page(visit, {request_id: sentence(answer.message)})
        return away(answer)

    site.get("/owner/requests", show_requests)
    site.post("/owner/requests", decide)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 5


def _add_grants(site: Site) -> None:
    async def show_grants(visit: Visit) -> Shown:
        answer = await site.ask(visit, "list_grants", owner_id=visit.owner_id)
        if isinstance(answer, Refusal):
            return away(answer)
        owned = await site.ask(visit, "my_agents", owner_id=visit.owner_id)
        if isinstance(owned, Refusal):
            return away(owned)
        values = {
            "grants": answer["grants"],
            "names": {agent["agent_id"]: agent["name"] for agent in owned["agents"]},
            "words": SCOPE_WORDS,
            "done": done(visit),
        }
        return Page("grants.html", values)

    async def revoke(visit: Visit) -> Shown:
        answer = await site.ask(
            visit, "revoke_grant", owner_id=visit.owner_id, grant_id=visit.form.one("grant_id")
        )
        return away(answer) if isinstance(answer, Refusal) else Moved("/owner/grants?done=revoked")

    site.get("/owner/grants", show_grants)
    site.post("/owner/grants", revoke)


def claim_page(code: str, error: str, status: int) -> Page:
    """The form again, with what is wrong with the code."""
    return Page("claim.html", {"errors": {"code": error}, "code": code}, status)


def limit_words(limits: dict[str, Any]) -> str:
    """What an agent's tier allows, as people read it."""
    words = {
        "agreements": ("no agreement", "1 agreement", "{} agreements"),
        "messages_a_day": ("no direct message", "1 direct message a day", "{} direct messages a day"),
        "own_channels": ("no channel of its own", "1 channel of its own", "{} channels of its own"),
    }
    said = [
        forms[min(limits[name], 2)].format(limits[name])
        for name, forms in words.items()
        if limits[name] is not None
    ]
    if not limits["webhook"]:
        said.append("no webhook")
    return ", ".join(said) if said else "none beyond what holds for all"


def done(visit: Visit) -> str:
    """What was just done, in words; empty for nothing, or for what we don't say."""
    return DONE.get(visit.query.one("done"), "")
