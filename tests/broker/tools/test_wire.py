"""send_call and send_env: the order of checks, limits, retries, the wire's own END."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.wire.envelope import bootstrap
from broker.wire.ids import ConvId
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.broker import ANYONE, START_MS, Bench, Party, code, open_bench, tuned

VECTORS = Path(__file__).parents[2] / "vectors" / "wire"
KEYS = json.loads((VECTORS / "keys.json").read_text())
REFUSED = json.loads((VECTORS / "refused.json").read_text())


async def load(bench: Bench, case: dict[str, Any]) -> None:
    """Bring a vector's conversation into the broker."""
    seeds = {KEYS[name]["pk"]: KEYS[name]["seed"] for name in ("alpha", "bravo")}
    for desk, pk in case["so_far"]["desks"].items():
        party = Party(desk, SigningKey.from_seed(seeds[pk]))
        opened = await bench.call(
            "open_desk", **party.statement("open_desk", bench.broker.pk, bench.ts, code=desk)
        )
        assert not isinstance(opened, Refusal), opened
    for row in case["so_far"]["rows"]:
        envelope = row["envelope"]
        params = {"from_pk": envelope["from"], "sig": row["sig"], "envelope": envelope}
        if row["n"] == 0:
            answer = await bench.call("send_call", to_code=envelope["body"]["code_to"], **params)
        else:
            answer = await bench.call("send_env", conv=envelope["conv"], n=row["n"], **params)
        assert not isinstance(answer, Refusal), answer
        assert answer["chain"] == row["chain"]


@pytest.mark.requirement("order.vectors", "refusals.codes")
@pytest.mark.parametrize("case", REFUSED, ids=[case["name"] for case in REFUSED])
async def test_each_refused_vector_gets_its_code_and_writes_nothing(
    case: dict[str, Any], bench: Bench, autojump_clock: Any
) -> None:
    await load(bench, case)
    conv = case["so_far"]["conv"]
    before = await bench.call("read_conv", conv=conv)
    submit = case["submit"]
    n = len(case["so_far"]["rows"])
    try:
        stated = json.loads(submit["envelope_json"]).get("n", n)
        n = stated if isinstance(stated, int) and not isinstance(stated, bool) and stated > 0 else n
    except (ValueError, RecursionError):
        pass
    params = '{{"conv":"{}","n":{},"from_pk":"{}","sig":"{}","envelope":{}}}'.format(
        conv, n, submit["from_pk"], submit["sig"], submit["envelope_json"]
    )
    answer = await bench.broker.call(ANYONE, "send_env", params.encode())
    assert code(answer) == case["expect"], answer
    if case["expect"] == "bad_envelope":
        assert "path" in answer.detail
    assert await bench.call("read_conv", conv=conv) == before


@pytest.mark.requirement("call.life")
async def test_a_whole_deal_is_accepted_and_verifies(bench: Bench, autojump_clock: Any) -> None:
    caller, called = await bench.open("ALFA"), await bench.open("BRAV")
    line = await bench.connect(caller, called)
    for type in ("RFQ", "QUOTE", "HIT", "CONFIRM", "CONFIRM", "END"):
        assert code(await line.send(type, {"px": "1.0842"})) == "accepted"
    transcript = await bench.call("read_conv", conv=line.conv)
    assert transcript["state"] == "ended"
    assert [row["n"] for row in transcript["rows"]] == list(range(8))
    assert code(await line.send("RFQ")) == "conv_ended"


@pytest.mark.requirement("retries.replay")
async def test_the_same_bytes_again_give_the_stored_acknowledgement_also_after_end(
    bench: Bench, autojump_clock: Any
) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    params = line.next("RFQ")
    first = await bench.call("send_env", **params)
    line.n, line.sig = params["n"], params["sig"]
    await line.send("END")
    again = await bench.call("send_env", **params)
    assert again == {**first, "replayed": True}


@pytest.mark.requirement("retries.replay", "order.replay-first")
async def test_a_replayed_call_answers_even_with_an_old_ts_and_a_closed_desk(
    bench: Bench, autojump_clock: Any
) -> None:
    caller, called = await bench.open("ALFA"), await bench.open("BRAV")
    params = bench.calling(caller, called)
    first = await bench.call("send_call", **params)
    await bench.call("close_desk", **called.statement("close_desk", bench.broker.pk, bench.ts, code="BRAV"))
    await trio.sleep(1000)
    assert await bench.call("send_call", **params) == {**first, "replayed": True}


@pytest.mark.requirement("order.call-desks")
async def test_a_call_to_an_unknown_desk_or_an_old_key_says_so(bench: Bench, autojump_clock: Any) -> None:
    caller, called = await bench.open("ALFA"), await bench.open("BRAV")
    nobody = Party("ZULU")
    assert code(await bench.call("send_call", **bench.calling(caller, nobody))) == "unknown_desk"
    assert code(await bench.call("send_call", **bench.calling(nobody, called))) == "unknown_desk"
    impostor = Party("ALFA")
    answer = await bench.call("send_call", **bench.calling(impostor, called))
    assert (code(answer), answer.detail["path"]) == ("bad_envelope", "body.code_from")
    old = Party("BRAV")
    answer = await bench.call("send_call", **bench.calling(caller, old))
    assert (code(answer), answer.detail["path"], answer.detail["pk"]) == ("bad_envelope", "to", called.pk)


@pytest.mark.requirement("order.params-agree")
@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"to_code": "ALFA"}, "body.code_to"),
        ({"from_pk": "0" * 64}, "from"),
    ],
)
async def test_params_that_disagree_with_the_call_name_the_member(
    change: dict[str, Any], path: str, bench: Bench, autojump_clock: Any
) -> None:
    caller, called = await bench.open("ALFA"), await bench.open("BRAV")
    answer = await bench.call("send_call", **{**bench.calling(caller, called), **change})
    assert (code(answer), answer.detail["path"]) == ("bad_envelope", path)


@pytest.mark.requirement("order.params-agree")
async def test_a_call_for_another_wire_is_refused(bench: Bench, autojump_clock: Any) -> None:
    caller, called = await bench.open("ALFA"), await bench.open("BRAV")
    answer = await bench.call("send_call", **bench.calling(caller, called, wire="f" * 64))
    assert (code(answer), answer.detail["path"]) == ("bad_envelope", "body.wire")


@pytest.mark.requirement("order.conv-exists")
async def test_a_taken_conv_is_conflict_for_its_caller_and_conv_exists_for_others(
    bench: Bench, autojump_clock: Any
) -> None:
    caller, called, other = await bench.open("ALFA"), await bench.open("BRAV"), await bench.open("CHAR")
    line = await bench.dial(caller, called)
    answer = await bench.call("send_call", **bench.calling(caller, called, conv=line.conv, again=1))
    assert (code(answer), answer.detail["head"]["n"], answer.detail["rebuild"]) == ("conflict", 0, True)
    assert (
        code(await bench.call("send_call", **bench.calling(other, called, conv=line.conv))) == "conv_exists"
    )
    await line.send("END")
    assert (
        code(await bench.call("send_call", **bench.calling(caller, called, conv=line.conv, x=2)))
        == "conv_ended"
    )


@pytest.mark.requirement("order.nothing-before-signature")
async def test_a_stranger_learns_nothing_of_a_conversations_state(bench: Bench, autojump_clock: Any) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    params = line.next("RFQ", n=9)
    params["sig"] = "0" * 128
    answer = await bench.call("send_env", **params)
    assert code(answer) == "bad_signature"
    assert "head" not in answer.detail
    assert answer.detail["canonical"].startswith('{"body":')


@pytest.mark.requirement("call.turns")
async def test_end_is_taken_from_either_party_at_any_time(bench: Bench, autojump_clock: Any) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    await line.send("RFQ")
    assert code(await line.send("RFQ", by=line.caller)) == "out_of_turn"
    assert code(await line.send("END", by=line.caller)) == "accepted"


@pytest.mark.requirement("call.two-at-once")
async def test_when_two_write_the_same_n_the_first_stands_and_the_other_hears_of_the_head(
    bench: Bench,
) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    ends = [line.next("END", {"by": who}, by=party) for who, party in enumerate((line.caller, line.called))]
    answers: list[Any] = []

    async def send(params: dict[str, Any]) -> None:
        answers.append(await bench.call("send_env", **params))

    async with trio.open_nursery() as nursery:
        for params in ends:
            nursery.start_soon(send, params)
    assert sorted(code(answer) for answer in answers) == ["accepted", "conv_ended"]
    rows = (await bench.call("read_conv", conv=line.conv))["rows"]
    assert len(rows) == 3


@pytest.mark.requirement("order.clock")
async def test_ts_in_milliseconds_is_refused_with_the_wires_time_and_a_hint(
    bench: Bench, autojump_clock: Any
) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    for ts, skew in ((bench.ts + 301, 301), (bench.ts - 301, -301)):
        answer = await bench.call("send_env", **line.next("RFQ", ts=ts))
        assert (code(answer), answer.detail["skew"], answer.detail["wire_ts"]) == (
            "clock_skew",
            skew,
            bench.ts,
        )
    answer = await bench.call("send_env", **line.next("RFQ", ts=bench.ts * 1000))
    assert "milliseconds" in answer.detail["hint"]
    assert code(await bench.call("send_env", **line.next("RFQ", ts=bench.ts + 300))) == "accepted"


@pytest.mark.requirement("call.no-answer")
async def test_a_call_that_nobody_answers_is_ended_by_the_wire_after_thirty_seconds(
    bench: Bench, autojump_clock: Any
) -> None:
    line = await bench.dial(await bench.open("ALFA"), await bench.open("BRAV"))
    await trio.sleep(29.9)
    assert (await bench.call("read_conv", conv=line.conv))["state"] == "ringing"
    await trio.sleep(0.2)
    transcript = await bench.call("read_conv", conv=line.conv)
    end = transcript["rows"][-1]
    assert end["envelope"]["body"] == {"reason": "no_answer"}
    assert end["envelope"]["from"] == bench.broker.pk
    assert end["envelope"]["to"] == line.called.pk
    assert end["accepted_at"] == START_MS + 30_000
    assert code(await line.send("PICKUP")) == "conv_ended"


@pytest.mark.requirement("call.idle")
async def test_an_idle_conversation_is_ended_an_hour_after_its_last_envelope(
    bench: Bench, autojump_clock: Any
) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    await trio.sleep(3000)
    await line.send("RFQ")
    await trio.sleep(3599)
    assert (await bench.call("read_conv", conv=line.conv))["state"] == "open"
    await trio.sleep(2)
    end = (await bench.call("read_conv", conv=line.conv))["rows"][-1]
    assert end["envelope"]["body"] == {"reason": "idle"}
    assert end["accepted_at"] == START_MS + 6_600_000


@pytest.mark.requirement("call.restart-ends-nothing")
async def test_a_restart_ends_no_call_timers_begin_again_when_the_wire_is_ready(autojump_clock: Any) -> None:
    async with open_bench() as bench:
        line = await bench.dial(await bench.open("ALFA"), await bench.open("BRAV"))
    await trio.sleep(7200)
    async with open_bench(store=bench.store, clock=bench.clock) as again:
        line.bench = again
        await trio.sleep(29)
        assert (await again.call("read_conv", conv=line.conv))["state"] == "ringing"
        await trio.sleep(1.5)
        assert (await again.call("read_conv", conv=line.conv))["state"] == "ended"


@pytest.mark.requirement("tools.parties-mode")
async def test_with_parties_mode_a_transcript_looks_missing_to_others(autojump_clock: Any) -> None:
    async with open_bench(tuned(transcripts="parties")) as bench:  # type: ignore[arg-type]  # a plain setting
        caller, called, other = await bench.open("ALFA"), await bench.open("BRAV"), await bench.open("CHAR")
        line = await bench.connect(caller, called)
        assert code(await bench.call("read_conv", conv=line.conv)) == "unknown_conv"
        follow = other.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 60)
        assert code(await bench.call("read_conv", conv=line.conv, **follow)) == "unknown_conv"
        follow = called.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 60)
        assert code(await bench.call("read_conv", conv=line.conv, **follow)) == "accepted"
        assert code(await bench.call("send_env", **line.next("RFQ", by=other))) == "unknown_conv"
        dry = await bench.call("canonicalize", envelope=line.next("RFQ")["envelope"])
        assert "due" not in dry


@pytest.mark.requirement("order.suspended")
async def test_a_suspended_desk_dials_nobody_and_may_only_hang_up(bench: Bench, autojump_clock: Any) -> None:
    caller, called = await bench.open("ALFA"), await bench.open("BRAV")
    line = await bench.connect(caller, called)
    operator = type(ANYONE)(operator=True)
    with pytest.raises(LookupError):
        await bench.call("suspend_desk", code="ALFA")
    assert code(await bench.call("suspend_desk", operator, code="ALFA")) == "accepted"
    assert code(await bench.call("send_call", **bench.calling(caller, called))) == "suspended"
    assert code(await bench.call("send_call", **bench.calling(called, caller))) == "suspended"
    assert code(await line.send("RFQ")) == "suspended"
    assert code(await bench.call("release_desk", operator, code="ALFA")) == "accepted"
    assert code(await line.send("RFQ")) == "accepted"
    await bench.call("suspend_desk", operator, code="ALFA")
    assert code(await line.send("END", by=caller)) == "accepted"


@pytest.mark.requirement("envelope.conv-never-reused")
async def test_a_conv_that_retention_removed_stays_taken(autojump_clock: Any) -> None:
    async with open_bench(tuned(store={"conversations_days": 7})) as bench:
        line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
        await line.send("END")
        bench.clock.step(8 * 86_400_000)
        await trio.sleep(61)
        assert code(await bench.call("read_conv", conv=line.conv)) == "unknown_conv"
        answer = await bench.call("send_call", **bench.calling(line.caller, line.called, conv=line.conv))
        assert code(answer) == "conv_exists"


@pytest.mark.requirement("envelope.first-prev-sig")
async def test_a_calls_prev_sig_is_the_hash_of_its_conv(bench: Bench, autojump_clock: Any) -> None:
    caller, called = await bench.open("ALFA"), await bench.open("BRAV")
    conv = bench.new_conv()
    body = {"code_from": "ALFA", "code_to": "BRAV"}
    params = caller.envelope(conv, 0, "CALL", called.pk, bench.ts, bootstrap(ConvId("f" * 16)), body)
    del params["conv"], params["n"]
    answer = await bench.call("send_call", to_code="BRAV", **params)
    assert code(answer) == "bad_prev_sig"
