"""What the wire's tables promise of tools and keys, read against a running broker."""

import hashlib
from typing import Any

import pytest
import trio

from broker.app import open_broker
from broker.config import Settings
from broker.store.memory import MemoryStore
from broker.wire.keyring import Keyring, WireKey
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.broker import START_MS, Bench, Party, code, open_bench, tuned

ROW = {"n", "sig", "envelope", "chain", "accepted_at"}
EVENT = {"cursor", "conv", "n", "sig", "envelope", "chain", "accepted_at", "own"}
"""Members of a transcript's row, and of a ring, env or end."""


async def results(bench: Bench) -> dict[str, dict[str, Any]]:
    """One result of each tool."""
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV", recovery_pk=SigningKey.generate().pk)
    dialling = bench.calling(alfa, brav)
    dialled = await bench.call("send_call", **dialling)
    conv = dialling["envelope"]["conv"]
    params = brav.envelope(conv, 1, "PICKUP", alfa.pk, bench.ts, dialling["sig"])
    sent = await bench.call("send_env", **params)
    follow = brav.statement("follow", bench.broker.pk, bench.ts, until=bench.ts + 60)
    screen: dict[str, Any] = {"code": "BRAV", "allow": [], "deny": [], "mode": "all"}
    screening = brav.statement("screen_desk", bench.broker.pk, bench.ts, **screen)
    reply = alfa.envelope(conv, 2, "RFQ", brav.pk, bench.ts, params["sig"])["envelope"]
    return {
        "send_call": dialled,
        "send_env": sent,
        "read_conv": await bench.call("read_conv", conv=conv, limit=1),
        "desk_rings": await bench.call("desk_rings", code="BRAV", after="0", **follow),
        "wait_for_events": await bench.call("wait_for_events", after="0", **follow),
        "resolve_code": await bench.call("resolve_code", code="BRAV"),
        "screen_desk": await bench.call("screen_desk", **screening),
        "list_convs": await bench.call("list_convs", **follow),
        "canonicalize": await bench.call("canonicalize", envelope=reply),
        "receipt": await bench.call("receipt", conv=conv, n=1),
        "wire_info": await bench.call("wire_info"),
    }


@pytest.mark.requirement("tools.results")
async def test_each_result_has_the_members_of_the_table(bench: Bench) -> None:
    made = await results(bench)
    for name, answer in made.items():
        assert not isinstance(answer, Refusal), (name, answer)
    members = {name: set(answer) for name, answer in made.items()}
    acknowledgement = {"conv", "n", "chain", "accepted_at"}
    assert members["send_call"] == members["send_env"] == acknowledgement
    assert members["read_conv"] == {"conv", "state", "parties", "head", "rows", "next"}
    assert members["desk_rings"] == {"resume", "rings", "cursor"}
    assert members["wait_for_events"] == {"resume", "events", "cursor"}
    assert members["resolve_code"] == {"code", "pk", "opened_at", "online"}
    assert members["screen_desk"] == {"code", "pk", "opened_at"}
    assert members["canonicalize"] == {"canonical", "sha256", "due"}
    info = {"wire", "wire_keys", "limits", "time", "version", "transcripts", "mcp", "dealing"}
    assert members["wire_info"] == info
    assert set(made["read_conv"]["rows"][0]) >= ROW
    assert set(made["read_conv"]["head"]) == {"n", "sig", "chain"}
    assert set(made["desk_rings"]["rings"][0]) == EVENT
    assert all(set(event) == EVENT | {"event"} for event in made["wait_for_events"]["events"])
    assert set(made["desk_rings"]["resume"]) == {"recovered", "from", "head"}
    receipt = {"do", "wire", "conv", "n", "sig", "chain", "accepted_at"}
    assert set(made["receipt"]["receipt"]) == receipt


@pytest.mark.requirement("refusals.shows-what-was-checked")
async def test_a_bad_signature_shows_the_canonical_text_and_its_digest(bench: Bench) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    params = line.next("RFQ", {"px": "1.0842"})
    answer = await bench.call("send_env", **{**params, "sig": "0" * 128})
    assert code(answer) == "bad_signature"
    text = answer.detail["canonical"].encode()
    assert line.caller.key.sign(text) == params["sig"], "these are the bytes to sign"
    assert answer.detail["sha256"] == hashlib.sha256(text).hexdigest()


@pytest.mark.requirement("order.params-agree")
@pytest.mark.parametrize("path", ["conv", "n", "from"])
async def test_params_that_disagree_with_an_envelope_name_the_member(bench: Bench, path: str) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    wrong: dict[str, Any] = {"conv": {"conv": "e" * 16}, "n": {"n": 3}, "from": {"from_pk": line.called.pk}}[
        path
    ]
    answer = await bench.call("send_env", **{**line.next("RFQ"), **wrong})
    assert (code(answer), answer.detail["path"]) == ("bad_envelope", path)


@pytest.mark.requirement("order.params-agree")
async def test_each_tool_takes_its_own_envelopes_alone(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    calling = bench.calling(alfa, brav)
    conv = calling["envelope"]["conv"]
    as_env = {name: value for name, value in calling.items() if name != "to_code"}
    answer = await bench.call("send_env", conv=conv, n=0, **as_env)
    assert (code(answer), answer.detail["path"]) == ("bad_envelope", "n")
    line = await bench.dial(alfa, brav)
    body = {"code_from": "BRAV", "code_to": "ALFA"}
    pickup = line.next("PICKUP", body)
    as_call = {name: value for name, value in pickup.items() if name not in ("conv", "n")}
    answer = await bench.call("send_call", to_code="ALFA", **as_call)
    assert (code(answer), answer.detail["path"]) == ("bad_envelope", "n")


@pytest.mark.requirement("keys.any-open-key")
async def test_calls_and_statements_may_name_any_key_of_the_wire_that_is_not_over() -> None:
    over, older, present = SigningKey.generate(), SigningKey.generate(), SigningKey.generate()
    keyring = Keyring((WireKey(over, 0, START_MS), WireKey(older, 1), WireKey(present, 2)))
    async with open_bench() as bench:
        pass
    store = MemoryStore()
    async with open_broker(Settings(), store, bench.clock, keyring) as broker:
        bench.broker, bench.store = broker, store
        for key, name, expect in (
            (over, "ALFA", "bad_statement"),
            (older, "BRAV", "accepted"),
            (present, "CHAR", "accepted"),
        ):
            statement = Party(name).statement("open_desk", key.pk, bench.ts, code=name)
            assert code(await bench.call("open_desk", **statement)) == expect
        caller, called = await bench.open("LIMA"), await bench.open("MIKE")
        for key, expect in ((over, "bad_envelope"), (older, "accepted"), (present, "accepted")):
            assert code(await bench.call("send_call", **bench.calling(caller, called, wire=key.pk))) == expect


@pytest.mark.requirement("tools.parties-mode")
async def test_in_parties_mode_receipts_are_for_parties_and_a_taken_conv_is_told() -> None:
    async with open_bench(tuned(transcripts="parties")) as bench:  # type: ignore[arg-type]  # a plain setting
        caller, called, other = await bench.open("ALFA"), await bench.open("BRAV"), await bench.open("CHAR")
        line = await bench.connect(caller, called)
        until = bench.ts + 60
        for party, expect in ((called, "accepted"), (other, "unknown_conv")):
            follow = party.statement("follow", bench.broker.pk, bench.ts, until=until)
            assert code(await bench.call("receipt", conv=line.conv, n=0, **follow)) == expect
        assert code(await bench.call("receipt", conv=line.conv, n=0)) == "unknown_conv"
        taken = bench.calling(other, called, conv=line.conv)
        dry = await bench.call("canonicalize", envelope=taken["envelope"])
        assert [refusal["code"] for refusal in dry["refusals"]] == ["conv_exists"]
        assert "due" not in dry
        assert code(await bench.call("send_call", **taken)) == "conv_exists"


@pytest.mark.requirement("retries.replay")
async def test_the_wires_own_end_sent_again_by_anybody_is_a_replay(bench: Bench, autojump_clock: Any) -> None:
    line = await bench.dial(await bench.open("ALFA"), await bench.open("BRAV"))
    await trio.sleep(31)
    row = (await bench.call("read_conv", conv=line.conv))["rows"][-1]
    params = {"conv": line.conv, "n": row["n"], "from_pk": row["envelope"]["from"]}
    answer = await bench.call("send_env", sig=row["sig"], envelope=row["envelope"], **params)
    assert answer == {
        "conv": line.conv,
        "n": 1,
        "chain": row["chain"],
        "accepted_at": row["accepted_at"],
        "replayed": True,
    }
