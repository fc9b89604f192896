"""Every operators' tool has an effect, and an agent, an owner or a dealer sees it (network.md, Operator tools).

A new tool needs a row: without one the suite fails. What lists shows what others did is seen from the other end: what
an agent, an owner or a dealer did stands there.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
import pytest

from broker.app import AREAS, Caller
from broker.tools.registry import collect
from broker.wire.jwk import thumbprint
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal, refuse
from gateways.operator.server import operator_app
from gateways.operator.token import OperatorToken
from tests.gateways.mcp.harness import Door, modern
from tests.support import imports
from tests.support.agents import caller_of, make_agent
from tests.support.broker import ANYONE, Bench, Party, code, open_bench, tuned
from tests.support.operators import BEARER, TOKEN
from tests.support.owners import CHEAP, PASSWORD, signin
from tests.support.pairs import agree, send, told, whats
from tests.support.registration import OPERATOR, jwk, register

assert AREAS
Effect = Callable[[Bench], Awaitable[None]]
EFFECTS: Final[dict[str, Effect]] = {}
DAY_MS: Final = 86_400_000


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


@effect("register_agent")
async def registered(bench: Bench) -> None:
    made = await operator(bench, "register_agent", name="Ann")
    assert await takes(bench, made["agent_id"], made["credential"]) == "accepted"
    me = await bench.call("whoami", caller_of(bench, made["agent_id"]))
    assert (me["name"], me["tier"]) == ("Ann", "standard")


@effect("rotate_agent_credential")
async def rotated(bench: Bench) -> None:
    made = await operator(bench, "register_agent", name="Ann")
    before = caller_of(bench, made["agent_id"])
    new = await operator(bench, "rotate_agent_credential", agent_id=made["agent_id"])
    assert await as_agent(bench, before) == "unauthenticated"
    assert await takes(bench, made["agent_id"], made["credential"]) != "accepted"
    assert await takes(bench, made["agent_id"], new["credential"]) == "accepted"


@effect("add_agent_public_key")
async def key_added(bench: Bench) -> None:
    ann, party = await make_agent(bench, "Ann"), await bench.open("ANNE")
    await operator(bench, "add_agent_public_key", **binding(bench, party.key, str(ann.agent)))
    bob = await make_agent(bench, "Bob")
    seen = await bench.call("get_agent", bob, agent_id=ann.agent)
    assert seen["desk"]["code"] == "ANNE"  # the key's desk is the agent's now
    await bench.dial(await bench.open("BOBB"), party)
    assert len(await told(bench, ann, "ring")) == 1


@effect("revoke_agent_public_key")
async def key_revoked(bench: Bench) -> None:
    key = SigningKey.generate()
    ann = await make_agent(bench, "Ann")
    await operator(bench, "add_agent_public_key", **binding(bench, key, str(ann.agent)))
    by_key = msgspec.structs.replace(ann, kid=thumbprint(key.pk))
    assert await as_agent(bench, by_key) == "accepted"
    await operator(bench, "revoke_agent_public_key", agent_id=ann.agent, kid=thumbprint(key.pk))
    assert await as_agent(bench, by_key) == "unauthenticated"


@effect("list_agent_public_keys")
async def keys_listed(bench: Bench) -> None:
    made = await register(bench, "Ann")
    mine = (await bench.call("list_my_public_keys", caller_of(bench, made["agent_id"])))["keys"]
    listed = (await operator(bench, "list_agent_public_keys", agent_id=made["agent_id"]))["keys"]
    assert [each["kid"] for each in listed] == [each["kid"] for each in mine] != []


@effect("create_owner")
async def owner_made(bench: Bench) -> None:
    await operator(bench, "create_owner", email="ann@x.example", password=PASSWORD)
    assert code(await signin(bench, "sign_in", email="ann@x.example", password=PASSWORD)) == "accepted"
    invited = await operator(bench, "create_owner", email="bob@x.example", invitation=True)
    params = {"email": "bob@x.example", "password": PASSWORD, "invitation": invited["invitation"]}
    assert (await signin(bench, "sign_up", **params))["owner_id"] == invited["owner_id"]


@effect("list_owners")
async def owners_listed(bench: Bench) -> None:
    made = await signin(bench, "sign_up", email="ann@x.example", password=PASSWORD)
    young = await register(bench, "Young")
    await signin(bench, "claim_agent", owner_id=made["owner_id"], code=young["claim_code"])
    (listed,) = (await operator(bench, "list_owners"))["owners"]
    assert (listed["owner_id"], listed["agents"]) == (made["owner_id"], 1)


@effect("assign_agent_owner")
async def assigned(bench: Bench) -> None:
    ann, owner_id = await make_agent(bench, "Ann"), await owner(bench)
    await operator(bench, "assign_agent_owner", agent_id=ann.agent, owner_id=owner_id)
    owned = (await signin(bench, "my_agents", owner_id=owner_id))["agents"]
    assert [(each["agent_id"], each["tier"]) for each in owned] == [(ann.agent, "claimed")]
    assert await whats(bench, ann, "notice") == ["owner_assigned"]


@effect("suspend_agent")
async def suspended(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await agree(bench, ann, bob)
    await operator(bench, "suspend_agent", agent_id=ann.agent, reason="spam")
    assert await as_agent(bench, ann) == "suspended"
    assert await knows(bench, bob, str(ann.agent)) == "not_found"
    assert code(await send(bench, bob, ann)) == "agreement_required"


@effect("unsuspend_agent")
async def unsuspended(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await agree(bench, ann, bob)
    await operator(bench, "suspend_agent", agent_id=ann.agent, reason="spam")
    await operator(bench, "unsuspend_agent", agent_id=ann.agent)
    assert (await as_agent(bench, ann), await knows(bench, bob, str(ann.agent))) == ("accepted", "accepted")
    assert code(await send(bench, bob, ann)) == "accepted"


@effect("list_suspended_agents")
async def suspended_listed(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    await operator(bench, "suspend_agent", agent_id=ann.agent, reason="spam")
    (listed,) = (await operator(bench, "list_suspended_agents"))["agents"]
    assert (listed["agent_id"], listed["suspended"]["reason"]) == (ann.agent, "spam")
    await operator(bench, "unsuspend_agent", agent_id=ann.agent)
    assert (await operator(bench, "list_suspended_agents"))["agents"] == []


@effect("list_agents")
async def agents_listed(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    await bench.call("set_contact_policy", ann, policy="deny")
    (listed,) = (await operator(bench, "list_agents"))["agents"]
    assert (listed["agent_id"], listed["policy"], listed["public"]) == (ann.agent, "deny", False)


@effect("list_unclaimed_agents")
async def unclaimed_listed(bench: Bench) -> None:
    made = await register(bench, "Young")
    (listed,) = (await operator(bench, "list_unclaimed_agents"))["agents"]
    assert (listed["agent_id"], listed["tier"]) == (made["agent_id"], "unclaimed")


@effect("delete_unclaimed_agent")
async def unclaimed_deleted(bench: Bench) -> None:
    made, bob = await register(bench, "Young"), await make_agent(bench, "Bob")
    young = caller_of(bench, made["agent_id"])
    await operator(bench, "delete_unclaimed_agent", agent_id=made["agent_id"])
    assert await as_agent(bench, young) == "unauthenticated"
    assert await knows(bench, bob, made["agent_id"]) == "not_found"
    assert "agent_id" in await register(bench, "Young")  # the name is free


@effect("purge_expired_unclaimed")
async def purged(bench: Bench) -> None:
    bob = await make_agent(bench, "Bob")
    over = await make_agent(bench, "Old", tier="unclaimed", expires_at=bench.clock.now_ms())
    await operator(bench, "purge_expired_unclaimed")
    assert await bench.store.get("agent", str(over.agent)) is None
    assert await as_agent(bench, over) == "unauthenticated"
    assert await knows(bench, bob, str(over.agent)) == "not_found"


@effect("delete_test_agent")
async def agent_deleted(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann", test=True), await make_agent(bench, "Bob")
    await operator(bench, "delete_test_agent", agent_id=ann.agent)
    assert await as_agent(bench, ann) == "unauthenticated"
    assert await knows(bench, bob, str(ann.agent)) == "not_found"
    assert code(await bench.call("delete_test_agent", OPERATOR, agent_id=bob.agent)) == "bad_request"


@effect("grant_send_permission")
async def granted(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await operator(bench, "grant_send_permission", from_agent_id=ann.agent, to_agent_id=bob.agent)
    assert code(await send(bench, ann, bob)) == "accepted"
    assert code(await send(bench, bob, ann)) == "agreement_required"
    (listed,) = (await bench.call("list_agreements", bob))["agreements"]
    assert (listed["made_by"], listed["direction"]) == ("operator", "incoming")


@effect("revoke_send_permission")
async def ungranted(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    ends = {"from_agent_id": ann.agent, "to_agent_id": bob.agent}
    await operator(bench, "grant_send_permission", **ends)
    await operator(bench, "revoke_send_permission", **ends)
    assert code(await send(bench, ann, bob)) == "agreement_required"


@effect("bind_irc_account")
async def bound(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await agree(bench, ann, bob)
    await operator(bench, "bind_irc_account", agent_id=ann.agent, network="libera", nick="ann")
    (listed,) = (await bench.call("list_agreements", bob))["agreements"]
    assert listed["irc_accounts"] == [{"network": "libera", "nick": "ann", "bridged": False}]


@effect("unbind_irc_account")
async def unbound(bench: Bench) -> None:
    await bound(bench)
    (one,) = (await operator(bench, "list_irc_bindings"))["bindings"]
    account = {name: one[name] for name in ("agent_id", "network", "nick")}
    await operator(bench, "unbind_irc_account", **account)
    (listed,) = (await bench.call("list_agreements", (await others(bench, one["agent_id"]))))["agreements"]
    assert listed["irc_accounts"] == []


@effect("list_irc_bindings")
async def bindings_listed(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    await operator(bench, "bind_irc_account", agent_id=ann.agent, network="libera", nick="ann")
    (notice,) = await told(bench, ann, "notice")
    (listed,) = (await operator(bench, "list_irc_bindings", agent_id=ann.agent))["bindings"]
    assert (notice["network"], notice["nick"]) == (listed["network"], listed["nick"])


async def others(bench: Bench, agent_id: str) -> Caller:
    """The one agent that is not this one."""
    listed = (await operator(bench, "list_agents"))["agents"]
    return caller_of(bench, next(each["agent_id"] for each in listed if each["agent_id"] != agent_id))


@effect("create_channel")
async def channel_made(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    made = await operator(bench, "create_channel", name="town", owner_agent_id=ann.agent, is_private=True)
    town = {"channel_id": made["channel_id"]}
    params = {**town, "invited_agent_id": bob.agent}
    assert code(await bench.call("invite_agent_to_channel", ann, **params)) == "accepted"
    assert code(await bench.call("join_channel", bob, **town)) == "accepted"


@effect("transfer_channel")
async def channel_given(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann", test=True), await make_agent(bench, "Bob")
    town = {"channel_id": (await bench.call("create_channel", ann, name="town"))["channel_id"]}
    await bench.call("join_channel", bob, **town)
    await operator(bench, "delete_test_agent", agent_id=ann.agent)
    await operator(bench, "transfer_channel", **town, new_owner_agent_id=bob.agent)
    (listed,) = (await bench.call("list_channels", bob))["channels"]
    assert (listed["role"], listed["members"]) == ("owner", 1)
    assert "channel_transferred" in await whats(bench, bob, "notice")


async def reported(bench: Bench) -> tuple[Caller, Caller, str]:
    """Who reported, who was, and the report's id."""
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    params = {"target_agent_id": bob.agent, "category": "spam", "details": "ads"}
    return ann, bob, (await bench.call("report_agent", ann, **params))["report_id"]


@effect("list_reports")
async def reports_listed(bench: Bench) -> None:
    ann, _, report_id = await reported(bench)
    (listed,) = (await operator(bench, "list_reports"))["reports"]
    assert (listed["report_id"], listed["reporter_agent_id"]) == (report_id, ann.agent)


@effect("list_channels")
async def channels_listed(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob", test=True)
    await bench.call("create_channel", ann, name="square")
    hidden = await bench.call("create_channel", bob, name="cellar", is_private=True)
    await bench.call(
        "invite_agent_to_channel", bob, channel_id=hidden["channel_id"], invited_agent_id=ann.agent
    )
    await operator(bench, "delete_test_agent", agent_id=bob.agent)
    first = await operator(bench, "list_channels", limit=1)
    rest = await operator(bench, "list_channels", limit=1, after=first["next"])
    assert [each["channels"][0]["name"] for each in (first, rest)] == ["square", "cellar"]
    (orphan,) = (await operator(bench, "list_channels", ownerless=True))["channels"]
    assert (orphan["name"], orphan["owner_agent_id"]) == ("cellar", None)
    await operator(bench, "transfer_channel", channel_id=orphan["channel_id"], new_owner_agent_id=ann.agent)
    assert (await operator(bench, "list_channels", ownerless=True))["channels"] == []
    assert [each["role"] for each in (await bench.call("list_channels", ann))["channels"]] == [
        "owner",
        "owner",
    ]


@effect("list_webhooks")
async def webhooks_listed(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    await bench.call("set_webhook", ann, url="https://hooks.example/")
    (listed,) = (await operator(bench, "list_webhooks", disabled=False))["webhooks"]
    assert (listed["agent_id"], listed["push"]["url"]) == (ann.agent, "https://hooks.example/")


async def tapes(bench: Bench, reader: Caller) -> list[int]:
    """The indices of the catalog, as an agent reads it."""
    whole = await bench.broker.catalog(reader, "all")
    return [each.index for each in whole.entries]


@effect("send_tape_rows")
@effect("import_tape")
@effect("list_tapes")
@effect("remove_tape")
async def tape_kept(bench: Bench) -> None:
    tape, ann = imports.foreign(), await make_agent(bench, "Ann")
    parts = await imports.send(bench, tape)
    assert await tapes(bench, ann) == [0, 1, 2, 3]
    await imports.finish(bench, tape, parts)
    listed = [each["index"] for each in (await operator(bench, "list_tapes"))["entries"]]
    assert await tapes(bench, ann) == listed == [0, 1, 2, 3, 100]
    await operator(bench, "remove_tape", ref=tape.ref())
    assert await tapes(bench, ann) == [0, 1, 2, 3]


for _tool in ("fetch_tape", "set_secret", "unset_secret", "list_secrets"):
    effect(_tool)(imports.fetched_with_a_secret)


@effect("resolve_report")
async def report_resolved(bench: Bench) -> None:
    ann, bob, report_id = await reported(bench)
    await operator(bench, "resolve_report", report_id=report_id, outcome="warned", note="we told it")
    (message,) = (await bench.call("get_inbox", ann))["messages"]
    assert report_id in message["body"]
    assert "we told it" in message["body"]
    assert await whats(bench, bob, "notice") == ["warned"]


@effect("review_queue")
async def queue_shown(bench: Bench) -> None:
    _, bob, report_id = await reported(bench)
    (waiting,) = (await operator(bench, "review_queue"))["queue"]
    assert (waiting["target_agent_id"], waiting["reports"]) == (bob.agent, 1)
    await operator(bench, "resolve_report", report_id=report_id, outcome="dismissed", note="")
    assert (await operator(bench, "review_queue"))["queue"] == []


@effect("list_audit_events")
async def audit_listed(bench: Bench) -> None:
    ann, bob, _ = await reported(bench)
    await operator(bench, "suspend_agent", agent_id=bob.agent, reason="spam")
    await operator(bench, "verify_audit_log")  # what waits for its place has it now
    events = (await operator(bench, "list_audit_events"))["events"]
    done = [(each["kind"], each["actor"]) for each in events]
    assert ("report_agent", ann.agent) in done
    assert ("suspend_agent", "operator") in done


@effect("verify_audit_log")
async def audit_verified(bench: Bench) -> None:
    await reported(bench)
    assert (await operator(bench, "verify_audit_log"))["ok"] is True


async def calls(bench: Bench, caller: Party, called: Party) -> str:
    """What a CALL of a dealer's is told."""
    return code(await bench.call("send_call", ANYONE, **bench.calling(caller, called)))


@effect("suspend_desk")
async def desk_suspended(bench: Bench) -> None:
    ann, bob = await bench.open("ANNE"), await bench.open("BOBB")
    await operator(bench, "suspend_desk", code="ANNE")
    assert (await calls(bench, ann, bob), await calls(bench, bob, ann)) == ("suspended", "suspended")


@effect("release_desk")
async def desk_released(bench: Bench) -> None:
    ann, bob = await bench.open("ANNE"), await bench.open("BOBB")
    await operator(bench, "suspend_desk", code="ANNE")
    await operator(bench, "release_desk", code="ANNE")
    assert (await calls(bench, ann, bob), await calls(bench, bob, ann)) == ("accepted", "accepted")


@effect("list_desks")
async def desks_listed(bench: Bench) -> None:
    ann = await bench.open("ANNE")
    (listed,) = (await operator(bench, "list_desks"))["desks"]
    assert (listed["code"], listed["pk"]) == ("ANNE", ann.pk)


@effect("list_calls")
async def calls_listed(bench: Bench) -> None:
    line = await bench.connect(await bench.open("ANNE"), await bench.open("BOBB"))
    await line.send("SAY")
    (listed,) = (await operator(bench, "list_calls"))["calls"]
    assert (listed["conv"], listed["phase"], listed["envelopes"]) == (line.conv, "open", 3)


@effect("end_call")
async def call_ended(bench: Bench) -> None:
    line = await bench.connect(await bench.open("ANNE"), await bench.open("BOBB"))
    await operator(bench, "end_call", conv=line.conv, note="enough")
    refused = await line.send("SAY")
    assert (code(refused), refused.detail["reason"]) == ("conv_ended", "operator")


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
