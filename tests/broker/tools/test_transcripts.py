"""Reading: pages, lists, receipts, and the dry run that writes nothing."""

import json
from typing import Any

import msgspec
import pytest
import trio

from broker.app import Caller
from broker.wire import canonical
from broker.wire.chain import verify_transcript
from broker.wire.keys import verify
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import STRANGER, Bench, Party, code, open_bench, tuned


@pytest.mark.requirement("tools.read-conv")
async def test_a_transcript_is_read_in_pages_and_verifies_offline(bench: Bench) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    for _ in range(9):
        await line.send("CHAT", {"text": "é\u2028"})
    rows: list[Any] = []
    after = -1
    while True:
        page = await bench.call("read_conv", conv=line.conv, after=after, limit=4)
        rows.extend(page["rows"])
        if "next" not in page:
            break
        after = page["next"]
    assert [row["n"] for row in rows] == list(range(11))
    assert page["head"]["n"] == 10
    verdict = verify_transcript([msgspec.json.encode(row) for row in rows])
    assert verdict.ok, verdict.broken


@pytest.mark.requirement("tools.read-conv")
@pytest.mark.parametrize(
    "params", [{"after": -2}, {"limit": 0}, {"limit": 501}, {"after": 1.5}, {"after": "1"}]
)
async def test_pages_out_of_bounds_are_refused(bench: Bench, params: dict[str, Any]) -> None:
    line = await bench.dial(await bench.open("ALFA"), await bench.open("BRAV"))
    answer = await bench.call("read_conv", conv=line.conv, **params)
    assert (code(answer), answer.detail["path"]) == ("bad_request", next(iter(params)))
    assert (await bench.call("read_conv", conv=line.conv, after=10**9))["rows"] == []


@pytest.mark.requirement("tools.read-conv")
async def test_a_page_holds_no_more_than_256_kib_and_never_nothing(autojump_clock: Any) -> None:
    async with open_bench(tuned(limits={"envelopes": 1000})) as bench:
        line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
        for _ in range(60):
            await line.send("CHAT", {"text": "x" * 8000})
        rows: list[Any] = []
        after = -1
        while True:
            page = await bench.call("read_conv", conv=line.conv, after=after, limit=500)
            assert 0 < len(json.dumps(page["rows"])) < 300_000
            rows.extend(page["rows"])
            if "next" not in page:
                break
            after = page["next"]
        assert [row["n"] for row in rows] == list(range(62))
        follow = line.caller.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 60)
        events: list[Any] = []
        cursor = "0"
        while True:
            found = await bench.call("wait_for_events", after=cursor, limit=500, **follow)
            if not found["events"]:
                break
            assert len(json.dumps(found["events"])) < 300_000
            events.extend(found["events"])
            cursor = found["cursor"]
        assert [event["n"] for event in events] == list(range(62))


@pytest.mark.requirement("tools.parties-mode")
async def test_in_parties_mode_a_foreign_id_starts_no_actor(autojump_clock: Any) -> None:
    settings = tuned(transcripts="parties")  # type: ignore[arg-type]  # a plain setting
    async with open_bench(settings) as bench:
        line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
        other = await bench.open("CHAR")
        await trio.sleep(120)
        assert bench.broker.statistics().actors["conversation"] == 0
        foreign = line.next("RFQ", by=other)
        assert code(await bench.call("send_env", **foreign)) == "unknown_conv"
        await bench.call("canonicalize", envelope=foreign["envelope"])
        assert code(await bench.call("read_conv", conv=line.conv)) == "unknown_conv"
        assert bench.broker.statistics().actors["conversation"] == 0


@pytest.mark.requirement("tools.canonicalize")
async def test_the_dry_run_foretells_what_send_call_refuses(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    call = bench.calling(alfa, brav)["envelope"]
    for change, path in (({"type": "RFQ"}, "type"), ({"body": {"code_to": "BRAV"}}, "body.code_from")):
        dry = await bench.call("canonicalize", envelope={**call, **change})
        assert [(refusal["code"], refusal["path"]) for refusal in dry["refusals"]] == [("bad_envelope", path)]
    await bench.call("suspend_desk", Caller(operator=True), code="ALFA")
    dry = await bench.call("canonicalize", envelope=call)
    assert [refusal["code"] for refusal in dry["refusals"]] == ["suspended"]


@pytest.mark.requirement("tools.list-convs")
async def test_a_keys_conversations_are_listed_newest_first_by_state_and_page(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    ended = await bench.connect(alfa, brav)
    await ended.send("END", {"reason": "done"})
    opened = await bench.connect(alfa, brav)
    inbound = await bench.dial(brav, alfa)
    follow = alfa.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 60)

    async def convs(**params: Any) -> list[str]:
        return [conv["conv"] for conv in (await bench.call("list_convs", **follow, **params))["convs"]]

    assert await convs() == [inbound.conv, opened.conv, ended.conv]
    assert await convs(state="open") == [opened.conv]
    assert await convs(state="ringing") == [inbound.conv]
    assert await convs(state="ended") == [ended.conv]
    first = await bench.call("list_convs", **follow, limit=2)
    assert await convs(after=first["next"]) == [ended.conv]
    assert code(await bench.call("list_convs")) == "unauthenticated"


@pytest.mark.requirement("tools.receipt")
async def test_a_receipt_is_the_wires_signature_over_what_it_accepted(bench: Bench) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    row = (await bench.call("read_conv", conv=line.conv))["rows"][1]
    answer = await bench.call("receipt", conv=line.conv, n=1)
    assert answer["receipt"] == {
        "do": "receipt", "wire": bench.broker.pk, "conv": line.conv, "n": 1,
        "sig": row["sig"], "chain": row["chain"], "accepted_at": row["accepted_at"],
    }  # fmt: skip
    assert verify(bench.broker.pk, canonical.encode(answer["receipt"]), answer["sig"])
    assert code(await bench.call("receipt", conv=line.conv, n=9)) == "not_found"


@pytest.mark.requirement("tools.canonicalize")
async def test_the_dry_run_tells_the_bytes_what_would_be_refused_and_what_is_due(bench: Bench) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    good = line.next("RFQ")["envelope"]
    dry = await bench.call("canonicalize", envelope=good)
    assert dry["canonical"] == canonical.encode(good).decode()
    assert dry["due"] == {"n": 2, "prev_sig": line.sig}
    assert "refusals" not in dry
    wrong = {**good, "n": 7, "ts": 5}
    dry = await bench.call("canonicalize", envelope=wrong)
    assert [refusal["code"] for refusal in dry["refusals"]] == ["conflict", "clock_skew"]
    dry = await bench.call("canonicalize", envelope={**good, "type": "rfq"})
    assert dry["refusals"][0]["path"] == "type"
    assert len((await bench.call("read_conv", conv=line.conv))["rows"]) == 2


@pytest.mark.requirement("tools.canonicalize")
async def test_the_dry_run_of_a_call_looks_at_the_desks_and_the_conv(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    call = bench.calling(alfa, brav)["envelope"]
    dry = await bench.call("canonicalize", envelope=call)
    assert dry["due"]["prev_sig"] == call["prev_sig"]
    assert "refusals" not in dry
    nobody = bench.calling(alfa, Party("ZULU"))["envelope"]
    dry = await bench.call("canonicalize", envelope=nobody)
    assert [refusal["code"] for refusal in dry["refusals"]] == ["unknown_desk"]
    line = await bench.dial(alfa, brav)
    taken = bench.calling(brav, alfa, conv=line.conv)["envelope"]
    dry = await bench.call("canonicalize", envelope=taken)
    assert [refusal["code"] for refusal in dry["refusals"]] == ["conv_exists"]


@pytest.mark.requirement("tools.parties-mode")
async def test_in_parties_mode_the_dry_run_tells_a_stranger_nothing_of_the_conversation(
    autojump_clock: Any,
) -> None:
    settings = tuned(transcripts="parties")  # type: ignore[arg-type]  # a plain setting
    async with open_bench(settings) as bench:
        line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
        guess = line.next("RFQ", n=9)["envelope"]
        missing = {**guess, "conv": "f" * 16}
        known, unknown = [
            await bench.call("canonicalize", envelope=envelope) for envelope in (guess, missing)
        ]
        assert known.keys() == unknown.keys() == {"canonical", "sha256"}
        follow = line.called.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 60)
        told = await bench.call("canonicalize", envelope=guess, **follow)
        assert told["due"]["n"] == 2


@pytest.mark.requirement("limits.guessing")
async def test_twenty_unknown_ids_stop_reads_of_unknown_ids_and_of_no_others(
    bench: Bench, autojump_clock: Any
) -> None:
    line = await bench.dial(await bench.open("ALFA"), await bench.open("BRAV"))
    answers = [code(await bench.call("read_conv", STRANGER, conv=f"{i:016x}")) for i in range(100, 125)]
    assert answers == ["unknown_conv"] * 20 + ["rate_limited"] * 5
    assert code(await bench.call("read_conv", STRANGER, conv=line.conv)) == "accepted"
    await trio.sleep(10)
    assert code(await bench.call("read_conv", STRANGER, conv="f" * 16)) == "unknown_conv"


@pytest.mark.requirement("doors.transcripts")
async def test_where_transcripts_are_the_parties_an_agents_token_reads_those_of_its_keys() -> None:
    async with open_bench(tuned(transcripts="parties")) as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        line = await bench.connect(alfa, brav)
        for party in (alfa, brav):
            agent = await make_agent(bench, party.code, key=party.key)
            assert len((await bench.call("read_conv", agent, conv=line.conv))["rows"]) == 2
            assert not isinstance(await bench.call("receipt", agent, conv=line.conv, n=1), Refusal)
            dry = await bench.call("canonicalize", agent, envelope=line.next("SAY")["envelope"])
            assert dry["due"]["n"] == 2
            poor = msgspec.structs.replace(agent, scopes=frozenset({"profile"}))
            assert code(await bench.call("read_conv", poor, conv=line.conv)) == "unknown_conv"
        stranger = await make_agent(bench, "carol")
        assert code(await bench.call("read_conv", stranger, conv=line.conv)) == "unknown_conv"
        assert "due" not in await bench.call("canonicalize", stranger, envelope=line.next("SAY")["envelope"])
