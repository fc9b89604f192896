"""Following an agent's or a key's stream: who may, from where, and when it ends."""

from typing import Any

import msgspec
import pytest
import trio

from broker.actors.standing import Facts
from broker.app import Caller, Ended, Watch
from broker.store.port import Head
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent, suspend
from tests.support.broker import ANYONE, Bench, code


@pytest.mark.requirement("streams.follow")
async def test_following_needs_a_proof_of_the_streams_key(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    await bench.open("BRAV")
    assert code(await bench.broker.follow(ANYONE)) == "unauthenticated"
    assert code(await bench.broker.follow(Caller(pk=alfa.key.pk), code="BRAV")) == "not_a_party"
    assert code(await bench.broker.follow(Caller(pk=alfa.key.pk), code="ZULU")) == "unknown_desk"


@pytest.mark.requirement("streams.move-ends-code")
async def test_a_stream_followed_by_code_ends_with_the_move_and_the_keys_own_goes_on(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    me = Caller(pk=alfa.key.pk)
    by_code = await bench.broker.follow(me, code="ALFA")
    by_key = await bench.broker.follow(me)
    assert not isinstance(by_code, Refusal)
    assert not isinstance(by_key, Refusal)
    async with by_code, by_key:
        await bench.call("close_desk", **alfa.statement("close_desk", bench.broker.pk, bench.ts, code="ALFA"))
        assert [delivery.kind for delivery in await by_code.receive()] == ["desk_closed"]
        with pytest.raises(Ended):
            await by_code.receive()
        assert [delivery.kind for delivery in await by_key.receive()] == ["desk_closed"]
        with trio.move_on_after(0.01) as waited:
            await by_key.receive()
        assert waited.cancelled_caught


@pytest.mark.requirement("presence.stream")
async def test_a_desk_is_online_while_a_stream_is_open_and_fifteen_seconds_after(
    bench: Bench, autojump_clock: Any
) -> None:
    alfa = await bench.open("ALFA")
    reader = await bench.broker.follow(Caller(pk=alfa.key.pk))
    watch = await bench.broker.watch(ANYONE, ["ALFA", "ZULU"])
    assert isinstance(watch, Watch)
    assert not isinstance(reader, Refusal)
    async with watch:
        assert watch.snapshot == {"ALFA": True, "ZULU": False}
        async with reader:
            await trio.sleep(100)
        start = trio.current_time()
        assert await watch.receive() == {"ALFA": False}
        assert trio.current_time() - start == pytest.approx(15.0)


@pytest.mark.requirement("presence.stream")
async def test_a_follow_that_is_cancelled_at_any_checkpoint_leaves_no_reader(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    services = bench.broker._services
    for checkpoints in range(12):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:

                async def cancel_after(count: int, scope: trio.CancelScope, nursery: trio.Nursery) -> None:
                    for _ in range(count):
                        await trio.lowlevel.checkpoint()
                    scope.cancel()
                    nursery.cancel_scope.cancel()

                nursery.start_soon(cancel_after, checkpoints, scope, nursery)
                reader = await bench.broker.follow(Caller(pk=alfa.key.pk), code="ALFA")
                assert not isinstance(reader, Refusal)
                reader.close()
                nursery.cancel_scope.cancel()
        assert services.hub.statistics().readers == 0, checkpoints


@pytest.mark.requirement("doors.agent-stream", "doors.listen-scope")
async def test_a_token_reads_its_agents_stream_and_its_desks_and_nobody_elses(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    agent = await make_agent(bench, "alice", key=alfa.key)
    deaf = msgspec.structs.replace(agent, scopes=frozenset({"arena"}))
    follow = bench.broker.follow
    assert code(await follow(agent, code="BRAV")) == "not_a_party"
    for named in (None, "ALFA"):
        refused = await follow(deaf, code=named)
        assert isinstance(refused, Refusal)
        assert (refused.code, refused.detail) == ("insufficient_scope", {"scope": "message"})
        reader = await follow(agent, code=named)
        assert not isinstance(reader, Refusal)
        async with reader:
            await bench.dial(brav, alfa)
            assert [each.kind for each in await reader.receive()] == ["ring"]
    owner = Caller(principal="ow_1", owner="ow_1", issued=bench.ts)
    bench.broker._services.standing.told("ow_1", Facts())
    for named in (None, "ALFA"):  # its token is good: a 401 would send it for another one
        assert code(await follow(owner, code=named)) == "agent_required"
    waited = await bench.broker.call(owner, "wait_for_events", b'{"wait_ms":0}')
    assert code(waited) == "agent_required"


@pytest.mark.requirement("doors.expiry")
async def test_a_stream_read_by_a_token_ends_with_it_and_says_so(bench: Bench, autojump_clock: Any) -> None:
    agent = await make_agent(bench, "alice")
    reader = await bench.broker.follow(msgspec.structs.replace(agent, until=bench.ts + 900))
    assert not isinstance(reader, Refusal)
    start = trio.current_time()
    async with reader:
        with pytest.raises(Ended) as ended:
            await reader.receive()
    assert ended.value.refusal.code == "unauthenticated"
    assert trio.current_time() - start == pytest.approx(900, abs=1)


@pytest.mark.requirement("doors.right-lost")
async def test_a_right_that_ends_while_a_stream_is_opened_opens_none(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await make_agent(bench, "Ann")
    head = bench.store.head

    async def slow(stream: str) -> Head:
        suspend(bench, ann)
        return await head(stream)

    monkeypatch.setattr(bench.store, "head", slow)
    assert code(await bench.broker.follow(ann)) == "suspended"
    assert bench.broker.statistics().readers == 0
