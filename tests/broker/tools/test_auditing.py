"""What the audit is told of: operators' changes, and those of others that say so; each once, and with no secret."""

import json
from typing import Any

import msgspec
import pytest
import trio

from broker.actors.auditor import ROW, AuditorActor
from broker.actors.notes import WAITING
from broker.app import Caller
from broker.core.audit import AuditEvent
from broker.store.memory import MemoryStore
from broker.store.port import InDoubt, Unavailable, Unit
from broker.tools import auditing
from broker.tools.auditing import AUDITED_AN_HOUR
from broker.tools.registry import collect
from broker.wire.refusals import Refusal
from tests.keyed.requests import REQUESTS
from tests.programs.flaky import WAYS, FlakyMemory, Way
from tests.support.agents import make_agent
from tests.support.broker import STRANGER, Bench, Party, code, open_bench, tuned
from tests.support.owners import CHEAP
from tests.support.registration import OPERATOR, register
from tests.support.signin import consent, new_owner


async def noted(bench: Bench) -> list[AuditEvent]:
    """All that the audit was told, in order."""
    await auditing.drain(bench.broker._services)
    found = await bench.store.find(ROW, "all", "1", limit=1000)
    return [msgspec.json.decode(each.doc, type=AuditEvent) for each in found]


async def last(bench: Bench) -> AuditEvent:
    return (await noted(bench))[-1]


@pytest.mark.requirement("audit.operators")
async def test_what_operators_change_is_noted_with_whom_and_what(bench: Bench) -> None:
    ann, bob = str((await make_agent(bench, "Ann")).agent), str((await make_agent(bench, "Bob")).agent)
    await bench.open("ALFA")
    before = len(await noted(bench))
    for tool, params in (
        ("suspend_desk", {"code": "ALFA"}),
        ("release_desk", {"code": "ALFA"}),
        ("release_desk", {"code": "ZZZZ"}),
        ("grant_send_permission", {"from_agent_id": ann, "to_agent_id": bob}),
        ("suspend_agent", {"agent_id": ann, "reason": "spam"}),
        ("create_channel", {"name": "square", "owner_agent_id": bob}),
    ):
        await bench.call(tool, OPERATOR, **params)
    assert [(each.actor, each.kind, each.subject) for each in (await noted(bench))[before:]] == [
        ("operator", "suspend_desk", "ALFA"),
        ("operator", "release_desk", "ALFA"),
        ("operator", "grant_send_permission", ann),
        ("operator", "suspend_agent", ann),
        ("operator", "create_channel", (await noted(bench))[-1].subject),
    ]


@pytest.mark.requirement("audit.operators")
def test_every_tool_of_operators_that_changes_something_is_audited() -> None:
    tools = collect("operator").values()
    unaudited = [each.name for each in tools if each.audited == each.read_only]
    assert unaudited == ["send_tape_rows"], "parts of what import_tape, which is audited, lets be seen"


@pytest.mark.requirement("audit.told")
def test_what_others_change_of_rights_is_audited() -> None:
    found = {name for space in ("public", "signin") for name, each in collect(space).items() if each.audited}
    assert found >= {
        "report_agent",
        "revoke_my_public_key",
        "renew_claim_code",
        "move_desk",
        "cancel_move",
        "close_desk",
        "register_agent",
        "claim_agent",
        "change_password",
        "decide_authorization",
        "revoke_grant",
        "end_grant",
    }


@pytest.mark.requirement("audit.bound")
async def test_what_an_agent_has_noted_is_bounded_and_what_ends_something_is_never_refused(
    bench: Bench,
) -> None:
    """Anybody can register an agent, and rows are kept for ever."""
    made = await register(bench, "Ann")
    ann = Caller(principal=made["agent_id"], agent=made["agent_id"], scopes=frozenset({"profile"}))
    before = len(await noted(bench))
    answers = [await bench.call("renew_claim_code", ann) for _ in range(AUDITED_AN_HOUR + 5)]
    assert [code(each) for each in answers] == ["accepted"] * AUDITED_AN_HOUR + ["rate_limited"] * 5
    assert 3_500_000 < answers[-1].detail["retry_after_ms"] <= 3_600_000
    assert len(await noted(bench)) == before + AUDITED_AN_HOUR
    gone = await bench.call("revoke_my_public_key", ann, kid=made["kid"])
    assert code(gone) != "rate_limited"
    bob = await make_agent(bench, "Bob")
    reported = await bench.call(
        "report_agent", bob, target_agent_id=ann.agent, category="spam", details="look"
    )
    assert code(reported) == "accepted"  # another one has a bound of its own


@pytest.mark.requirement("audit.order")
async def test_a_request_sent_twice_is_noted_once(bench: Bench) -> None:
    ann = str((await make_agent(bench, "Ann")).agent)
    before = len(await noted(bench))
    for _ in range(2):
        await bench.call("suspend_agent", OPERATOR, agent_id=ann, reason="spam", idempotency_key="k")
    assert len(await noted(bench)) == before + 1


@pytest.mark.requirement("audit.answer")
async def test_the_answer_of_an_operators_tool_comes_when_its_row_stands(bench: Bench) -> None:
    ann = str((await make_agent(bench, "Ann")).agent)
    await bench.call("suspend_agent", OPERATOR, agent_id=ann, reason="spam")
    assert await bench.store.due(WAITING, "waits", 2**62, 10) == []
    rows = await bench.store.find(ROW, "kind", "suspend_agent")
    assert len(rows) == 1


@pytest.mark.requirement("audit.answer")
async def test_a_failure_of_the_audit_neither_undoes_nor_hides_the_change(autojump_clock: Any) -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        ann = str((await make_agent(bench, "Ann")).agent)

        def is_chaining(unit: Unit) -> bool:
            return any(put.kind == ROW for put in unit.puts)

        await trio.testing.wait_all_tasks_blocked()
        for error in (Unavailable(), InDoubt()):
            store.gate.fail_next(error, when=is_chaining)
            answer = await bench.call("suspend_agent", OPERATOR, agent_id=ann, reason="spam")
            assert answer == {"agent_id": ann, "suspended": True}
        assert len(await store.due(WAITING, "waits", 2**62, 10)) == 2
        await trio.sleep(auditing.MINUTE_S + 1)
        assert await store.due(WAITING, "waits", 2**62, 10) == []
        assert [each.kind for each in await noted(bench)] == ["suspend_agent"] * 2


@pytest.mark.requirement("audit.answer")
async def test_an_auditor_that_stands_still_is_waited_for_two_seconds(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stands_still(_: AuditorActor, __: Any) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(AuditorActor, "handle", stands_still)
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        ann = str((await make_agent(bench, "Ann")).agent)
        began = trio.current_time()
        assert not isinstance(
            await bench.call("suspend_agent", OPERATOR, agent_id=ann, reason="spam"), Refusal
        )
        assert trio.current_time() - began == auditing.WAIT_S


@pytest.mark.requirement("audit.order")
async def test_the_note_is_there_with_the_change_or_not_at_all() -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        ann = str((await make_agent(bench, "Ann")).agent)
        store.gate.fail_next(Unavailable())
        assert isinstance(await bench.call("suspend_agent", OPERATOR, agent_id=ann, reason="spam"), Refusal)
        assert await noted(bench) == []
        store.gate.fail_next(InDoubt(), applied=True)
        answer = await bench.call("suspend_agent", OPERATOR, agent_id=ann, reason="spam")
        assert isinstance(answer, Refusal)
        assert [each.kind for each in await noted(bench)] == ["suspend_agent"]


@pytest.mark.requirement("audit.told")
async def test_reports_and_key_changes_of_agents_are_noted(bench: Bench) -> None:
    made = await register(bench, "Ann")
    ann, bob = made["agent_id"], await make_agent(bench, "Bob")
    assert (await last(bench)).kind == "register_agent"
    assert (await last(bench)).subject == ann
    assert (await last(bench)).detail["public_jwk"]["kty"] == "OKP"
    await bench.call("report_agent", bob, target_agent_id=ann, category="spam", details="a secret of mine")
    event = await last(bench)
    assert (event.actor, event.kind, event.subject) == (bob.agent, "report_agent", ann)
    assert event.detail["document"].startswith("rp_")
    owner = await new_owner(bench)
    claimed = await verb(bench, "claim_agent", owner_id=owner, code=made["claim_code"])
    assert claimed["agent_id"] == ann
    event = await last(bench)
    assert (event.actor, event.kind, event.subject) == (owner, "claim_agent", ann)
    assert made["claim_code"] not in str(await noted(bench))
    assert "a secret of mine" not in str(await noted(bench))


async def verb(bench: Bench, name: str, caller: Caller = STRANGER, **params: Any) -> Any:
    answer = await bench.broker.signin(caller, name, json.dumps(params).encode())
    return answer if isinstance(answer, Refusal) else json.loads(msgspec.json.encode(answer))


@pytest.mark.requirement("audit.told", "audit.order")
async def test_desks_that_move_or_close_are_noted_by_the_key_that_said_so(bench: Bench) -> None:
    recovery, alfa, new = Party("ALFA"), await bench.open("ALFA"), Party("ALFA")
    before = len(await noted(bench))

    async def said(do: str, party: Party, **members: Any) -> None:
        params = party.statement(do, bench.broker.pk, bench.ts, code="ALFA", **members)
        if do == "move_desk":
            text = json.dumps(params["statement"], separators=(",", ":"), sort_keys=True).encode()
            params["new_sig"] = new.key.sign(text)
        for _ in range(2):  # the identical statement again is noted no second time
            answer = await bench.call(do, **params)
            assert not isinstance(answer, Refusal), answer
        assert params["sig"] not in str(await noted(bench))

    await said("move_desk", alfa, new_pk=new.pk)
    await said("close_desk", new)
    events = (await noted(bench))[before:]
    assert [(each.kind, each.actor, each.subject) for each in events] == [
        ("move_desk", alfa.pk, "ALFA"),
        ("close_desk", new.pk, "ALFA"),
    ]
    assert (events[0].detail["key"], events[0].detail["pk"]) == (alfa.pk, new.pk)
    assert recovery.pk not in str(events)


@pytest.mark.requirement("audit.told")
async def test_a_recovery_keys_move_is_noted_when_it_is_asked_for_and_when_it_happens(
    autojump_clock: Any,
) -> None:
    async with open_bench() as bench:
        recovery, new = Party("ALFA"), Party("ALFA")
        alfa = await bench.open("ALFA", recovery_pk=recovery.pk)
        before = len(await noted(bench))
        params = recovery.statement("move_desk", bench.broker.pk, bench.ts, code="ALFA", new_pk=new.pk)
        text = json.dumps(params["statement"], separators=(",", ":"), sort_keys=True).encode()
        assert not isinstance(await bench.call("move_desk", **params, new_sig=new.key.sign(text)), Refusal)
        bench.clock.step(25 * 3_600_000)
        await trio.sleep(61)
        events = (await noted(bench))[before:]
        assert [(each.kind, each.actor, each.detail["key"]) for each in events] == [
            ("move_desk", recovery.pk, alfa.pk),
            ("recovery_move", "broker", alfa.pk),
        ]
        assert events[1].detail["pk"] == new.pk


@pytest.mark.requirement("audit.told")
async def test_an_agent_that_nobody_claimed_is_noted_when_its_time_is_over(autojump_clock: Any) -> None:
    async with open_bench() as bench:
        made = await register(bench, "Ann")
        bench.clock.step(8 * 86_400_000)
        await trio.sleep(61)
        event = await last(bench)
        assert (event.kind, event.actor, event.subject) == ("agent_expired", "broker", made["agent_id"])


@pytest.mark.requirement("audit.refused")
async def test_refused_sign_ins_are_summed_each_minute_and_at_a_clean_stop(autojump_clock: Any) -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        for _ in range(3):
            await verb(bench, "failed_proof", kind="invalid_token")
        await trio.sleep(125)
        assert [(each.subject, each.detail["kind"], each.detail["count"]) for each in await noted(bench)] == [
            (STRANGER.address, "invalid_token", 3)
        ]
        await verb(bench, "failed_proof", kind="operator_token")
    async with open_bench(store=store) as bench:
        assert (await last(bench)).detail["kind"] == "operator_token"


@pytest.mark.requirement("audit.refused")
@pytest.mark.parametrize("way", WAYS)
async def test_sums_that_the_store_did_not_take_are_written_once_it_does(
    way: Way, autojump_clock: Any
) -> None:
    store = FlakyMemory()
    async with open_bench(store=store) as bench:
        await verb(bench, "failed_proof", kind="invalid_token")
        store.fail(way, lambda unit: bool(unit.puts))
        await trio.sleep(61)
        await verb(bench, "failed_proof", kind="invalid_token")
        await store.land() if way == "late" else None
        await trio.sleep(125)
        assert store.way is None, "it did not fail"
        assert [each.detail["count"] for each in await noted(bench)] == [1, 1]


@pytest.mark.requirement("audit.told")
async def test_what_changes_an_owners_rights_is_noted() -> None:
    old, new = "correct horse battery", "staple battery horse correct"
    async with open_bench(tuned(owners=msgspec.structs.asdict(CHEAP))) as bench:
        owner = (await verb(bench, "sign_up", email="ann@x.example", password=old))["owner_id"]
        params = {"owner_id": owner, "password": old, "new_password": new}
        answer = await verb(bench, "change_password", **params)
        assert not isinstance(answer, Refusal), answer
        event = await last(bench)
        assert (event.kind, event.actor, event.subject, event.detail) == ("change_password", owner, owner, {})
        assert isinstance(await verb(bench, "change_password", **params), Refusal)
        assert await last(bench) == event


@pytest.mark.requirement("audit.told", "audit.secrets")
async def test_consents_that_are_given_ended_and_stolen_are_noted_without_what_was_shown(
    bench: Bench,
) -> None:
    owner = await new_owner(bench)
    for end in ("revoke_grant", "end_grant", "stolen"):
        signed = await consent(bench, owner)
        client, event = signed.client_id, await last(bench)
        assert (event.kind, event.actor, event.detail["client_id"]) == ("decide_authorization", owner, client)
        assert str(event.subject).startswith("gr_")
        token = (await verb(bench, "redeem_code", **signed.redemption()))["refresh_token"]
        if end == "revoke_grant":
            await verb(bench, end, owner_id=owner, grant_id=event.subject)
        elif end == "end_grant":
            await verb(bench, end, client_id=client, refresh_token="gr_none.a.b")
            assert await last(bench) == event  # nothing was ended
            await verb(bench, end, client_id=client, refresh_token=token)
        else:
            for _ in range(2):
                await verb(bench, "refresh_grant", client_id=client, refresh_token=token)
        ended = await last(bench)
        assert ended.kind == ("refresh_token_shown_twice" if end == "stolen" else end)
        assert (ended.actor, ended.subject) == (
            {"revoke_grant": owner, "end_grant": client, "stolen": "broker"}[end],
            event.subject,
        )
        for secret in (signed.code, token):
            assert secret not in str(await noted(bench))


@pytest.mark.requirement("audit.secrets")
def test_each_argument_of_an_audited_tool_is_decided_on() -> None:
    tools = [each for space in ("public", "signin", "operator") for each in collect(space).values()]
    names = {name for each in tools if each.audited for name in each.params} - {"idempotency_key"}
    assert names - auditing.NOTED - auditing.SECRET == set(), "is it noted, or never?"
    assert not auditing.NOTED & auditing.SECRET


@pytest.mark.requirement("audit.secrets")
async def test_no_password_invitation_or_address_of_an_owner_is_noted() -> None:
    async with open_bench(tuned(owners=msgspec.structs.asdict(CHEAP))) as bench:
        invited = await bench.call("create_owner", OPERATOR, email="ann@x.example", invitation=True)
        params = {"email": "bob@x.example", "password": "correct horse battery"}
        made = await bench.call("create_owner", OPERATOR, **params)
        events = str(await noted(bench))
    assert invited["owner_id"] in events
    assert made["owner_id"] in events
    for secret in ("x.example", "correct horse", *(str(v) for k, v in invited.items() if "invit" in k)):
        assert secret not in events


@pytest.mark.requirement("audit.secrets")
@pytest.mark.parametrize(("name", "make"), REQUESTS)
async def test_no_secret_of_an_audited_tool_is_in_a_row(name: str, make: Any) -> None:
    tool = collect("operator" if name.startswith("operator.") else "public")[name.removeprefix("operator.")]
    if not tool.audited:
        return
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        caller, params = await make(bench)
        before = len(await noted(bench))
        answer = await bench.call(tool.name, caller, **params)
        assert not isinstance(answer, Refusal), answer
        assert len(await noted(bench)) > before, "it is audited, and no row says so"
        rows = "".join(document.doc.decode() for (kind, _), document in store._docs.items() if kind == ROW)
        secrets = [str(answer[member]) for member in tool.secrets if member in answer]
        given = [value for member, value in params.items() if member in auditing.SECRET]
        secrets += [str(value.get("sig", value) if isinstance(value, dict) else value) for value in given]
        secrets += [each for value in given if isinstance(value, dict) for each in map(str, value.values())]
        for secret in secrets:
            assert secret not in rows
