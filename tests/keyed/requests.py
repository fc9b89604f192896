"""One request for every tool that takes an idempotency_key: who asks, with what, in a world made for it.

A new keyed tool needs a row (test_keyed.py). Operators' tools are named `operator.<tool>`.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from broker.actors.agent import AddKey
from broker.app import Caller
from broker.core.claim import ENTROPY, new_code, read_code
from broker.wire.jwk import jwk_of
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench, Party
from tests.support.imports import FACTS, Files, bring, csv, foreign
from tests.support.imports import send as send_tape
from tests.support.pairs import agree, ask, send
from tests.support.registration import OPERATOR
from tests.support.rehearsals import QUIET, opened, started
from tests.support.signin import new_owner

Request = tuple[Caller, dict[str, Any]]
Make = Callable[[Bench], Awaitable[Request]]
DAY_MS: Final = 86_400_000


async def one(bench: Bench, name: str = "Ann", **members: Any) -> Caller:
    return await make_agent(bench, name, **members)


async def young(bench: Bench, **members: Any) -> Caller:
    """An agent that nobody has claimed."""
    ends = bench.clock.now_ms() + 7 * DAY_MS
    return await make_agent(bench, "Young", tier="unclaimed", expires_at=ends, **members)


async def town(bench: Bench, joined: bool = True) -> tuple[Caller, Caller, str]:
    """A private channel: its owner, who was invited (and joined), its id."""
    owner, other = await one(bench), await one(bench, "Bob")
    channel = (await bench.call("create_channel", owner, name="town", is_private=True))["channel_id"]
    await bench.call("invite_agent_to_channel", owner, channel_id=channel, invited_agent_id=other.agent)
    if joined:
        await bench.call("join_channel", other, channel_id=channel)
    return owner, other, channel


def mine(tool: str, **params: Any) -> tuple[str, Make]:
    """A request for which nobody else is needed."""

    async def make(bench: Bench) -> Request:
        return await one(bench), params

    return tool, make


def toward(tool: str, param: str, policy: str = "agent-decides", **params: Any) -> tuple[str, Make]:
    """A request that names another agent."""

    async def make(bench: Bench) -> Request:
        caller, other = await one(bench), await one(bench, "Bob", policy=policy)
        return caller, {param: other.agent, **params}

    return tool, make


def in_town(
    tool: str, by_owner: bool, param: str | None = None, joined: bool = True, **params: Any
) -> tuple[str, Make]:
    """A request in a private channel, of its owner or the other one; `param`: which names the other one."""

    async def make(bench: Bench) -> Request:
        owner, other, channel = await town(bench, joined)
        named = {param: other.agent} if param is not None else {}
        return owner if by_owner else other, {"channel_id": channel, **named, **params}

    return tool, make


def in_session(action: dict[str, Any]) -> tuple[str, Make]:
    """An action in a session with the caller's persistent account."""

    async def make(bench: Bench) -> Request:
        caller = await one(bench)
        made = await bench.call(
            "open_session", caller, game="hilo", mode="persistent", idempotency_key="opens"
        )
        return caller, {"session_id": made["session_id"], "expected_version": 0, "action": action}

    return "submit_action", make


def trying(verb: str, **params: Any) -> tuple[str, Make]:
    """A call in a trial of the caller's: the first one, or one after it was started."""

    async def make(bench: Bench) -> Request:
        caller = await one(bench)
        seen = await (opened if verb == "start" else started)(bench, caller)
        version = seen["version"]
        return caller, {"session_id": seen["session_id"], "expected_version": version, **params}

    return f"kestrel.session.{verb}", make


def by_operator(tool: str, role: str = "agent_id", test: bool = False, **params: Any) -> tuple[str, Make]:
    """An operator's request about an agent."""

    async def make(bench: Bench) -> Request:
        about = await one(bench, test=test)
        return OPERATOR, {role: about.agent, **params}

    return f"operator.{tool}", make


async def invite(bench: Bench) -> Request:
    owner, _, channel = await town(bench)
    return owner, {"channel_id": channel, "invited_agent_id": (await one(bench, "Cay")).agent}


async def cancel(bench: Bench) -> Request:
    caller, other = await one(bench), await one(bench, "Bob")
    return caller, {"request_id": (await ask(bench, caller, other))["request_id"]}


async def respond(bench: Bench) -> Request:
    caller, other = await young(bench), await one(bench, "Bob")
    return caller, {"request_id": (await ask(bench, other, caller))["request_id"], "accept": True}


async def revoke(bench: Bench) -> Request:
    caller, other = await one(bench), await one(bench, "Bob")
    return caller, {"agreement_id": await agree(bench, other, caller)}


async def write(bench: Bench) -> Request:
    """The last message of an unclaimed agent's day."""
    caller, other = await young(bench), await one(bench, "Bob")
    await agree(bench, other, caller)
    for number in range(19):
        assert not isinstance(await send(bench, caller, other, str(number)), Refusal)
    return caller, {"recipient_agent_id": other.agent, "body": "the last"}


async def mark(bench: Bench) -> Request:
    """Messages of two others, and one that is none of the caller's."""
    caller, ids = await one(bench), []
    for name in ("Bob", "Cay"):
        other = await one(bench, name)
        await agree(bench, other, caller)
        ids += [(await send(bench, other, caller, str(n)))["message_id"] for n in range(2)]
    return caller, {"message_ids": [*ids, "msg_none"]}


def tasked(tool: str, by_target: bool = False, **params: Any) -> tuple[str, Make]:
    """A request about a task that one gave another; `by_target`: of that other."""

    async def make(bench: Bench) -> Request:
        caller, other = await one(bench), await one(bench, "Bob")
        await agree(bench, caller, other, scopes=["task"])
        named = {"target_agent_id": other.agent} if tool == "send_task" else {}
        if tool != "send_task" or "again" in params:
            made = await bench.call("send_task", caller, target_agent_id=other.agent, text="a task")
            named["task_id"] = made["task"]["task_id"]
        if tool == "delete_task_push":
            await bench.call("set_task_push", caller, **named, url="https://hooks.example/", **params)
        given = {name: value for name, value in params.items() if name != "again"}
        return other if by_target else caller, {**named, **given}

    return tool, make


async def published(bench: Bench) -> Request:
    caller = await one(bench)
    await bench.call("set_a2a_endpoint", caller, url="https://a2a.turret-agents.org/")
    return caller, {}


async def renew(bench: Bench) -> Request:
    return await young(bench, claim=read_code(new_code(b"x" * ENTROPY))), {}


async def revoke_key(bench: Bench) -> Request:
    caller = await one(bench, key=SigningKey.generate())
    await bench.broker._services.house.ask("agent", str(caller.agent), AddKey(SigningKey.generate().pk, "k2"))
    return caller, {"kid": "k2"}


def shelved(tool: str, **params: Any) -> tuple[str, Make]:
    """A request about a resource of the caller's."""

    async def make(bench: Bench) -> Request:
        caller = await one(bench)
        made = await bench.call("publish_resource", caller, title="a", content="text")
        return caller, {"resource_id": made["resource_id"], **params}

    return tool, make


def hooked(tool: str, **params: Any) -> tuple[str, Make]:
    """A request of an agent that has a webhook."""

    async def make(bench: Bench) -> Request:
        caller = await one(bench)
        await bench.call("set_webhook", caller, url="https://hooks.example/")
        return caller, params

    return tool, make


async def keeping(bench: Bench) -> Request:
    """An agent that keeps a secret, and unsets it."""
    caller = await one(bench)
    await bench.call("kestrel.secrets.set", caller, name="TOKEN", value="a value")
    return caller, {"name": "TOKEN"}


async def operator_add_key(bench: Bench) -> Request:
    agent, party = await one(bench), Party("ABCD")
    proof = party.statement("bind_key", bench.broker.pk, bench.ts, agent_id=agent.agent)
    return OPERATOR, {
        "agent_id": agent.agent,
        "public_key": msgspec.to_builtins(jwk_of(party.pk)),
        "proof": proof,
    }


async def operator_revoke_key(bench: Bench) -> Request:
    key = SigningKey.generate()
    return OPERATOR, {"agent_id": (await one(bench, key=key)).agent, "kid": f"kid-{key.pk[:8]}"}


async def operator_register(bench: Bench) -> Request:
    party = Party("ABCD")
    proof = party.statement("register_agent", bench.broker.pk, bench.ts, name="Zed")
    return OPERATOR, {"name": "Zed", "public_key": msgspec.to_builtins(jwk_of(party.pk)), "proof": proof}


async def operator_assign(bench: Bench) -> Request:
    return OPERATOR, {"agent_id": (await one(bench)).agent, "owner_id": await new_owner(bench)}


async def operator_delete_unclaimed(bench: Bench) -> Request:
    return OPERATOR, {"agent_id": (await young(bench)).agent}


async def operator_grant(bench: Bench) -> Request:
    ends = {"from_agent_id": (await one(bench)).agent, "to_agent_id": (await one(bench, "Bob")).agent}
    return OPERATOR, {**ends, "scopes": ["message"]}


async def operator_revoke_grant(bench: Bench) -> Request:
    _, params = await operator_grant(bench)
    await bench.call("grant_send_permission", OPERATOR, **params)
    return OPERATOR, {name: params[name] for name in ("from_agent_id", "to_agent_id")}


async def operator_unsuspend(bench: Bench) -> Request:
    agent = await one(bench)
    await bench.call("suspend_agent", OPERATOR, agent_id=agent.agent, reason="x")
    return OPERATOR, {"agent_id": agent.agent}


async def operator_transfer(bench: Bench) -> Request:
    _, _, channel = await town(bench)
    return OPERATOR, {"channel_id": channel, "new_owner_agent_id": (await one(bench, "Cay")).agent}


async def operator_resolve(bench: Bench) -> Request:
    """A report that is resolved with a warning: both hear of it."""
    caller, other = await one(bench), await one(bench, "Bob")
    params = {"target_agent_id": other.agent, "category": "spam", "details": "a lot of it"}
    filed = await bench.call("report_agent", caller, **params)
    return OPERATOR, {"report_id": filed["report_id"], "outcome": "warned", "note": "thanks"}


async def operator_unbind(bench: Bench) -> Request:
    account = {"agent_id": (await one(bench)).agent, "network": "libera.chat", "nick": "Ann"}
    await bench.call("bind_irc_account", OPERATOR, **account)
    return OPERATOR, account


async def operator_import(bench: Bench) -> Request:
    tape = foreign()
    parts = await send_tape(bench, tape)
    return OPERATOR, {"ref": tape.ref(), "parts": parts, "title": "a day", "licence": "CC0-1.0"}


async def operator_remove_tape(bench: Bench) -> Request:
    tape = foreign()
    await bring(bench, tape)
    return OPERATOR, {"ref": tape.ref()}


async def operator_fetch(bench: Bench) -> Request:
    Files(bench, csv())
    return OPERATOR, FACTS


async def operator_set_secret(bench: Bench) -> Request:
    return OPERATOR, {"name": "FEED", "value": "mine"}


async def operator_unset_secret(bench: Bench) -> Request:
    await bench.call("set_secret", OPERATOR, name="FEED", value="mine")
    return OPERATOR, {"name": "FEED"}


REQUESTS: Final[tuple[tuple[str, Make], ...]] = (
    toward("request_contact", "target_agent_id", purpose="to talk"),
    toward("request_contact", "target_agent_id", "auto-accept", purpose="to talk"),
    toward("request_contact", "target_agent_id", "deny", purpose="to talk"),
    ("cancel_contact_request", cancel),
    ("respond_to_contact_request", respond),
    ("revoke_agreement", revoke),
    mine("set_contact_policy", policy="deny"),
    ("send_direct_message", write),
    ("mark_messages_read", mark),
    mine("create_channel", name="city"),
    in_town("join_channel", False, joined=False),
    ("invite_agent_to_channel", invite),
    in_town("leave_channel", False),
    in_town("remove_channel_member", True, "target_agent_id"),
    in_town("transfer_channel", True, "new_owner_agent_id"),
    in_town("send_channel_message", False, body="hello", metadata={"b": 1, "a": [2.5]}),
    mine("update_my_profile", name="Anna", capabilities=["fx"]),
    mine("set_directory_visibility", public=True),
    tasked("send_task", text="a task", parts=[{"data": {"b": 1, "a": [2.5]}}], metadata={"z": 1, "a": 2}),
    tasked("send_task", text="more", again=True),
    tasked("cancel_task"),
    tasked("complete_task", True, outcome="completed", text="done"),
    tasked("complete_task", True, outcome="failed", text="no"),
    tasked("update_task", True, status="input-required", text="what?"),
    tasked("set_task_push", url="https://hooks.example/", config_id="c1"),
    tasked("delete_task_push", config_id="c1"),
    mine("set_a2a_endpoint", url="https://a2a.turret-agents.org/"),
    ("delete_a2a_endpoint", published),
    mine("open_session", game="hilo", mode="persistent"),
    in_session({"type": "call", "stake": 5, "guess": "same"}),
    in_session({"type": "stop"}),
    mine("kestrel.session.open", entry="trend", seed=5),
    trying("start", plan=QUIET),
    trying("advance", ticks=40),
    trying("revise", plan=QUIET),
    trying("submit", order={"side": "buy", "size": 5, "tif": "gtc", "at": 1}),
    trying("finalize"),
    mine("publish_resource", title="a", content="a text", tags=["fx", "a"]),
    shelved("update_resource", title="b", content="another", expected_version=1),
    shelved("delete_resource"),
    ("renew_claim_code", renew),
    ("revoke_my_public_key", revoke_key),
    mine("set_webhook", url="https://hooks.example/"),
    hooked("set_webhook", url="https://other.example/"),
    hooked("set_webhook", url="https://hooks.example/", headers={"X-Key": "${KEY}"}),
    hooked("delete_webhook"),
    hooked("rotate_webhook_secret"),
    hooked("redeliver_webhook_events", after="0"),
    mine("kestrel.secrets.set", name="TOKEN", value="a value"),
    ("kestrel.secrets.unset", keeping),
    toward("report_agent", "target_agent_id", category="spam", details="ads"),
    ("operator.register_agent", operator_register),
    by_operator("rotate_agent_credential"),
    ("operator.add_agent_public_key", operator_add_key),
    ("operator.revoke_agent_public_key", operator_revoke_key),
    ("operator.assign_agent_owner", operator_assign),
    by_operator("suspend_agent", reason="x"),
    ("operator.unsuspend_agent", operator_unsuspend),
    ("operator.delete_unclaimed_agent", operator_delete_unclaimed),
    by_operator("delete_test_agent", test=True),
    ("operator.grant_send_permission", operator_grant),
    ("operator.revoke_send_permission", operator_revoke_grant),
    by_operator("create_channel", "owner_agent_id", name="city"),
    ("operator.transfer_channel", operator_transfer),
    ("operator.resolve_report", operator_resolve),
    by_operator("bind_irc_account", network="libera.chat", nick="Ann"),
    ("operator.unbind_irc_account", operator_unbind),
    ("operator.fetch_tape", operator_fetch),
    ("operator.import_tape", operator_import),
    ("operator.remove_tape", operator_remove_tape),
    ("operator.set_secret", operator_set_secret),
    ("operator.unset_secret", operator_unset_secret),
)
