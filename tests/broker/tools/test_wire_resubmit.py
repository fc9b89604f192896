"""After a restore the parties submit the lost tail again (wire.md, Retries, last point)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio

from broker.core.conversation import Restored
from broker.store.memory import MemoryStore
from broker.store.port import Put, Unit
from broker.wire.chain import verify_transcript
from broker.wire.envelope import bootstrap, build
from broker.wire.ids import ConvId
from broker.wire.keys import SigningKey
from tests.support.broker import Bench, Line, Party, code, open_bench, tuned

LOST_S = 1000
"""Seconds between the backup and the restore: far beyond what the clock check lets pass."""
DAY_S = 86_400
KEY = SigningKey.generate()
Settings = dict[str, Any]


def lost_ts(line: Line) -> int:
    """A second between the backup and the restore, long before now."""
    return line.bench.ts - LOST_S + 10


@asynccontextmanager
async def restored(
    say: Callable[[Bench], Awaitable[Line]], after_s: float = 0.0, lost_s: float = LOST_S, **settings: Any
) -> AsyncIterator[tuple[Bench, Line]]:
    """What `say` wrote is the backup; the broker goes on lost_s later on the restored store, `after_s` after that."""
    store, tuning = MemoryStore(), tuned(**settings)
    async with open_bench(tuning, store, key=KEY) as bench:
        line = await say(bench)
        clock, backup_at = bench.clock, bench.clock.now_ms()
    await trio.sleep(lost_s)
    mark = msgspec.json.encode(Restored(backup_at, clock.now_ms()))
    await store.commit(Unit(puts=(Put("wire", "restored", 0, mark),)))
    await trio.sleep(after_s)
    async with open_bench(tuning, store, clock, KEY) as bench:
        line.bench = bench
        yield bench, line


async def talk(bench: Bench) -> Line:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    await line.send("RFQ", {"qty": "1"})
    return line


def lost(line: Line, type: str, **changes: Any) -> dict[str, Any]:
    """The params of the next envelope as it was signed before the restore; the line goes on as if it were there."""
    params = line.next(type, **{"ts": lost_ts(line), **changes})
    line.n, line.sig = params["n"], params["sig"]
    return params


def by_wire(line: Line, key: SigningKey = KEY, type: str = "END", **changes: Any) -> dict[str, Any]:
    """The wire's own END as it was written before the restore."""
    members: dict[str, Any] = {
        "conv": ConvId(line.conv),
        "n": line.n + 1,
        "type": type,
        "sender": key.pk,
        "to": line.called.pk,
        "ts": lost_ts(line),
        "prev_sig": line.sig,
        "body": {"reason": "idle"},
    }
    text = build(**{**members, **changes})
    return {
        "conv": line.conv,
        "n": line.n + 1,
        "from_pk": key.pk,
        "sig": key.sign(text),
        "envelope": msgspec.json.decode(text),
    }


async def rows(bench: Bench, line: Line) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await bench.call("read_conv", conv=line.conv, limit=500))["rows"]
    return found


@pytest.mark.requirement("retries.resubmit")
async def test_the_lost_tail_of_both_parties_and_the_wire_is_taken_in_order(autojump_clock: Any) -> None:
    async with restored(talk) as (bench, line):
        before = len(await rows(bench, line))
        for params in [lost(line, "QUOTE"), lost(line, "HIT"), lost(line, "CONFIRM")]:
            answer = await bench.call("send_env", **params)
            assert code(answer) == "accepted", answer
            assert answer["accepted_at"] == bench.clock.now_ms()
        assert code(await bench.call("send_env", **by_wire(line))) == "accepted"
        found = await bench.call("read_conv", conv=line.conv)
        assert (found["state"], found["head"]["n"]) == ("ended", before + 3)
        marks = [row.get("resubmitted", False) for row in found["rows"]]
        assert marks == [False] * before + [True] * 4
        assert verify_transcript(found["rows"], [KEY.pk]).ok


@pytest.mark.requirement("retries.resubmit")
async def test_a_ring_is_picked_up_again_and_takes_its_place(autojump_clock: Any) -> None:
    async def ring(bench: Bench) -> Line:
        return await bench.dial(await bench.open("ALFA"), await bench.open("BRAV"))

    async with restored(ring) as (bench, line):
        assert code(await bench.call("send_env", **lost(line, "PICKUP"))) == "accepted"
        found = await bench.call("read_conv", conv=line.conv)
        assert (found["state"], found["rows"][1]["resubmitted"]) == ("open", True)


@pytest.mark.requirement("retries.resubmit-event")
async def test_both_parties_hear_of_what_was_resubmitted(autojump_clock: Any) -> None:
    async with restored(talk) as (bench, line):
        await bench.call("send_env", **lost(line, "QUOTE"))
        for party in (line.caller, line.called):
            [last] = (await bench.store.events(f"pk:{party.pk}", 0, 100))[-1:]
            event = msgspec.json.decode(last.data)
            assert (last.kind, event["n"], event["resubmitted"]) == ("env", line.n, True)


@pytest.mark.requirement("retries.resubmit-limits")
async def test_what_is_resubmitted_spends_no_token(autojump_clock: Any) -> None:
    async with restored(talk, limits={"envelopes": 3}) as (bench, line):
        for _ in range(8):
            assert code(await bench.call("send_env", **lost(line, "CHAT"))) == "accepted"
        answers = [code(await line.send("CHAT")) for _ in range(4)]
        assert answers == ["accepted"] * 3 + ["rate_limited"]


@pytest.mark.requirement("retries.resubmit-limits")
async def test_it_needs_none_where_all_are_spent(autojump_clock: Any) -> None:
    async with restored(talk, lost_s=5, limits={"envelopes": 3}) as (bench, line):
        for _ in range(4):
            params = line.next("CHAT", ts=bench.ts - 2)
            line.n, line.sig = params["n"], params["sig"]
            assert code(await bench.call("send_env", **params)) == "accepted"
        assert code(await line.send("CHAT")) == "rate_limited"


@pytest.mark.requirement("retries.resubmit-limits")
async def test_it_spends_none_either_when_the_log_is_read_again(autojump_clock: Any) -> None:
    settings: Settings = {"limits": {"envelopes": 3}, "actors": {"idle_s": 1}}
    async with restored(talk, **settings) as (bench, line):
        for _ in range(8):
            await bench.call("send_env", **lost(line, "CHAT"))
        await trio.sleep(3)
        answers = [code(await line.send("CHAT")) for _ in range(4)]
        assert answers == ["accepted"] * 3 + ["rate_limited"]


@pytest.mark.requirement("retries.resubmit-again")
async def test_the_same_bytes_again_are_a_replay_and_another_envelope_stands(autojump_clock: Any) -> None:
    async with restored(talk) as (bench, line):
        n, sig = line.n, line.sig
        first = lost(line, "QUOTE", body={"px": "1"})
        answer = await bench.call("send_env", **first)
        assert await bench.call("send_env", **first) == {**answer, "replayed": True}
        line.n, line.sig = n, sig
        refused = await bench.call("send_env", **lost(line, "QUOTE", body={"px": "2"}))
        assert (code(refused), refused.detail["head"]["sig"]) == ("conflict", first["sig"])


@pytest.mark.requirement("retries.resubmit-again")
async def test_after_a_new_envelope_no_lost_tail_follows(autojump_clock: Any) -> None:
    async with restored(talk) as (bench, line):
        assert code(await line.send("QUOTE")) == "accepted"
        assert "resubmitted" not in (await rows(bench, line))[-1]
        assert code(await bench.call("send_env", **lost(line, "HIT"))) == "clock_skew"
        assert code(await bench.call("send_env", **by_wire(line))) == "not_a_party"


@pytest.mark.requirement("retries.resubmit-checks")
async def test_turn_type_chain_and_signature_are_checked_as_ever(autojump_clock: Any) -> None:
    async with restored(talk) as (bench, line):

        async def refused(**changes: Any) -> str:
            params = line.next(**{"type": "QUOTE", "ts": lost_ts(line), **changes})
            return code(await bench.call("send_env", **params))

        assert await refused(by=line.caller) == "out_of_turn"
        assert await refused(type="PICKUP") == "bad_envelope"
        assert await refused(prev_sig="0" * 128) == "bad_prev_sig"
        assert await refused(n=line.n + 2) == "conflict"
        forged = {**line.next("QUOTE", ts=lost_ts(line)), "sig": "0" * 128}
        assert code(await bench.call("send_env", **forged)) == "bad_signature"


@pytest.mark.requirement("retries.resubmit-end")
async def test_an_end_of_nobody_else_and_nothing_but_the_wires_end_is_taken(autojump_clock: Any) -> None:
    async with restored(talk) as (bench, line):
        stranger = SigningKey.generate()
        assert code(await bench.call("send_env", **by_wire(line, stranger))) == "not_a_party"
        assert code(await bench.call("send_env", **by_wire(line, type="CHAT"))) == "not_a_party"
        assert code(await bench.call("send_env", **by_wire(line, ts=bench.ts))) == "not_a_party"
        forged = {**by_wire(line), "sig": "0" * 128}
        assert code(await bench.call("send_env", **forged)) == "bad_signature"
        elsewhere = by_wire(line, to=Party("ZULU").pk)
        assert (await bench.call("send_env", **elsewhere)).detail["path"] == "to"
        assert code(await bench.call("send_env", **by_wire(line))) == "accepted"


@pytest.mark.requirement("retries.resubmit-end")
async def test_a_wire_that_was_never_restored_takes_no_end_of_its_own(
    bench: Bench, autojump_clock: Any
) -> None:
    line = await talk(bench)
    assert code(await bench.call("send_env", **by_wire(line))) == "not_a_party"


@pytest.mark.requirement("retries.resubmit-time")
@pytest.mark.parametrize(
    ("after_s", "ts", "expect"),
    [
        (600, 0, "accepted"),
        (600, LOST_S, "accepted"),
        (600, -300, "accepted"),  # a clock behind, within what the wire had let pass
        (600, -301, "clock_skew"),
        (600, LOST_S + 299, "accepted"),  # a clock ahead
        (700, LOST_S + 301, "clock_skew"),
        (7 * DAY_S, 10, "accepted"),
        (7 * DAY_S + 1, 10, "clock_skew"),
    ],
)
async def test_the_time_between_backup_and_restore_passes_for_seven_days(
    after_s: float, ts: int, expect: str, autojump_clock: Any
) -> None:
    async with restored(talk, after_s, calls={"idle_s": 30 * DAY_S}) as (bench, line):
        backup_s = bench.ts - round(after_s) - LOST_S
        answer = await bench.call("send_env", **line.next("QUOTE", ts=backup_s + ts))
        assert code(answer) == expect


@pytest.mark.requirement("retries.resubmit-time")
async def test_what_is_said_after_the_restore_is_new(autojump_clock: Any) -> None:
    async with restored(talk, after_s=60) as (bench, line):
        assert code(await line.send("QUOTE")) == "accepted"
        assert "resubmitted" not in (await rows(bench, line))[-1]


@pytest.mark.requirement("retries.resubmit-held")
async def test_a_conversation_that_the_backup_does_not_hold_is_not_begun_again(autojump_clock: Any) -> None:
    async with restored(talk) as (bench, line):
        conv = "e" * 16
        body = {"code_from": line.caller.code, "code_to": line.called.code}
        old = line.caller.envelope(
            conv, 0, "CALL", line.called.pk, lost_ts(line), bootstrap(ConvId(conv)), body
        )
        call = {"to_code": "BRAV", **{name: old[name] for name in ("from_pk", "sig", "envelope")}}
        assert code(await bench.call("send_call", **call)) == "clock_skew"
        gone = {**lost(line, "QUOTE")}
        gone["conv"] = gone["envelope"]["conv"] = "f" * 16
        assert code(await bench.call("send_env", **gone)) == "unknown_conv"


@pytest.mark.requirement("retries.resubmit")
async def test_the_dry_run_foretells_it(autojump_clock: Any) -> None:
    async with restored(talk) as (bench, line):
        envelope = lost(line, "QUOTE")["envelope"]
        assert "refusals" not in await bench.call("canonicalize", envelope=envelope)
        late = {**envelope, "ts": envelope["ts"] - 1000}
        found = await bench.call("canonicalize", envelope=late)
        assert [each["code"] for each in found["refusals"]] == ["clock_skew"]
