"""Requests of one connection: side by side, but those of one conversation one after the other."""

import json
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.app import Caller
from broker.wire.envelope import bootstrap
from gateways.jsonrpc import Request
from gateways.underway import IN_FLIGHT, PARKED, Underway, line_of
from tests.support.broker import Bench, Party, open_bench
from tests.support.ws import open_session, request

A, B = "a" * 16, "b" * 16


def sending(conv: str | None = A, *, quoted: str | None = None, method: str = "send_env") -> Request:
    params: dict[str, Any] = {"envelope": {"body": {"conv": "f" * 16}, "conv": quoted or conv}}
    if quoted is None:
        params["conv"] = conv
    return Request(1, True, method, json.dumps(params).encode())


@pytest.mark.requirement("ws.sends-in-order")
def test_a_line_is_the_conversation_that_is_sent_in() -> None:
    assert line_of(sending()) == A
    assert line_of(sending(quoted=B, method="send_call")) == B
    assert line_of(sending(method="read_conv")) is None
    for method, name in (
        ("send_channel_message", "channel_id"),
        ("send_direct_message", "recipient_agent_id"),
    ):
        assert line_of(Request(1, True, method, json.dumps({name: "x1", "body": "hi"}).encode())) == "x1"
    assert line_of(Request(1, True, "join_channel", b'{"channel_id":"x1"}')) is None


@given(
    st.binary()
    | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps).map(str.encode)
)
def test_whatever_stands_in_params_has_a_line_or_none(params: bytes) -> None:
    line = line_of(Request(1, True, "send_env", params))
    assert line is None or isinstance(line, str)


class Log:
    """What runs and what has ended; a request named in `held` ends when it is let go."""

    def __init__(self) -> None:
        self.begun: list[Any] = []
        self.ended: list[Any] = []
        self.held: dict[Any, trio.Event] = {}

    async def run(self, request: Request, _: Caller) -> None:
        self.begun.append(request.id)
        if (event := self.held.get(request.id)) is not None:
            await event.wait()
        await trio.lowlevel.checkpoint()
        self.ended.append(request.id)


def named(id: int, conv: str | None) -> Request:
    method = "echo" if conv is None else "send_env"
    return Request(id, True, method, json.dumps({"conv": conv or A}).encode())


@pytest.mark.requirement("ws.sends-in-order", "ws.concurrent")
async def test_what_is_sent_in_one_conversation_waits_and_all_else_goes_on() -> None:
    log = Log()
    log.held[1] = trio.Event()
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            underway = Underway(nursery, log.run)
            for id, conv in ((1, A), (2, A), (3, B), (4, None), (5, A), (6, B)):
                underway.begin(named(id, conv), Caller())
            await wait_all_tasks_blocked()
            assert sorted(log.begun) == [1, 3, 4, 6]
            assert underway.count == 3
            log.held[1].set()
            await underway.wait_none()
            assert [id for id in log.ended if id in (1, 2, 5)] == [1, 2, 5]
            assert [id for id in log.ended if id in (3, 6)] == [3, 6]
            assert underway._lines == {}, "a line that has ended takes no room"
            nursery.cancel_scope.cancel()


@given(st.lists(st.sampled_from([A, B, "c" * 16, None]), max_size=IN_FLIGHT))
def test_each_request_runs_once_and_each_line_keeps_its_order(convs: list[str | None]) -> None:
    log = Log()

    async def main() -> None:
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                underway = Underway(nursery, log.run)
                for id, conv in enumerate(convs):
                    underway.begin(named(id, conv), Caller())
                    if id % 3 == 0:
                        await trio.lowlevel.checkpoint()
                await underway.wait_none()
                nursery.cancel_scope.cancel()

    trio.run(main)
    assert sorted(log.ended) == list(range(len(convs)))
    for line in (A, B, "c" * 16):
        mine = [id for id, conv in enumerate(convs) if conv == line]
        assert [id for id in log.begun if id in mine] == mine


async def test_no_more_wait_for_work_than_are_worth_their_memory() -> None:
    log = Log()
    log.held = {id: trio.Event() for id in range(IN_FLIGHT)}
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            underway = Underway(nursery, log.run)
            for id in range(IN_FLIGHT):
                underway.begin(named(id, None), Caller())
            await wait_all_tasks_blocked()
            with trio.move_on_after(0):
                await underway.wait_room()
                pytest.fail("there is no room")
            for event in log.held.values():
                event.set()
            await underway.wait_none()
            await wait_all_tasks_blocked()
            assert len(nursery.child_tasks) == PARKED
            nursery.cancel_scope.cancel()


# With a real broker behind a session


def sent(params: dict[str, Any], id: int, method: str) -> bytes:
    return request(id, method, **params)


def ending(bench: Bench, sender: Party, other: Party, conv: str, n: int, prev_sig: str) -> dict[str, Any]:
    return sender.envelope(conv, n, "END", other.pk, bench.ts, prev_sig, {"reason": "bye"})


@pytest.mark.requirement("ws.sends-in-order")
async def test_a_call_and_its_end_in_one_packet_are_done_in_order(autojump_clock: MockClock) -> None:
    async with open_bench() as bench, open_session(bench.broker) as peer:
        alfa, bravo = await bench.open("ALFA"), await bench.open("BRAV")
        call = bench.calling(alfa, bravo)
        conv = call["envelope"]["conv"]
        assert call["envelope"]["prev_sig"] == bootstrap(conv)
        end = ending(bench, alfa, bravo, conv, 1, call["sig"])
        await peer.session.receive([sent(call, 1, "send_call"), sent(end, 2, "send_env")])
        answers = await peer.rest()
        assert [(each["id"], each["result"]["n"]) for each in answers] == [(1, 0), (2, 1)]


@pytest.mark.requirement("ws.sends-in-order")
async def test_a_pickup_a_word_and_an_end_in_one_packet_are_done_in_order(autojump_clock: MockClock) -> None:
    async with open_bench() as bench, open_session(bench.broker) as peer:
        alfa, bravo = await bench.open("ALFA"), await bench.open("BRAV")
        call = bench.calling(alfa, bravo)
        conv = call["envelope"]["conv"]
        await bench.call("send_call", **call)
        pickup = bravo.envelope(conv, 1, "PICKUP", alfa.pk, bench.ts, call["sig"])
        word = alfa.envelope(conv, 2, "QUOTE", bravo.pk, bench.ts, pickup["sig"])
        end = ending(bench, bravo, alfa, conv, 3, word["sig"])
        frames = [sent(each, id, "send_env") for id, each in enumerate((pickup, word, end))]
        await peer.session.receive(frames)
        answers = await peer.rest()
        assert [(each["id"], each["result"]["n"]) for each in answers] == [(0, 1), (1, 2), (2, 3)]
