"""What operators do between agents, to channels, reports, tapes, the audit and the wire, seen from the other end."""

from broker.app import Caller
from tests.operators.effects import effect, operator
from tests.support import imports
from tests.support.agents import caller_of, make_agent
from tests.support.broker import ANYONE, Bench, Party, code
from tests.support.pairs import agree, send, told, whats


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
