"""What operators see of the wire, and do on it."""

import json
from typing import Any

import pytest

from broker.actors.calls import stream_name
from broker.wire.chain import verify_transcript
from tests.support.agents import make_agent
from tests.support.broker import Bench, Party, code
from tests.support.registration import OPERATOR


async def desks(bench: Bench, **params: Any) -> list[str]:
    return [each["code"] for each in (await bench.call("list_desks", OPERATOR, **params))["desks"]]


@pytest.mark.requirement("moderation.desks")
async def test_desks_are_listed_by_what_they_are(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = [await bench.open(each) for each in ("ALFA", "ALTO", "ZULU")]
    agent = await make_agent(bench, "Ann", key=second.key)
    await bench.call("suspend_desk", OPERATOR, code="ZULU")
    with bench.broker._services.presence.attach(first.pk):
        assert await desks(bench) == ["ALFA", "ALTO", "ZULU"]
        assert await desks(bench, online_only=True) == ["ALFA"]
        assert await desks(bench, suspended=True) == ["ZULU"]
        assert await desks(bench, prefix="AL") == ["ALFA", "ALTO"]
        shown = (await bench.call("list_desks", OPERATOR, prefix="ALTO"))["desks"][0]
        assert (shown["pk"], shown["agent_id"], shown["online"]) == (second.pk, agent.agent, False)
    page = await bench.call("list_desks", OPERATOR, limit=2)
    assert await desks(bench, after=page["next"]) == ["ZULU"]
    await bench.call("release_desk", OPERATOR, code="ZULU")
    assert await desks(bench, suspended=True) == []
    monkeypatch.setattr("broker.tools.paging.LOOKED_AT", 2)
    whole = await bench.call("list_desks", OPERATOR, prefix="ZULU")
    assert [each["code"] for each in whole["desks"]] == ["ZULU"], (
        "a whole code is not looked for among the others"
    )
    assert "next" not in whole
    assert await desks(bench, prefix="ZULU", online_only=True) == await desks(bench, prefix="ZULA") == []
    page = await bench.call("list_desks", OPERATOR, prefix="Z")
    assert page["desks"] == []
    assert await desks(bench, prefix="Z", after=page["next"]) == ["ZULU"]
    closing = third.statement("close_desk", bench.broker.pk, bench.ts, code="ZULU")
    await bench.call("close_desk", **closing)
    assert await desks(bench, after=page["next"]) == []


@pytest.mark.requirement("moderation.calls")
async def test_calls_are_listed_while_they_are_in_progress(bench: Bench) -> None:
    ann, bob = await bench.open("ANNE"), await bench.open("BOBB")
    line = await bench.connect(ann, bob)
    await line.send("SAY")
    ringing = await bench.dial(bob, ann)

    async def calls(**params: Any) -> list[tuple[str, str, int]]:
        found = (await bench.call("list_calls", OPERATOR, **params))["calls"]
        return [(each["conv"], each["phase"], each["envelopes"]) for each in found]

    assert await calls() == [(line.conv, "open", 3), (ringing.conv, "ringing", 1)]
    page = await bench.call("list_calls", OPERATOR, limit=1)
    (shown,) = page["calls"]
    assert (shown["code_from"], shown["code_to"]) == ("ANNE", "BOBB")
    assert shown["opened_at"] <= shown["answered_at"] <= shown["last_at"]
    assert await calls(after=page["next"]) == [(ringing.conv, "ringing", 1)]
    await line.send("END")
    assert await calls() == [(ringing.conv, "ringing", 1)]


async def ends_of(bench: Bench, party: Party) -> list[Any]:
    events = await bench.store.events(stream_name(party.pk), 0)
    return [json.loads(each.data) for each in events if each.kind == "end"]


@pytest.mark.requirement("moderation.end-call")
@pytest.mark.parametrize("answered", [True, False])
async def test_an_operators_end_is_the_wires_and_both_get_it(bench: Bench, answered: bool) -> None:
    ann, bob = await bench.open("ANNE"), await bench.open("BOBB")
    line = await (bench.connect if answered else bench.dial)(ann, bob)
    over = await bench.call("end_call", OPERATOR, conv=line.conv, note="a wrong number")
    assert (over["conv"], over["n"], over["reason"]) == (line.conv, line.n + 1, "operator")
    assert await bench.call("end_call", OPERATOR, conv=line.conv, note="again") == over
    for party in (ann, bob):
        (event,) = await ends_of(bench, party)
        assert event["envelope"]["from"] == bench.broker.pk
        assert event["envelope"]["body"] == {"reason": "operator", "note": "a wrong number"}
    told = await line.send("SAY")
    assert (code(told), told.detail["reason"]) == ("conv_ended", "operator")
    rows = (await bench.call("read_conv", conv=line.conv))["rows"]
    lines = [json.dumps(each).encode() for each in rows]
    assert verify_transcript(iter(lines), {bench.broker.pk}).broken is None
    assert (await bench.call("list_calls", OPERATOR))["calls"] == []


@pytest.mark.requirement("moderation.end-call", "moderation.wrong-ids")
async def test_a_call_that_ended_by_itself_stays_so_and_a_missing_one_is_missing(bench: Bench) -> None:
    line = await bench.connect(await bench.open("ANNE"), await bench.open("BOBB"))
    await line.send("END", {"why": "done"})
    over = await bench.call("end_call", OPERATOR, conv=line.conv)
    assert (over["n"], over["reason"]) == (line.n, None)
    missing = await bench.call("end_call", OPERATOR, conv="f" * 16)
    assert (code(missing), missing.detail["path"]) == ("unknown_conv", "conv")
    assert "list_calls" in missing.message
    missing = await bench.call("suspend_desk", OPERATOR, code="NONE")
    assert (code(missing), missing.detail["path"]) == ("unknown_desk", "code")
    assert "list_desks" in missing.message
