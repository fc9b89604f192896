"""Artifacts by their ref: to anybody who has it, and never other bytes than it names."""

from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from broker.core.artifact import MAX_BYTES, ref_of
from broker.store.port import Put, Unit
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.artifacts import damage, finish, publish_one
from tests.support.broker import ANYONE, STRANGER, Bench, code


@pytest.mark.requirement("artifact.by-ref")
async def test_whoever_has_the_ref_reads_the_exact_bytes(bench: Bench) -> None:
    ref, stored = await publish_one(bench)
    for who in (ANYONE, STRANGER, await make_agent(bench, "Bob")):
        content = await bench.broker.artifact(who, ref)
        assert content == stored
        assert ref_of(content) == ref


@pytest.mark.requirement("artifact.by-ref")
async def test_an_artifact_names_no_session_and_no_time(bench: Bench) -> None:
    session = await finish(bench, await make_agent(bench, "Ann"))
    content: Any = await bench.broker.artifact(ANYONE, session["artifact"]["ref"])
    assert session["session_id"].encode() not in content
    assert str(bench.clock.now_ms())[:8].encode() not in content
    assert set(msgspec.json.decode(content)) == {"events", "format", "kind", "result"}


@pytest.mark.requirement("artifact.by-ref")
@pytest.mark.parametrize("ref", ["0" * 64, "0" * 63, "A" * 64, "0" * 64 + "\n", "", "../artifact"])
async def test_what_is_no_ref_of_any_is_not_found(bench: Bench, ref: str) -> None:
    await publish_one(bench)
    refused = await bench.broker.artifact(ANYONE, ref)
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.status) == ("NOT_FOUND", 404)


@pytest.mark.requirement("artifact.intact")
async def test_bytes_that_are_not_what_the_ref_names_are_not_given_out(bench: Bench) -> None:
    ref, _ = await publish_one(bench)
    await damage(bench, ref)
    assert code(await bench.broker.artifact(ANYONE, ref)) == "unavailable"


@pytest.mark.requirement("artifact.bounded")
async def test_more_than_any_artifact_has_is_not_given_out(bench: Bench) -> None:
    for size, expected in ((MAX_BYTES, "accepted"), (MAX_BYTES + 1, "too_large")):
        content = b" " * size
        await bench.store.commit(Unit(puts=(Put("artifact", ref_of(content), 0, content),)))
        assert code(await bench.broker.artifact(ANYONE, ref_of(content))) == expected


@pytest.mark.requirement("artifact.guessing")
async def test_an_address_that_guesses_has_to_wait_and_still_reads_what_it_knows(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    ref, content = await publish_one(bench)
    answers = [code(await bench.broker.artifact(STRANGER, f"{n:064x}")) for n in range(21)]
    assert answers == ["NOT_FOUND"] * 20 + ["rate_limited"]
    assert await bench.broker.artifact(STRANGER, ref) == content
    assert code(await bench.broker.artifact(ANYONE, "0" * 64)) == "NOT_FOUND"
    await trio.sleep(10)
    assert code(await bench.broker.artifact(STRANGER, "0" * 64)) == "NOT_FOUND"
