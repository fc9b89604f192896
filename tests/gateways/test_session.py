"""The protocol of a connection, without a carrier: what is answered, in what order, and what ends it."""

import json
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.app import Caller
from broker.config import Settings, Streams
from broker.store.memory import MemoryStore
from broker.wire.refusals import refuse
from gateways.render import CLOSE
from gateways.session import restart
from gateways.underway import IN_FLIGHT
from tests.support.broker import open_bench
from tests.support.broker_fake import DEALER_PK, FakeBroker
from tests.support.streams import Writer
from tests.support.ws import SETTINGS, Direct, authenticate, capability, open_session, request

VECTORS = Path(__file__).parents[1] / "vectors/jsontestsuite/test_parsing"
SUITE = [(path.stem, path.read_bytes()) for path in sorted(VECTORS.glob("*.json"))]
STATEMENT: dict[str, Any] = {"statement": {"pk": DEALER_PK}, "sig": "ab" * 64}


async def greeted(peer: Direct) -> str:
    """Take the greeting; the challenge."""
    peer.session.greet()
    hello = await peer.next()
    return str(hello["params"]["challenge"])


# Frames and answers


@pytest.mark.requirement("ws.hello-first")
async def test_the_greeting_has_challenge_wire_limits_and_time(autojump_clock: MockClock) -> None:
    async with open_bench() as bench, open_session(bench.broker) as peer, open_session(bench.broker) as other:
        peer.session.greet()
        hello = await peer.next()
        assert hello["method"] == "hello"
        assert "id" not in hello
        params = hello["params"]
        assert len(params["challenge"]) == 32
        assert int(params["challenge"], 16) >= 0
        assert params["wire"] == bench.broker.pk
        assert params["limits"]["frame_bytes"] == 65_536
        assert params["time"] == bench.clock.now_ms()
        assert await greeted(other) != params["challenge"]


@pytest.mark.requirement("ws.methods-are-tools")
async def test_a_tool_is_called_by_its_name_and_answered_under_the_requests_id() -> None:
    broker = FakeBroker()
    async with open_session(broker, Caller(address="192.0.2.7")) as peer:
        await peer.session.receive([request("x-1", "echo", a=1)])
        assert await peer.next() == {"jsonrpc": "2.0", "id": "x-1", "result": {"echo": {"a": 1}}}
        assert broker.calls[0][0].address == "192.0.2.7"


@pytest.mark.requirement("ws.methods-are-tools", "ws.params-fault")
async def test_a_refusal_is_an_error_with_the_refusal_as_data_and_wrong_params_say_invalid_params() -> None:
    broker = FakeBroker()
    broker.answers["send_env"] = refuse("conflict", "n is taken", head={"n": 4})
    broker.answers["echo"] = refuse("bad_request", "what?", path="a")
    async with open_session(broker) as peer:
        error = (await peer.ask("send_env"))["error"]
        assert error["code"] == -32000
        assert error["data"]["code"] == "conflict"
        assert error["data"]["head"] == {"n": 4}
        assert error["data"]["rebuild"] is True
        error = (await peer.ask("echo"))["error"]
        assert error["code"] == -32602
        assert error["data"]["refusal"]["path"] == "a"


@pytest.mark.requirement("ws.malformed-frame")
async def test_an_unknown_method_is_said_to_be_unknown() -> None:
    async with open_session(FakeBroker()) as peer:
        assert (await peer.ask("tools/list"))["error"]["code"] == -32601
        assert "result" in await peer.ask("echo")


@pytest.mark.requirement("ws.fault-hidden", "ws.contained")
async def test_a_crash_in_a_tool_shows_an_incident_number_and_nothing_else() -> None:
    broker = FakeBroker()
    broker.answers["send_env"] = RuntimeError("the secret is hush")
    async with open_session(broker) as peer:
        error = (await peer.ask("send_env"))["error"]
        assert error["code"] == -32603
        assert list(error["data"]) == ["incident"]
        assert "hush" not in json.dumps(error)
        assert "result" in await peer.ask("echo")


@pytest.mark.requirement("ws.fault-hidden")
async def test_a_crash_in_a_method_of_the_connection_is_contained_as_well() -> None:
    broker = FakeBroker()
    broker.follow = None  # type: ignore[assignment,method-assign]
    async with open_session(broker) as peer:
        assert (await peer.ask("follow", **STATEMENT))["error"]["code"] == -32603
        assert "result" in await peer.ask("echo")


@pytest.mark.requirement("ws.concurrent")
async def test_requests_are_under_way_together_and_answered_as_they_finish() -> None:
    broker = FakeBroker()
    gate = trio.Event()

    async def slowly(*_: Any) -> dict[str, str]:
        await gate.wait()
        return {"was": "slow"}

    broker.answers["send_env"] = slowly
    async with open_session(broker) as peer:
        await peer.session.receive([request(1, "send_env"), request(2, "echo")])
        assert (await peer.next())["id"] == 2
        gate.set()
        assert (await peer.next())["id"] == 1


@pytest.mark.requirement("ws.no-silence")
@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","method":"echo","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":null,"method":"echo"}',
        b'{"jsonrpc":"2.0","id":true,"method":"echo"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"echo"}',
        b'[{"jsonrpc":"2.0","id":1,"method":"echo"}]',
        b'"echo"',
        None,
    ],
)
async def test_a_frame_that_is_no_request_with_an_id_is_answered_as_invalid(frame: bytes | None) -> None:
    async with open_session(FakeBroker()) as peer:
        await peer.session.receive([frame])
        answer = await peer.next()
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
        assert "result" in await peer.ask("echo")


@pytest.mark.requirement("ws.malformed-frame", "ws.no-silence")
@pytest.mark.parametrize(("name", "data"), SUITE, ids=[name for name, _ in SUITE])
async def test_every_case_of_the_json_test_suite_is_answered_once_with_a_typed_error(
    name: str, data: bytes
) -> None:
    async with open_session(FakeBroker()) as peer:
        await peer.session.receive([data, request(7, "echo")])
        error, good = await peer.rest()
        assert error["error"]["code"] in ((-32700,) if name.startswith("n_") else (-32700, -32600))
        assert good["id"] == 7


@pytest.mark.requirement("ws.no-silence")
@hypothesis.given(
    st.lists(
        st.none()
        | st.binary(max_size=40)
        | st.builds(
            lambda method, params: json.dumps(
                {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            ).encode(),
            st.sampled_from(
                ["echo", "follow", "authenticate", "unfollow", "watch", "ping", "send_env", "nothing"]
            ),
            st.recursive(
                st.none() | st.integers() | st.text(max_size=5),
                lambda each: (
                    st.lists(each, max_size=3)
                    | st.dictionaries(
                        st.sampled_from(["code", "codes", "after", "statement", "sig", "token", "x"]), each
                    )
                ),
                max_leaves=6,
            ),
        ),
        max_size=8,
    )
)
async def test_whatever_comes_each_frame_gets_exactly_one_answer(frames: list[bytes | None]) -> None:
    async with open_session(FakeBroker()) as peer:
        await peer.session.receive(frames)
        answers = await peer.rest()
        assert len(answers) == len(frames)
        assert all("result" in each or each["error"]["code"] in range(-32768, -31999) for each in answers)
        assert peer.outbox.closing is None


# Who the peer is


@pytest.mark.requirement("ws.authenticate", "ws.follow", "ws.presence")
async def test_a_signed_challenge_proves_the_key_and_opens_its_stream(autojump_clock: MockClock) -> None:
    async with open_bench() as bench, open_session(bench.broker) as peer:
        abcd = await bench.open("ABCD")
        challenge = await greeted(peer)
        assert (await peer.result("resolve_code", code="ABCD"))["online"] is False
        assert await peer.result("authenticate", **authenticate(abcd, bench, challenge)) == {"pk": abcd.pk}
        assert (await peer.result("follow", code="ABCD"))["recovered"] is True
        assert (await peer.result("resolve_code", code="ABCD"))["online"] is True


@pytest.mark.requirement("ws.authenticate")
async def test_another_connections_challenge_proves_nothing(autojump_clock: MockClock) -> None:
    async with open_bench() as bench, open_session(bench.broker) as peer, open_session(bench.broker) as other:
        abcd = await bench.open("ABCD")
        await greeted(peer)
        stolen = authenticate(abcd, bench, await greeted(other))
        assert (await peer.refusal("authenticate", **stolen))["code"] == "bad_statement"
        assert (await peer.refusal("follow"))["code"] == "unauthenticated"


@pytest.mark.requirement("ws.authenticate-order")
async def test_a_follow_may_be_sent_right_behind_authenticate(autojump_clock: MockClock) -> None:
    async with open_bench() as bench, open_session(bench.broker) as peer:
        abcd = await bench.open("ABCD")
        proof = authenticate(abcd, bench, await greeted(peer))
        await peer.session.receive([request(1, "authenticate", **proof), request(2, "follow")])
        assert [(each["id"], "result" in each) for each in await peer.rest()] == [(1, True), (2, True)]


@pytest.mark.requirement("ws.unauthenticated")
async def test_without_authentication_streams_are_refused_and_open_tools_work(
    autojump_clock: MockClock,
) -> None:
    async with open_bench() as bench, open_session(bench.broker) as peer:
        await bench.open("ABCD")
        assert (await peer.refusal("follow"))["code"] == "unauthenticated"
        assert (await peer.refusal("follow", code="ABCD"))["code"] == "unauthenticated"
        assert (await peer.refusal("authenticate", token="t"))["code"] == "unauthenticated"
        assert (await peer.result("resolve_code", code="ABCD"))["code"] == "ABCD"


# Bounds and the end


class Gated(FakeBroker):
    """A broker whose `send_env` waits at a gate and counts who is inside."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = trio.Event()
        self.inside = 0
        self.answers["send_env"] = self._enter

    async def _enter(self, *_: Any) -> dict[str, int]:
        self.inside += 1
        await self.gate.wait()
        self.inside -= 1
        return {}


@pytest.mark.requirement("ws.back-pressure")
async def test_no_more_than_a_bounded_number_of_requests_are_under_way() -> None:
    broker = Gated()
    async with open_session(broker) as peer:
        frames = [request(n, "send_env") for n in range(IN_FLIGHT + 10)]
        peer.nursery.start_soon(peer.session.receive, frames)
        await wait_all_tasks_blocked()
        assert broker.inside == IN_FLIGHT
        broker.gate.set()
        assert len(await peer.rest()) == IN_FLIGHT + 10


@pytest.mark.requirement("ws.back-pressure")
async def test_while_too_much_waits_to_be_sent_no_request_is_begun_and_no_event_put() -> None:
    broker = FakeBroker(SETTINGS)
    broker.answers["send_env"] = {"much": "x" * 300_000}
    async with open_session(broker) as peer:
        await peer.result("follow", **STATEMENT)
        await peer.session.receive([request(1, "send_env")])
        await wait_all_tasks_blocked()
        peer.nursery.start_soon(peer.session.receive, [request(2, "send_env")])
        broker.tell("ring")
        await wait_all_tasks_blocked()
        assert len(broker.calls) == 1
        assert len(peer.outbox.take()) == 1
        await wait_all_tasks_blocked()
        assert len(broker.calls) == 2
        assert {each.get("method", each.get("id")) for each in await peer.rest()} == {"ring", 2}


@pytest.mark.requirement("ws.back-pressure")
async def test_large_answers_that_were_asked_for_together_wait_for_the_peer_to_read() -> None:
    broker = FakeBroker(Settings(streams=Streams(queue_bytes=65_536)))
    large = {"much": "x" * broker.settings.streams.queue_bytes * 4}
    broker.answers["send_env"] = large
    async with open_session(broker) as peer:
        peer.nursery.start_soon(peer.session.receive, [request(n, "send_env") for n in range(IN_FLIGHT)])
        await wait_all_tasks_blocked()
        assert peer.outbox.size < 2 * len(large["much"])
        assert sorted([(await peer.next())["id"] for _ in range(IN_FLIGHT)]) == list(range(IN_FLIGHT))
        assert peer.outbox.closing is None


@pytest.mark.requirement("ws.slow-reader", "ws.whole-frames")
async def test_a_peer_that_never_reads_holds_bounded_memory_and_is_closed_as_slow(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench, open_session(bench.broker) as peer:
        abcd = await bench.open("ABCD")
        await peer.result("follow", **capability(abcd, bench))
        writer = Writer(store, f"pk:{abcd.pk}", size=8000)
        most = 0
        for _ in range(40):
            await writer.write(64)
            most = max(most, peer.outbox.size + bench.broker.statistics().pending_bytes)
        assert most < 2 * SETTINGS.streams.queue_bytes
        assert peer.outbox.size < SETTINGS.streams.queue_bytes
        received = 0
        while peer.outbox.closing is None:
            received += sum(b'"env"' in each for each in peer.outbox.take())
            await wait_all_tasks_blocked()
        assert peer.outbox.closing == CLOSE["slow"]
        assert received < 40 * 64
        assert bench.broker.statistics().slow_readers == 1


@pytest.mark.requirement("ws.follow")
async def test_large_events_reach_a_reader_that_comes_later_and_the_live_ones_too(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench, open_session(bench.broker) as peer:
        abcd = await bench.open("ABCD")
        writer = Writer(store, f"pk:{abcd.pk}", size=8000)
        await writer.write(500)
        await peer.result("follow", after="0", **capability(abcd, bench))
        seen: list[int] = []
        while len(seen) < 500:
            seen += [each["params"]["n"] for each in await peer.rest()]
        await writer.write(1)
        seen += [each["params"]["n"] for each in await peer.rest()]
        assert seen == list(range(501))


@pytest.mark.requirement("ws.restart")
async def test_draining_takes_no_more_requests_and_waits_for_those_under_way() -> None:
    broker = Gated()
    async with open_session(broker) as peer:
        await peer.session.receive([request(1, "send_env")])
        await wait_all_tasks_blocked()
        done = trio.Event()

        async def drain() -> None:
            await peer.session.drain()
            done.set()

        peer.nursery.start_soon(drain)
        await wait_all_tasks_blocked()
        await peer.session.receive([request(2, "send_env")])
        assert not done.is_set()
        broker.gate.set()
        assert [each["id"] for each in await peer.rest()] == [1]
        assert done.is_set()


@pytest.mark.requirement("ws.restart")
def test_the_hint_when_to_come_back_differs_and_fits_a_close_frame() -> None:
    hints = set()
    for _ in range(50):
        close = restart()
        assert close.code == 1012
        assert len(close.reason) <= 123
        hints.add(msgspec.json.decode(close.reason)["retry_in_ms"])
    assert len(hints) > 10
    assert all(500 <= each < 5500 for each in hints)


async def test_cancelling_the_connection_leaves_no_reader_open(autojump_clock: MockClock) -> None:
    async with open_bench() as bench:
        abcd = await bench.open("ABCD")
        async with open_session(bench.broker) as peer:
            await peer.session.receive([request(1, "follow", **capability(abcd, bench))])
            peer.nursery.cancel_scope.cancel()
        assert bench.broker.statistics().readers == 0
