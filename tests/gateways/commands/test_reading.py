"""resolve, presence, read, export, beside a live broker."""

import msgspec
import pytest
import trio

from broker.wire.keys import SigningKey
from gateways.client.connect import connect
from gateways.commands.reading import wire_keys
from tests.gateways.client.live import Live, live_broker
from tests.gateways.client.test_connect import quote_once
from tests.gateways.commands.conftest import Turret
from tests.support.broker import tuned


async def deal(live: Live, key: SigningKey | str) -> str:
    """A short call between ALFA, whose key is given, and BRAV. Returns its id."""
    async with (
        connect(live.dealing, key, live.wire) as alfa,
        connect(live.dealing, SigningKey.generate(), live.wire) as brav,
        trio.open_nursery() as nursery,
    ):
        await alfa.open("ALFA")
        await brav.open("BRAV")
        nursery.start_soon(quote_once, brav)
        async with alfa.dial("BRAV") as call:
            await call.send("RFQ", {"qty": "1"})
            await call.receive()
            await call.end("done")
    return call.conv


async def test_a_code_is_resolved_and_shown_as_present(live: Live, turret: Turret) -> None:
    async with connect(live.dealing, SigningKey.generate(), live.wire) as alfa:
        await alfa.open("ALFA")
        assert (await turret("resolve", "alfa")).out == f"{alfa.pk}\n"
        assert (await turret("resolve", "ALFA", "--json")).json["online"] is True
        assert (await turret("presence")).out == "ALFA  online\n"
        assert (await turret("presence", "alfa", "NONE")).out == "ALFA  online\nNONE  offline\n"


@pytest.mark.requirement("cli.errors")
async def test_a_refusal_is_one_line(live: Live, turret: Turret) -> None:
    ran = await turret("resolve", "NONE")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "turret: unknown_desk: no desk answers to NONE\n"


@pytest.mark.parametrize("door", ["http", "mcp", "dealing"])
async def test_a_conversation_is_read_and_exported_over_any_door(
    live: Live, turret: Turret, door: str
) -> None:
    conv = await deal(live, SigningKey.generate())
    url = ("--url", getattr(live, door))
    shown = await turret("read", conv, *url)
    assert [line.split()[5] for line in shown.out.splitlines()] == ["CALL", "PICKUP", "RFQ", "QUOTE", "END"]
    assert "ALFA → BRAV" in shown.out
    rows = (await turret("read", conv, "--json", *url)).lines
    assert [row["n"] for row in rows] == [0, 1, 2, 3, 4]
    ran = await turret("export", conv, "--receipts", "--out", "deal.jsonl", *url)
    assert (ran.code, ran.out, ran.err) == (0, "", "5 envelopes in deal.jsonl\n")
    verdict = turret.run("verify", "deal.jsonl", "--json", "--wire", live.wire).json
    assert verdict["ok"] is True
    assert None not in verdict["received"]
    assert turret.files("*.jsonl*") == ["deal.jsonl"]
    assert (await turret("export", conv, *url)).lines == rows


async def test_an_unknown_conversation_is_told(live: Live, turret: Turret) -> None:
    ran = await turret("export", "00" * 8, "--out", "none.jsonl")
    assert (ran.code, ran.err) == (1, "turret: unknown_conv: no conversation has this id\n")
    assert turret.files("*.jsonl*") == []


async def test_a_private_transcript_needs_a_partys_key(turret: Turret) -> None:
    async with live_broker(tuned(transcripts="parties")) as live:
        key = await trio.to_thread.run_sync(turret.key, "alfa")
        conv = await deal(live, key)
        assert (await turret("read", conv, "--url", live.http)).code == 1
        ran = await turret("read", conv, "--url", live.http, "--key", key, "--json")
        assert (ran.code, len(ran.lines)) == (0, 5)


@pytest.mark.requirement("client.pin-changed")
async def test_a_changed_wire_is_refused_before_anything_is_signed(live: Live, turret: Turret) -> None:
    key = await trio.to_thread.run_sync(turret.key, "alfa")
    ran = await turret("read", "00" * 8, "--key", key, "--wire", "ee" * 32)
    assert ran.code == 1
    assert ran.err.startswith("turret: wire_fault: the wire shows the key")
    assert "known_wires" in ran.err, "what to do about it"


def test_all_keys_that_the_wire_lists_are_its_own() -> None:
    info = {"wire": "b", "wire_keys": [{"pk": "a", "until": 1}, {"pk": "b"}, 7, {}]}
    assert wire_keys(info) == ("a", "b")
    assert wire_keys(msgspec.json.decode(b'{"wire":"b"}')) == ("b",)
