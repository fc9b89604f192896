"""Foreign and missing look alike: whoever may not know of a thing learns nothing by asking for it.

Times are medians of many samples of the thread's own CPU time, taken in turns, so that whatever slows the machine
slows both; and a difference counts only if it shows in each of several rounds, since noise does not repeat itself.
"""

import json
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
import trio

from broker.app import Caller
from broker.wire.ids import Sig
from broker.wire.refusals import Refusal
from gateways import render
from gateways.caller import write_proof
from gateways.mcp.endpoint import mcp_app
from gateways.metrics import Metrics
from gateways.web import web_app
from tests.gateways.mcp.harness import Door, modern, request
from tests.support.broker import STRANGER, Bench, Line, Party, open_bench, tuned
from tests.support.network import serving

SAMPLES, ROUNDS = 300, 5
NOISE = 1.25
"""What medians of the same thing differ by at most. What is really told apart costs more: an actor started, a
signature verified, a log read is twice the whole and more."""
NOWHERE = "f00d" * 4
Ask = Callable[[], Awaitable[Any]]


async def differ(one: Ask, other: Ask) -> float:
    """By what factor the slower of two takes longer, in the round where they differ least."""
    found = []
    for _ in range(ROUNDS):
        took: tuple[list[int], list[int]] = ([], [])
        for _ in range(SAMPLES):
            for ask, times in zip((one, other), took, strict=True):
                start = time.thread_time_ns()
                await ask()
                times.append(time.thread_time_ns() - start)
        low, high = sorted(statistics.median(times) for times in took)
        found.append(high / low)
        if found[-1] < NOISE:
            break
    return min(found)


@pytest.fixture
async def quiet() -> AsyncIterator[tuple[Bench, Line, Party]]:
    """A broker that keeps transcripts for the parties, a conversation, and a desk that is no party."""
    async with open_bench(tuned(transcripts="parties")) as bench:  # type: ignore[arg-type]  # a plain setting
        line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
        yield bench, line, await bench.open("CHAR")


def asked(bench: Bench, third: Party, line: Line, conv: str) -> list[tuple[str, Caller, dict[str, Any]]]:
    """All the ways to ask for a conversation: as nobody, as another key, by a statement of another key."""
    follow = third.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 3600)
    found = []
    for caller, proof in ((Caller(), {}), (Caller(pk=third.pk), {}), (Caller(), follow)):
        found.append(("read_conv", caller, {"conv": conv, **proof}))
        found.append(("receipt", caller, {"conv": conv, "n": 1, **proof}))
    sent = third.envelope(conv, 2, "RFQ", line.called.pk, bench.ts, Sig("0" * 128))
    found.append(("send_env", Caller(), sent))
    found.append(("canonicalize", Caller(), {"envelope": sent["envelope"]}))
    found.append(("canonicalize", Caller(), {"envelope": sent["envelope"], **follow}))
    return found


@pytest.mark.requirement("threat.foreign-ids")
async def test_a_foreign_conversation_is_answered_as_one_that_is_not_there(
    quiet: tuple[Bench, Line, Party],
) -> None:
    bench, line, third = quiet
    ways = zip(asked(bench, third, line, line.conv), asked(bench, third, line, NOWHERE), strict=True)
    for (tool, caller, foreign), (_, _, missing) in ways:
        answers = [await bench.call(tool, caller, **params) for params in (foreign, missing)]
        if tool == "canonicalize":
            for answer in answers:
                assert "due" not in answer
                assert "refusals" not in answer, "that it is not there is not told either"
        else:
            assert all(isinstance(answer, Refusal) for answer in answers)
            assert render.http(answers[0]) == render.http(answers[1])
            assert answers[0].code == "unknown_conv"


@pytest.mark.requirement("threat.foreign-ids")
async def test_a_foreign_conversation_takes_as_long_as_one_that_is_not_there(
    quiet: tuple[Bench, Line, Party],
) -> None:
    bench, line, third = quiet
    ways = zip(asked(bench, third, line, line.conv), asked(bench, third, line, NOWHERE), strict=True)

    def ask(tool: str, caller: Caller, params: dict[str, Any]) -> Ask:
        text = json.dumps(params).encode()
        return lambda: bench.broker.call(caller, tool, text)

    for foreign, missing in ways:
        assert await differ(ask(*foreign), ask(*missing)) < NOISE, foreign[0]
    mine = ("read_conv", Caller(pk=line.caller.pk), {"conv": line.conv})
    missing = ("read_conv", Caller(pk=line.caller.pk), {"conv": NOWHERE})
    assert await differ(ask(*mine), ask(*missing)) > NOISE, "a difference would be seen"


@pytest.mark.requirement("threat.foreign-ids")
async def test_an_address_that_guesses_is_stopped_as_soon_with_foreign_ids_as_with_missing_ones(
    quiet: tuple[Bench, Line, Party],
) -> None:
    bench, line, _ = quiet
    for conv, caller in ((line.conv, STRANGER), (NOWHERE, Caller(address="198.51.100.7", loopback=False))):
        codes = [(await bench.call("read_conv", caller, conv=conv)).code for _ in range(21)]
        assert codes == ["unknown_conv"] * 20 + ["rate_limited"]


@pytest.mark.requirement("threat.foreign-ids")
async def test_no_door_tells_a_foreign_conversation_from_none(quiet: tuple[Bench, Line, Party]) -> None:
    bench, line, third = quiet
    follow = third.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 3600)
    text = json.dumps(follow["statement"], sort_keys=True, separators=(",", ":")).encode()
    headers = {"authorization": f"Turret {write_proof(text, follow['sig'])}"}
    app = web_app(bench.broker, Metrics(bench.broker), mcp_app=mcp_app(bench.broker))
    async with serving(app) as server, httpx.AsyncClient(base_url=server.url, headers=headers) as http:
        told: dict[str, list[Any]] = {}
        for conv in (line.conv, NOWHERE):
            for name, body, more in (
                ("plain", {"conv": conv}, {}),
                ("read_conv", *modern("tools/call", name="read_conv", arguments={"conv": conv})),
                ("resource", *modern("resources/read", uri=f"turret://conv/{conv}")),
                ("bare", request("resources/subscribe", uri=f"turret://conv/{conv}"), {}),
                ("completion", *modern("completion/complete", ref={"type": "ref/resource",
                 "uri": "turret://conv/{conv}"}, argument={"name": "conv", "value": conv[:4]})),
            ):  # fmt: skip
                sent = {name.replace("_", "-"): value for name, value in more.items()}
                path = "/v1/read_conv" if name == "plain" else "/mcp"
                accept = {"accept": "application/json, text/event-stream"}
                answer = await http.post(path, json=body, headers={**sent, **accept})
                own = (b"date", b"x-request-id")  # each answer has its own
                shown = [each for each in answer.headers.raw if each[0].lower() not in own]
                told.setdefault(name, []).append((answer.status_code, shown, answer.text.replace(conv, "…")))
    for name, (foreign, missing) in told.items():
        assert foreign == missing, name


@pytest.mark.requirement("threat.foreign-ids")
async def test_a_foreign_session_looks_like_one_that_is_not_there(bench: Bench) -> None:
    door = Door(mcp_app(bench.broker), bench.broker)
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")

    def proof(party: Party) -> str:
        follow = party.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 3600)
        text = json.dumps(follow["statement"], sort_keys=True, separators=(",", ":")).encode()
        return f"Turret {write_proof(text, follow['sig'])}"

    session = await door.session(authorization=proof(alfa))
    shown = proof(brav)

    def ask(id: str, method: str) -> Ask:
        body = request("ping") if method == "POST" else b""
        return lambda: door.ask(method, body=body, mcp_session_id=id, authorization=shown)

    made_up = "0" * len(session.id)
    for method in ("POST", "GET", "DELETE"):
        foreign, missing = await ask(session.id, method)(), await ask(made_up, method)()
        assert (foreign.status, foreign.headers, foreign.body) == (
            missing.status,
            missing.headers,
            missing.body,
        )
        assert foreign.status == 404
    assert await differ(ask(session.id, "POST"), ask(made_up, "POST")) < NOISE
    assert (
        await session.door.ask(body=request("ping"), authorization=proof(alfa), **session.headers)
    ).status == 200


@pytest.mark.requirement("threat.foreign-ids")
async def test_a_cursor_of_a_foreign_stream_looks_like_one_that_was_made_up(
    quiet: tuple[Bench, Line, Party],
) -> None:
    bench, line, third = quiet
    theirs = line.caller.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 3600)
    foreign = (await bench.call("wait_for_events", after="0", **theirs))["cursor"]
    tag, epoch, position = foreign.split(".")
    made_up = ".".join((tag[::-1], epoch[::-1], position))
    reader = Caller(pk=third.pk)

    def ask(cursor: str) -> Ask:
        text = json.dumps({"after": cursor, "wait_ms": 0}).encode()
        return lambda: bench.broker.call(reader, "wait_for_events", text)

    told = [await bench.call("wait_for_events", reader, after=each) for each in (foreign, made_up)]
    assert told[0] == told[1]
    assert told[0]["resume"]["reason"] == "unknown"
    assert await differ(ask(foreign), ask(made_up)) < NOISE


@pytest.mark.requirement("threat.foreign-ids")
async def test_a_desk_that_turns_one_away_looks_like_one_that_is_busy() -> None:
    async with open_bench(tuned(limits={"rings": 2, "rings_known": 1})) as bench:
        alfa, busy, screened, other = [await bench.open(name) for name in ("ALFA", "BUSY", "SCRN", "OTHR")]
        await bench.dial(other, busy)
        screen = screened.statement(
            "screen_desk", bench.broker.pk, bench.ts, code="SCRN", allow=[], deny=[alfa.pk], mode="all"
        )
        assert not isinstance(await bench.call("screen_desk", **screen), Refusal)
        told = [await bench.call("send_call", **bench.calling(alfa, desk)) for desk in (busy, screened)]
        assert render.http(told[0]) == render.http(told[1])
        assert told[0].code == "desk_busy"


@pytest.mark.requirement("threat.foreign-ids")
async def test_a_desk_that_is_closed_or_lapsed_looks_like_none_and_a_suspended_one_like_any(
    autojump_clock: Any,
) -> None:
    async with open_bench() as bench:
        _, closed, held, suspended = [await bench.open(c) for c in ("LAPS", "CLSD", "FULL", "SUSP")]
        closing = closed.statement("close_desk", bench.broker.pk, bench.ts, code="CLSD")
        assert not isinstance(await bench.call("close_desk", **closing), Refusal)
        await bench.call("suspend_desk", Caller(operator=True), code="SUSP")
        bench.clock.step(89 * 86_400_000)
        for party in (held, suspended):  # they are in use
            async with await bench.broker.follow(Caller(pk=party.pk)):
                await trio.sleep(1)
        bench.clock.step(2 * 86_400_000)
        stranger = await bench.open("ZZZZ")

        async def told(code: str) -> list[Any]:
            """What each tool says of a code, its name apart."""
            found = [await bench.call("resolve_code", code=code), await bench.call("presence", codes=[code])]
            for do, more in (
                ("close_desk", {}),
                ("cancel_move", {}),
                ("screen_desk", {"allow": [], "deny": [], "mode": "all"}),
            ):
                proof = stranger.statement(do, bench.broker.pk, bench.ts, code=code, **more)
                found.append(await bench.call(do, **proof))
            found.append(await bench.broker.follow(Caller(pk=stranger.pk), code=code))
            shown = [render.http(each) if isinstance(each, Refusal) else each for each in found]
            return [repr(each).replace(code, "…") for each in shown]

        assert await told("CLSD") == await told("LAPS") == await told("NONE")
        open_, shut = await told("FULL"), await told("SUSP")
        assert open_[1:] == shut[1:]
        assert "suspended" not in shut[0]

        def ask(tool: str, **params: Any) -> Ask:
            text = json.dumps(params).encode()
            return lambda: bench.broker.call(STRANGER, tool, text)

        pairs = (("CLSD", "NONE"), ("LAPS", "NONE"), ("SUSP", "FULL"))
        for one, other in pairs:
            assert await differ(ask("resolve_code", code=one), ask("resolve_code", code=other)) < NOISE, one
            assert await differ(ask("presence", codes=[one]), ask("presence", codes=[other])) < NOISE, one
