"""open-desk, dial, answer, tail, beside a live broker and a counterparty of the client."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator

import click
import pytest
import trio

from broker.wire.keys import SigningKey
from gateways.client.call import Call
from gateways.client.connect import connect
from gateways.client.dealer import Desk
from gateways.client.errors import CallEnded
from gateways.commands.dealing import read_line
from tests.gateways.client.live import Live
from tests.gateways.client.test_connect import quote_once
from tests.gateways.commands.conftest import Turret


@pytest.fixture
async def key(turret: Turret) -> str:
    """The path of ALFA's key file."""
    return await trio.to_thread.run_sync(turret.key, "alfa")


@pytest.fixture
async def brav(live: Live, nursery: trio.Nursery) -> AsyncIterator[Desk]:
    """BRAV's desk, open."""
    async with connect(live.dealing, SigningKey.generate(), live.wire) as desk:
        await desk.open("BRAV")
        yield desk


async def test_a_desk_is_opened_and_found_open(live: Live, turret: Turret, key: str) -> None:
    first = await turret("open-desk", "alfa", "--key", key)
    assert (first.code, first.err) == (0, "")
    assert first.out.startswith("ALFA  ")
    again = await turret("open-desk", "ALFA", "--key", key, "--json", "--url", live.mcp, "--wire", live.wire)
    assert again.json["code"] == "ALFA"
    other = await turret("open-desk", "BETA", "--key", key)
    assert (other.code, other.err.split(":")[1]) == (1, " desk_exists")


@pytest.mark.parametrize("door", ["http", "mcp", "dealing"])
async def test_a_call_is_dialled_talked_and_hung_up(
    live: Live, turret: Turret, key: str, brav: Desk, nursery: trio.Nursery, door: str
) -> None:
    await turret("open-desk", "ALFA", "--key", key)
    nursery.start_soon(quote_once, brav)
    says = ("--say", 'RFQ {"qty":"1"}', "--say", "HIT")
    url = ("--url", getattr(live, door), "--wire", live.wire)
    ran = await turret("dial", "brav", "--from", "alfa", "--key", key, *says, *url)
    assert (ran.code, ran.err) == (0, "")
    types = [line.split()[5] for line in ran.out.splitlines()]
    assert types == ["CALL", "PICKUP", "RFQ", "QUOTE", "HIT", "CONFIRM", "END"]


@pytest.mark.requirement("cli.json")
async def test_a_call_as_json_lines(
    live: Live, turret: Turret, key: str, brav: Desk, nursery: trio.Nursery
) -> None:
    await turret("open-desk", "ALFA", "--key", key)
    nursery.start_soon(quote_once, brav)
    ran = await turret("dial", "BRAV", "--from", "ALFA", "--key", key, "--say", "RFQ", "--json")
    assert [row["envelope"]["type"] for row in ran.lines] == ["CALL", "PICKUP", "RFQ", "QUOTE", "END"]
    assert all({"n", "sig", "envelope", "chain", "accepted_at"} <= set(row) for row in ran.lines)


async def test_an_end_is_said_at_once(
    live: Live, turret: Turret, key: str, brav: Desk, nursery: trio.Nursery
) -> None:
    await turret("open-desk", "ALFA", "--key", key)
    nursery.start_soon(quote_once, brav)
    ran = await turret(
        "dial", "BRAV", "--from", "ALFA", "--key", key, "--say", 'END {"reason":"wrong number"}'
    )
    assert "hangs up: wrong number" in ran.out


async def test_a_call_that_is_declined_fails_in_one_line(
    live: Live, turret: Turret, key: str, brav: Desk, nursery: trio.Nursery
) -> None:
    async def decline() -> None:
        await (await brav.next_ring()).decline("busy")

    await turret("open-desk", "ALFA", "--key", key)
    nursery.start_soon(decline)
    ran = await turret("dial", "BRAV", "--from", "ALFA", "--key", key, "--say", "RFQ")
    assert (ran.code, ran.err) == (1, "turret: call_ended: the call has ended: busy\n")


@pytest.mark.requirement("cli.errors")
async def test_a_desk_of_another_key_can_not_be_dialled_from(
    live: Live, turret: Turret, key: str, brav: Desk
) -> None:
    ran = await turret("dial", "BRAV", "--from", "BRAV", "--key", key, "--say", "RFQ")
    assert ran.code == 1
    assert ran.err.startswith("turret: bad_envelope: ")


async def talk_to_alfa(brav: Desk, heard: list[str]) -> None:
    """BRAV dials ALFA as soon as it is there, asks a price, and waits for the end."""

    async def ask(call: Call) -> None:
        await call.send("RFQ", {"qty": "1"})
        heard.append((await call.receive()).type)
        await call.wait_ended()

    try:
        async with brav.dial("ALFA") as call:
            await ask(call)
    except CallEnded:
        heard.append("ended")


async def test_a_ring_is_answered_and_talked(
    live: Live, turret: Turret, key: str, brav: Desk, nursery: trio.Nursery
) -> None:
    heard: list[str] = []
    await turret("open-desk", "ALFA", "--key", key)
    nursery.start_soon(talk_to_alfa, brav, heard)
    ran = await turret("answer", "--key", key, "--say", 'QUOTE {"bid":"1","ask":"2"}', "--wait", "0.1")
    assert (ran.code, ran.err) == (0, "")
    types = [line.split()[5] for line in ran.out.splitlines()]
    assert types == ["CALL", "PICKUP", "RFQ", "QUOTE", "END"]
    assert "bids 1, offers 2" in ran.out


async def test_nobody_calls(live: Live, turret: Turret, key: str) -> None:
    await turret("open-desk", "ALFA", "--key", key)
    ran = await turret("answer", "--key", key, "--ring-wait", "0.1")
    assert (ran.code, ran.err) == (1, "turret: no_ring: nobody called in 0.1 s\n")


async def test_a_tail_shows_what_the_stream_keeps(
    live: Live, turret: Turret, key: str, brav: Desk, nursery: trio.Nursery
) -> None:
    await turret("open-desk", "ALFA", "--key", key)
    nursery.start_soon(quote_once, brav)
    await turret("dial", "BRAV", "--from", "ALFA", "--key", key, "--say", "RFQ")
    shown = await turret("tail", "--key", key, "--after", "0", "--count", "5")
    assert [line.split()[6] for line in shown.out.splitlines()] == ["CALL", "PICKUP", "RFQ", "QUOTE", "END"]
    events = (await turret("tail", "--key", key, "--after", "0", "--count", "5", "--json")).lines
    assert [event["event"] for event in events] == ["env", "env", "env", "env", "end"]
    middle = events[2]["cursor"]
    rest = (await turret("tail", "--key", key, "--after", middle, "--count", "2", "--json")).lines
    assert rest == events[3:]


async def test_lines_are_typed_and_a_wrong_one_is_told_and_passed_over(
    live: Live, turret: Turret, key: str, brav: Desk, nursery: trio.Nursery
) -> None:
    await turret("open-desk", "ALFA", "--key", key)
    nursery.start_soon(quote_once, brav)
    typed = b'rfq please\n\nRFQ {"qty":1\nRFQ {"qty":"1"}\nHIT'
    with trio.fail_after(20):
        ran = await trio.run_process(
            [sys.executable, "-m", "gateways.cli", "dial", "BRAV", "--from", "ALFA", "--key", key],
            stdin=typed,
            capture_stdout=True,
            capture_stderr=True,
        )
    types = [line.split()[5] for line in ran.stdout.decode().splitlines()]
    assert types == ["CALL", "PICKUP", "RFQ", "QUOTE", "HIT", "CONFIRM", "END"]
    errors = ran.stderr.decode().splitlines()
    assert [line.split(":")[1] for line in errors] == [" usage", " usage"]


async def test_at_a_terminal_a_line_out_of_turn_is_refused_and_not_kept(
    live: Live, turret: Turret, key: str, brav: Desk
) -> None:
    await turret("open-desk", "ALFA", "--key", key)
    typing, terminal = os.openpty()
    arguments = ["-m", "gateways.cli", "dial", "BRAV", "--from", "ALFA", "--key", key]
    with trio.fail_after(20):
        process = await trio.lowlevel.open_process(
            [sys.executable, *arguments], stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stderr is not None
        async with process.stdout, process.stderr, (await brav.next_ring()).answer() as call:
            os.write(typing, b'RFQ {"qty":"1"}\nHIT\n')
            told = b""
            while b"out_of_turn" not in told:
                told += await process.stderr.receive_some()
            await call.send("QUOTE")
            await call.end()
            assert await process.wait() == 0
            shown = await process.stdout.receive_some()
    os.close(typing)
    os.close(terminal)
    types = [line.split()[5] for line in shown.decode().splitlines()]
    assert types == ["CALL", "PICKUP", "RFQ", "QUOTE", "END"]
    assert "END hangs up" in told.decode()


async def test_the_command_ends_with_the_call_though_nobody_types(
    live: Live, turret: Turret, key: str, brav: Desk, nursery: trio.Nursery
) -> None:
    async def hang_up() -> None:
        async with (await brav.next_ring()).answer() as call:
            await call.end("changed my mind")

    await turret("open-desk", "ALFA", "--key", key)
    nursery.start_soon(hang_up)
    arguments = ["-m", "gateways.cli", "dial", "BRAV", "--from", "ALFA", "--key", key]
    with trio.fail_after(20):
        process = await trio.lowlevel.open_process(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert await process.wait() == 0
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        async with process.stdin, process.stdout, process.stderr:
            assert b"changed my mind" in await process.stdout.receive_some()
            assert await process.stderr.receive_some() == b""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('RFQ {"a":1}', ("RFQ", {"a": 1})),
        ("  END  ", ("END", {})),
        ("X_1{}", ("X_1", {})),
    ],
)
def test_a_line_is_a_type_and_a_body(text: str, line: tuple[str, dict[str, object]]) -> None:
    assert read_line(text) == line


@pytest.mark.parametrize("text", ["", "rfq", "RFQ [1]", "RFQ {", 'RFQ {"a":}', "RFQ {} {}", "9X {}"])
def test_anything_else_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.UsageError):
        read_line(text)
