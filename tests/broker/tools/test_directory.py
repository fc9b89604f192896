"""Desks: opening, moving, closing, screening, recovery; statements in their order; presence and resolving."""

from typing import Any

import pytest
import trio

from broker.app import Caller
from broker.config import Settings
from broker.store.memory import MemoryStore
from broker.store.port import Unavailable
from broker.wire.canonical import encode
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.broker import STRANGER, Bench, Party, code, open_bench, tuned

DAY = 86_400


async def ask(bench: Bench, do: str, by: Party, **members: Any) -> Any:
    """Sign a statement and call the tool of its name."""
    return await bench.call(do, **by.statement(do, bench.broker.pk, bench.ts, **members))


def moving(bench: Bench, by: Party, desk: str, to: SigningKey, **members: Any) -> dict[str, Any]:
    """The params of move_desk, signed by both keys."""
    params = by.statement("move_desk", bench.broker.pk, bench.ts, code=desk, new_pk=to.pk, **members)
    return {**params, "new_sig": to.sign(encode(params["statement"]))}


@pytest.mark.requirement("desk.one-code-one-key")
async def test_one_code_for_a_key_and_one_key_for_a_code(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    assert code(await ask(bench, "open_desk", alfa, code="BRAV")) == "desk_exists"
    assert code(await ask(bench, "open_desk", Party("ALFA"), code="ALFA")) == "code_taken"
    assert code(await ask(bench, "open_desk", Party("WIRE"), code="WIRE")) == "code_reserved"
    row = await ask(bench, "open_desk", alfa, code="ALFA")
    assert (row["code"], row["pk"]) == ("ALFA", alfa.pk)


@pytest.mark.requirement("desk.one-code-one-key")
async def test_of_two_that_open_one_code_at_once_one_gets_it(bench: Bench) -> None:
    answers: list[Any] = []

    async def open_it() -> None:
        answers.append(await ask(bench, "open_desk", Party("ALFA"), code="ALFA"))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(open_it)
    assert sorted(code(answer) for answer in answers) == ["accepted", *["code_taken"] * 4]


@pytest.mark.requirement("desk.cool-down")
async def test_a_closed_code_stays_reserved_for_ninety_days(bench: Bench, autojump_clock: Any) -> None:
    alfa = await bench.open("ALFA")
    await ask(bench, "close_desk", alfa, code="ALFA")
    assert code(await bench.call("resolve_code", code="ALFA")) == "unknown_desk"
    assert code(await ask(bench, "open_desk", Party("ALFA"), code="ALFA")) == "code_reserved"
    bench.clock.step(90 * DAY * 1000 - 10_000)
    assert code(await ask(bench, "open_desk", Party("ALFA"), code="ALFA")) == "code_reserved"
    bench.clock.step(20_000)
    assert code(await ask(bench, "open_desk", Party("ALFA"), code="ALFA")) == "accepted"


@pytest.mark.requirement("desk.lapse")
async def test_an_unused_code_lapses_into_the_reserved_time_and_one_in_use_does_not(
    autojump_clock: Any,
) -> None:
    async with open_bench(tuned(store={"sweep_s": 1e6}, calls={"idle_s": 1e9})) as bench:
        idle, busy, other = await bench.open("ALFA"), await bench.open("BRAV"), await bench.open("CHAR")
        bench.clock.step(80 * DAY * 1000)
        assert code(await (await bench.dial(busy, other)).send("PICKUP")) == "accepted"
        bench.clock.step(20 * DAY * 1000)
        assert code(await bench.call("resolve_code", code=idle.code)) == "unknown_desk"
        assert code(await bench.call("resolve_code", code=busy.code)) == "accepted"
        assert code(await ask(bench, "open_desk", Party("ALFA"), code="ALFA")) == "code_reserved"
        bench.clock.step(81 * DAY * 1000)
        taker = Party("ALFA")
        assert code(await ask(bench, "open_desk", taker, code="ALFA")) == "accepted"
        assert (await bench.call("resolve_code", code="ALFA"))["pk"] == taker.pk
        assert code(await ask(bench, "close_desk", idle, code="ALFA")) == "not_a_party"


@pytest.mark.requirement("desk.move")
async def test_a_moved_desk_names_its_new_key_and_open_calls_stay(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    line = await bench.connect(alfa, brav)
    taker = Party("BRAV")
    moved = await bench.call("move_desk", **moving(bench, brav, "BRAV", taker.key))
    assert moved["pk"] == taker.pk
    answer = await bench.call("send_call", **bench.calling(alfa, brav))
    assert (code(answer), answer.detail["path"], answer.detail["pk"]) == ("bad_envelope", "to", taker.pk)
    assert code(await line.send("RFQ")) == "accepted"
    assert code(await line.send("QUOTE")) == "accepted"
    assert code(await ask(bench, "close_desk", brav, code="BRAV")) == "not_a_party"
    assert code(await (await bench.dial(alfa, taker)).send("PICKUP")) == "accepted"


@pytest.mark.requirement("desk.move")
async def test_a_move_needs_the_new_keys_signature_over_the_same_bytes(bench: Bench) -> None:
    brav = await bench.open("BRAV")
    params = moving(bench, brav, "BRAV", SigningKey.generate())
    params["new_sig"] = params["sig"]
    answer = await bench.call("move_desk", **params)
    assert (code(answer), answer.detail["path"]) == ("bad_statement", "new_sig")


@pytest.mark.requirement("desk.recovery")
async def test_a_recovery_keys_move_waits_a_day_and_survives_a_restart(autojump_clock: Any) -> None:
    recovery, taker = Party("BRAV"), Party("BRAV")
    async with open_bench() as bench:
        brav = await bench.open("BRAV", recovery_pk=recovery.pk)
        answer = await bench.call("move_desk", **moving(bench, recovery, "BRAV", taker.key))
        assert answer == {"code": "BRAV", "effective_at": bench.clock.now_ms() + DAY * 1000}
        await trio.sleep(10)
        bench.clock.step(DAY * 500)
    async with open_bench(store=bench.store, clock=bench.clock, key=None) as again:
        bench.clock.step(DAY * 500 - 20_000)
        await trio.sleep(5)
        assert (await again.call("resolve_code", code="BRAV"))["pk"] == brav.pk
        await trio.sleep(70)
        assert (await again.call("resolve_code", code="BRAV"))["pk"] == taker.pk


@pytest.mark.requirement("desk.recovery")
async def test_the_desks_own_key_cancels_a_recovery_move(bench: Bench, autojump_clock: Any) -> None:
    recovery = Party("BRAV")
    brav = await bench.open("BRAV", recovery_pk=recovery.pk)
    move = moving(bench, recovery, "BRAV", SigningKey.generate())
    assert code(await bench.call("move_desk", **move)) == "accepted"
    assert (
        code(await bench.call("move_desk", **moving(bench, recovery, "BRAV", SigningKey.generate())))
        == "conflict"
    )
    assert code(await ask(bench, "cancel_move", recovery, code="BRAV")) == "not_a_party"
    assert code(await ask(bench, "cancel_move", brav, code="BRAV")) == "accepted"
    bench.clock.step(2 * DAY * 1000)
    await trio.sleep(61)
    assert (await bench.call("resolve_code", code="BRAV"))["pk"] == brav.pk


@pytest.mark.requirement("desk.recovery")
async def test_a_move_that_is_off_is_told_on_the_desks_stream(bench: Bench) -> None:
    recovery, taker = Party("BRAV"), SigningKey.generate()
    brav = await bench.open("BRAV", recovery_pk=recovery.pk)
    await bench.call("move_desk", **moving(bench, recovery, "BRAV", taker))
    await ask(bench, "cancel_move", brav, code="BRAV")
    follow = brav.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 60)
    events = (await bench.call("wait_for_events", after="0", **follow))["events"]
    assert [(event["event"], event.get("cancelled", False)) for event in events] == [
        ("moving", False),
        ("moving", True),
    ]


@pytest.mark.requirement("order.suspended")
async def test_a_suspended_desk_can_not_shed_that_by_closing(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    operator = Caller(operator=True)
    await bench.call("suspend_desk", operator, code="ALFA")
    assert code(await ask(bench, "close_desk", alfa, code="ALFA")) == "suspended"
    await bench.call("release_desk", operator, code="ALFA")
    assert code(await ask(bench, "close_desk", alfa, code="ALFA")) == "accepted"


@pytest.mark.requirement("desk.lapse")
async def test_a_desk_whose_stream_is_read_is_in_use(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    for _ in range(3):
        bench.clock.step(60 * DAY * 1000)
        follow = alfa.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 60)
        assert code(await bench.call("wait_for_events", **follow)) == "accepted"
    assert code(await bench.call("resolve_code", code="ALFA")) == "accepted"


@pytest.mark.requirement("desk.screen")
async def test_a_screened_desk_turns_away_with_desk_busy(bench: Bench) -> None:
    alfa, brav, char = await bench.open("ALFA"), await bench.open("BRAV"), await bench.open("CHAR")
    for mode, allow, deny, expect in (
        ("all", [], [alfa.pk], ["desk_busy", "accepted"]),
        ("known", [], [], ["desk_busy", "desk_busy"]),
        ("nobody", [char.pk], [], ["desk_busy", "accepted"]),
    ):
        await ask(bench, "screen_desk", brav, code="BRAV", mode=mode, allow=allow, deny=deny)
        answers = [await bench.call("send_call", **bench.calling(each, brav)) for each in (alfa, char)]
        assert [code(answer) for answer in answers] == expect
    await ask(bench, "screen_desk", brav, code="BRAV", mode="all", allow=[], deny=[])
    await bench.connect(alfa, brav)
    await ask(bench, "screen_desk", brav, code="BRAV", mode="known", allow=[], deny=[])
    assert code(await bench.call("send_call", **bench.calling(alfa, brav))) == "accepted"


@pytest.mark.requirement("statements.replay")
async def test_the_identical_statement_gets_the_stored_answer(bench: Bench, autojump_clock: Any) -> None:
    alfa = Party("ALFA")
    params = alfa.statement("open_desk", bench.broker.pk, bench.ts, code="ALFA")
    first = await bench.call("open_desk", **params)
    assert await bench.call("open_desk", **params) == {**first, "replayed": True}
    await trio.sleep(400)
    assert await bench.call("open_desk", **params) == {**first, "replayed": True}


@pytest.mark.requirement("statements.nonce")
async def test_a_used_nonce_serves_no_other_statement_and_a_refused_one_uses_none(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    nonce = "ab" * 16
    used = {"nonce": nonce, "code": "ALFA", "mode": "all", "allow": [], "deny": []}
    assert code(await ask(bench, "screen_desk", alfa, **used)) == "accepted"
    answer = await ask(bench, "close_desk", alfa, code="ALFA", nonce=nonce)
    assert (code(answer), answer.detail["path"]) == ("bad_statement", "nonce")
    stale = alfa.statement("close_desk", bench.broker.pk, bench.ts - 301, nonce, code="ALFA")
    answer = await bench.call("close_desk", **stale)
    assert answer.detail["path"] == "nonce", "the nonce is judged before the ts"
    fresh = "cd" * 16
    assert code(await ask(bench, "close_desk", alfa, code="ZULU", nonce=fresh)) == "unknown_desk"
    assert code(await ask(bench, "close_desk", alfa, code="ALFA", nonce=fresh)) == "accepted"


@pytest.mark.requirement("statements.order")
async def test_a_statement_is_judged_by_wire_then_signature_then_ts(bench: Bench) -> None:
    alfa = Party("ALFA")
    foreign = alfa.statement("open_desk", "f" * 64, bench.ts, code="ALFA")
    answer = await bench.call("open_desk", **{**foreign, "sig": "0" * 128})
    assert (code(answer), answer.detail["path"]) == ("bad_statement", "wire")
    old = alfa.statement("open_desk", bench.broker.pk, bench.ts - 301, code="ALFA")
    answer = await bench.call("open_desk", **{**old, "sig": "0" * 128})
    assert (code(answer), answer.detail["path"]) == ("bad_statement", "sig")
    answer = await bench.call("open_desk", **old)
    assert (code(answer), answer.detail["path"]) == ("bad_statement", "ts")


@pytest.mark.requirement("desk.open-setting")
@pytest.mark.parametrize(
    ("setting", "expect"), [("agents", "unauthenticated"), ("operator", "insufficient_scope")]
)
async def test_who_may_open_desks_is_a_setting(setting: str, expect: str) -> None:
    async with open_bench(tuned(desks={"open": setting})) as bench:
        assert code(await ask(bench, "open_desk", Party("ALFA"), code="ALFA")) == expect


@pytest.mark.requirement("limits.opens-per-hour")
async def test_twenty_desks_an_hour_from_one_address_and_a_refused_opening_spends_nothing(
    bench: Bench, autojump_clock: Any
) -> None:
    async def open_from_afar(name: str) -> str:
        statement = Party(name).statement("open_desk", bench.broker.pk, bench.ts, code=name)
        return code(await bench.call("open_desk", STRANGER, **statement))

    assert await open_from_afar("WIRE") == "code_reserved"
    assert isinstance(bench.store, MemoryStore)
    bench.store.gate.fail_next(Unavailable())
    assert await open_from_afar("AAAA") == "unavailable"
    assert [await open_from_afar(f"AAA{chr(65 + i)}") for i in range(21)] == ["accepted"] * 20 + [
        "rate_limited"
    ]
    await trio.sleep(3601)
    assert await open_from_afar("AAAU") == "accepted"


@pytest.mark.requirement("statements.follow")
async def test_a_follow_statement_is_good_until_its_until_and_only_for_its_key(
    bench: Bench, autojump_clock: Any
) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    follow = alfa.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 5000)
    await trio.sleep(4000)
    assert code(await bench.call("wait_for_events", **follow)) == "accepted"
    assert code(await bench.call("desk_rings", code="BRAV", **follow)) == "not_a_party"
    foreign = alfa.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 50, code=brav.code)
    assert code(await bench.call("wait_for_events", **foreign)) == "not_a_party"
    await trio.sleep(1001)
    assert code(await bench.call("list_convs", **follow)) == "bad_statement"
    answer = await bench.call("wait_for_events", **follow)
    assert (code(answer), answer.detail["path"]) == ("bad_statement", "until")


@pytest.mark.requirement("presence.poll")
async def test_a_desk_is_online_while_it_waits_and_for_a_minute_after_a_poll(
    bench: Bench, autojump_clock: Any
) -> None:
    alfa = await bench.open("ALFA")
    await bench.open("BRAV")
    follow = alfa.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 5000)
    assert await bench.call("presence") == {"desks": {}}
    await bench.call("wait_for_events", **follow)
    assert await bench.call("presence", codes=["ALFA", "BRAV", "ZULU"]) == {
        "desks": {"ALFA": True, "BRAV": False, "ZULU": False}
    }
    await trio.sleep(59)
    assert (await bench.call("resolve_code", code="ALFA"))["online"]
    await trio.sleep(2)
    assert await bench.call("presence") == {"desks": {}}


@pytest.mark.requirement("tools.wire-info")
async def test_wire_info_names_key_limits_and_time(bench: Bench, autojump_clock: Any) -> None:
    info = await bench.call("wire_info")
    assert info["wire"] == bench.broker.pk
    assert info["wire_keys"][0]["pk"] == bench.broker.pk
    assert info["limits"]["envelopes"] == Settings().limits.envelopes
    assert info["time"] == bench.clock.now_ms()


async def test_more_than_64_codes_are_refused(bench: Bench) -> None:
    answer = await bench.call("presence", codes=["ALFA"] * 65)
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.detail["path"]) == ("bad_request", "codes")
