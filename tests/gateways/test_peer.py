"""Who a connection speaks for: tokens and keys side by side, renewal in place, and the end with the right."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.apart import LARGE
from broker.app import Caller
from broker.wire.refusals import refuse
from gateways.render import CLOSE
from tests.support.agents import make_agent, suspend
from tests.support.broker import Bench, open_bench
from tests.support.broker_fake import FakeBroker
from tests.support.tokens import FakeBearers, agent_of, gate_of
from tests.support.ws import Direct, authenticate, capability, open_port, open_session, request

EXPIRED = CLOSE["auth_expired"]


@asynccontextmanager
async def token_session(
    broker: Any, caller: Caller | None = None
) -> AsyncIterator[tuple[Direct, FakeBearers]]:
    """A session that takes tokens, and their judge."""
    gate, bearers = gate_of(broker)
    async with open_session(broker, caller, bearing=gate.admit) as peer:
        try:
            yield peer, bearers
        finally:
            peer.session.close()


async def challenge_of(peer: Direct) -> str:
    peer.session.greet()
    hello = await peer.next()
    return str(hello["params"]["challenge"])


@pytest.mark.requirement("doors.ws-token")
async def test_a_token_says_who_calls_and_what_it_may() -> None:
    broker = FakeBroker()
    async with token_session(broker) as (peer, bearers):
        bearers.give("t", agent_of("ag_1", scopes=frozenset({"task", "message"}), until=4_000_000_000))
        told = await peer.result("authenticate", token="t")
        assert told == {
            "principal": "ag_1",
            "agent_id": "ag_1",
            "scopes": ["message", "task"],
            "until": 4_000_000_000,
        }
        await peer.result("echo")
        assert broker.calls[-1][0].agent == "ag_1"
        assert broker.calls[-1][0].until is None, (
            "the connection ends with the token: its streams need no end"
        )


@pytest.mark.requirement("doors.ws-token", "doors.hostile-tokens")
async def test_a_bad_token_changes_nothing() -> None:
    broker = FakeBroker()
    async with token_session(broker) as (peer, bearers):
        bearers.give("t", agent_of("ag_1"))
        for token in ("bad", "", "a b", "t\r\n", "x" * 9000):
            assert (await peer.refusal("authenticate", token=token))["code"] == "unauthenticated"
        await peer.result("authenticate", token="t")
        assert (await peer.refusal("authenticate", token="bad"))["code"] == "unauthenticated"
        both = await peer.refusal("authenticate", token="t", statement={}, sig="00")
        assert both["code"] == "bad_request"
        assert (await peer.refusal("authenticate", token=7))["code"] == "bad_request"
        await peer.result("echo")
        assert broker.calls[-1][0].agent == "ag_1"
    async with open_session(broker) as without:
        assert (await without.refusal("authenticate", token="t"))["code"] == "unauthenticated"


@pytest.mark.requirement("doors.ws-token")
async def test_without_a_code_a_token_follows_its_agents_stream(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    agent = await make_agent(bench, "alice", key=alfa.key)
    async with token_session(bench.broker) as (peer, bearers):
        bearers.give("t", agent)
        assert (await peer.refusal("follow"))["code"] == "unauthenticated"
        await peer.result("authenticate", token="t")
        await peer.result("follow")
        line = await bench.dial(brav, alfa)
        ring = await peer.next()
        assert (ring["method"], ring["params"]["conv"]) == ("ring", line.conv)
        assert (await peer.refusal("follow", code="BRAV"))["code"] == "not_a_party"
        assert await peer.result("unfollow") == {"ended": 1}


@pytest.mark.requirement("doors.ws-both")
async def test_a_key_and_a_token_stand_side_by_side(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    agent = await make_agent(bench, "alice", key=alfa.key)
    for first in ("token", "statement"):
        async with token_session(bench.broker) as (peer, bearers):
            bearers.give("t", agent)
            proof = authenticate(brav, bench, await challenge_of(peer))
            for each in ({"token": "t"}, proof) if first == "token" else (proof, {"token": "t"}):
                await peer.result("authenticate", **each)
            await peer.result("follow", code="BRAV")
            await peer.result("follow", code="ALFA")
            await peer.result("follow")
            await peer.session.receive([request(9, "wait_for_events")])
            assert (await peer.next())["result"]["events"] == []
            assert await peer.result("unfollow") == {"ended": 3}


@pytest.mark.requirement("doors.ws-both")
async def test_a_follow_statement_says_whose_stream_is_meant_whatever_the_token(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    agent = await make_agent(bench, "alice", key=alfa.key)
    async with token_session(bench.broker) as (peer, bearers):
        bearers.give("t", agent)
        await peer.result("authenticate", token="t")
        await peer.result("follow", **capability(brav, bench))
        await bench.dial(brav, alfa)
        assert (await peer.next())["method"] == "env", "BRAV's own CALL, and no ring of ALFA's"


@pytest.mark.requirement("doors.expiry", "doors.ws-close")
async def test_56_a_connection_ends_when_its_token_runs_out(autojump_clock: MockClock) -> None:
    async with open_bench() as bench:
        agent = await make_agent(bench, "alice")
        gate, bearers = gate_of(bench.broker)
        async with open_port(bench.broker, gate=gate) as port:
            client = await port.dial()
            await trio.sleep(1)
            bearers.give("t", agent, until=bench.ts + 5)
            assert "result" in await client.ask("authenticate", token="t")
            assert "result" in await client.ask("follow")
            start = trio.current_time()
            assert await client.wait_closed(20) == (4001, EXPIRED.reason)
            assert trio.current_time() - start == pytest.approx(5, abs=1)
        assert bench.broker._services.standing._held == {}


@pytest.mark.requirement("doors.expiry")
async def test_an_upgrade_that_carries_a_token_ends_with_it_too(autojump_clock: MockClock) -> None:
    async with open_bench() as bench:
        agent = await make_agent(bench, "alice")
        gate, bearers = gate_of(bench.broker)
        async with open_port(bench.broker, gate=gate) as port:
            bearers.give("t", agent, until=bench.ts + 5)
            client = await port.dial({"Authorization": "Bearer t"})
            assert "result" in await client.ask("follow")
            start = trio.current_time()
            assert (await client.wait_closed(20))[0] == 4001
            assert trio.current_time() - start == pytest.approx(5, abs=1)


@pytest.mark.requirement("doors.renewal")
async def test_a_token_is_renewed_in_place_and_its_streams_go_on(autojump_clock: MockClock) -> None:
    async with open_bench() as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        agent = await make_agent(bench, "alice", key=alfa.key)
        gate, bearers = gate_of(bench.broker)
        async with open_port(bench.broker, gate=gate) as port:
            client = await port.dial()
            bearers.give("t1", agent, until=bench.ts + 5)
            bearers.give("t2", agent, until=bench.ts + 60)
            await client.ask("authenticate", token="t1")
            await client.ask("follow")
            await trio.sleep(4)
            assert "result" in await client.ask("authenticate", token="t2")
            await trio.sleep(10)
            await bench.dial(brav, alfa)
            assert (await client.receive())["method"] == "ring"
            start = trio.current_time()
            assert (await client.wait_closed(100))[0] == 4001
            assert trio.current_time() - start == pytest.approx(46, abs=1)


@pytest.mark.requirement("doors.renewal")
async def test_a_token_of_another_subject_renews_nothing() -> None:
    broker = FakeBroker()
    async with token_session(broker) as (peer, bearers):
        for name, subject in (("t1", "ag_1"), ("t2", "ag_1"), ("other", "ag_2")):
            bearers.give(name, agent_of(subject, client=name))
        await peer.result("authenticate", token="t1")
        refusal = await peer.refusal("authenticate", token="other")
        assert (refusal["code"], "another subject" in refusal["message"]) == ("unauthenticated", True)
        await peer.result("echo")
        assert broker.calls[-1][0].client == "t1"
        await peer.result("authenticate", token="t2")
        await peer.result("echo")
        assert broker.calls[-1][0].client == "t2"
        assert [each for each, _ in broker.held] == ["ag_1"]


@pytest.mark.requirement("doors.right-lost", "doors.ws-close")
@pytest.mark.parametrize("by", ["token", "upgrade", "key"])
async def test_57_who_loses_the_right_to_speak_is_closed_at_once_with_a_code_of_its_own(
    autojump_clock: MockClock, by: str
) -> None:
    async with open_bench() as bench:
        alfa = await bench.open("ALFA")
        agent = await make_agent(bench, "alice", key=alfa.key)
        gate, bearers = gate_of(bench.broker)
        bearers.give("t", agent, until=bench.ts + 900)
        async with open_port(bench.broker, gate=gate) as port:
            client = await port.dial({"Authorization": "Bearer t"} if by == "upgrade" else None)
            if by == "token":
                await client.ask("authenticate", token="t")
            elif by == "key":
                proof = authenticate(alfa, bench, client.hello["challenge"])
                await client.ask("authenticate", **proof)
            await client.ask("follow")
            await client.send(request(77, "wait_for_events", wait_ms=20_000))
            await wait_all_tasks_blocked()
            start = trio.current_time()
            suspend(bench, agent)
            closed = await client.wait_closed(1)
            lost = "unauthenticated" if by == "key" else "suspended"
            assert (closed[0], closed[1].split(":")[0]) == (4001, lost)
            assert trio.current_time() - start <= 1
            assert closed[0] not in {each.code for name, each in CLOSE.items() if name != "auth_expired"}
            assert not [each for each in client.texts() if each.get("id") == 77], "nothing more is handed out"
            if by == "token":
                again = await port.dial()
                refused = await again.ask("authenticate", token="t")
                assert refused["error"]["data"]["code"] == "suspended"
        assert bench.broker._services.standing._held == {}
        assert not bench.broker._services.hub.statistics().readers


@pytest.mark.requirement("doors.right-lost")
async def test_nothing_that_waits_is_handed_out_to_who_has_lost_the_right() -> None:
    broker = FakeBroker()
    async with token_session(broker) as (peer, bearers):
        bearers.give("t", agent_of("ag_1"))
        await peer.result("authenticate", token="t")
        await peer.session.receive([request(1, "echo"), request(2, "echo")])
        await wait_all_tasks_blocked()
        assert peer.outbox.size
        broker.lose("ag_1", refuse("suspended", "no"))
        assert peer.outbox.take() == []
        await peer.session.receive([request(3, "echo")])
        assert (await peer.rest(), len(broker.calls)) == ([], 2)


@pytest.mark.requirement("doors.right-lost")
async def test_a_right_lost_between_upgrade_and_greeting_ends_the_connection(bench: Bench) -> None:
    agent = await make_agent(bench, "alice")
    suspend(bench, agent)
    async with open_session(bench.broker, agent) as peer:
        assert peer.outbox.closing is not None
        assert peer.outbox.closing.code == 4001
        await peer.session.receive([request(1, "ping")])
        assert await peer.rest() == []
        peer.session.close()
    assert bench.broker._services.standing._held == {}


@pytest.mark.requirement("doors.right-lost")
async def test_a_connection_cut_in_any_way_holds_nothing(autojump_clock: MockClock) -> None:
    async with open_bench() as bench:
        agent = await make_agent(bench, "alice")
        gate, bearers = gate_of(bench.broker)
        bearers.give("t", agent, until=bench.ts + 900)
        standing = bench.broker._services.standing
        async with open_port(bench.broker, gate=gate) as port:
            left = await port.dial({"Authorization": "Bearer t"})
            await port.dial({"Authorization": "Bearer t"})
            assert len(standing._held[agent.agent or ""]) == 2
            await left.stream.aclose()
            await trio.sleep(5)
            assert len(standing._held[agent.agent or ""]) == 1
        assert standing._held == {}


@pytest.mark.requirement("doors.challenge", "doors.hostile-tokens")
async def test_an_upgrade_with_a_bad_token_is_401_with_the_way_to_one() -> None:
    broker = FakeBroker()
    gate, bearers = gate_of(broker)
    bearers.give("t", agent_of("ag_1"))
    async with open_port(broker, gate=gate) as port:
        for path, shown in (
            ("/", "Authorization: Bearer bad"),
            ("/ws", "Authorization: Bearer"),
            ("/", "Authorization: Bearer t\r\nAuthorization: Bearer t"),
            ("/?access_token=t", "Authorization: Basic t"),
        ):
            stream = await port.connect()
            head = f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
            await stream.send_all(f"{head}{key}{shown}\r\n\r\n".encode())
            answer = await stream.receive_some(65_536)
            if "\n" in shown:
                assert answer.startswith(b"HTTP/1.1 400 ")
                continue
            assert answer.startswith(b"HTTP/1.1 401 ")
            assert b"www-authenticate: Bearer resource_metadata=" in answer
        client = await port.dial(path="/?access_token=t")
        await client.ask("echo")
        assert broker.calls[-1][0].principal is None
    assert [token for token, _ in bearers.asked] == ["bad"]


async def test_the_wall_may_step_without_ending_a_token_early(autojump_clock: MockClock) -> None:
    async with open_bench() as bench:
        agent = await make_agent(bench, "alice")
        async with token_session(bench.broker) as (peer, bearers):
            bearers.give("t", agent, until=bench.ts + 50)
            await peer.result("authenticate", token="t")
            bench.clock.step(-100_000)
            await trio.sleep(60)
            assert peer.outbox.closing is None
            bench.clock.step(200_000)
            await trio.sleep(31)
            assert peer.outbox.closing == EXPIRED


async def test_a_suspended_subject_is_refused_at_authenticate() -> None:
    broker = FakeBroker()
    async with token_session(broker) as (peer, bearers):
        bearers.give("t", agent_of("ag_1"))
        broker.lose("ag_1", refuse("suspended", "no"))
        assert (await peer.refusal("authenticate", token="t"))["code"] == "suspended"
        assert broker.held == []
        assert msgspec.structs.asdict(Caller())["principal"] is None


@pytest.mark.requirement("doors.large")
async def test_a_large_frame_is_never_read_on_the_spot() -> None:
    async with open_session(FakeBroker()) as peer:
        frames = [request(0, "echo"), request(1, "echo", text="x" * LARGE), request(2, "echo")]
        assert peer.session.take(frames) == 1
        await peer.session.receive(frames[1:])
        assert {(await peer.next())["id"] for _ in range(3)} == {0, 1, 2}
