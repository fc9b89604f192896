"""Streams and presence on a connection: follow, replace, end, watch."""

import json
from collections import Counter
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.app import Caller
from broker.wire.events import Resume, read_cursor
from gateways.feeds import STREAMS
from gateways.render import CLOSE
from tests.support.broker import open_bench
from tests.support.broker_fake import DEALER_PK, FakeBroker, FakeReader
from tests.support.ws import capability, open_session, request

STATEMENT: dict[str, Any] = {"statement": {"pk": DEALER_PK}, "sig": "ab" * 64}


@pytest.mark.requirement("ws.follow")
async def test_events_come_once_in_order_and_the_next_one_follows_the_resume(
    autojump_clock: MockClock,
) -> None:
    async with open_bench() as bench, open_session(bench.broker) as peer:
        abcd, efgh = await bench.open("ABCD"), await bench.open("EFGH")
        await bench.connect(efgh, abcd)
        resume = await peer.result("follow", **capability(abcd, bench))
        line = await bench.connect(efgh, abcd)
        await line.send("SAY", {"text": "hello"})
        await line.send("END")
        events = await peer.rest()
        assert [each["method"] for each in events] == ["ring", "env", "env", "end"]
        assert [each["params"]["own"] for each in events] == [False, True, False, True]
        head = read_cursor(resume["head"])
        first = read_cursor(events[0]["params"]["cursor"])
        assert head is not None
        assert first is not None
        assert first.position == head.position + 1
        assert events[2]["params"]["envelope"]["body"] == {"text": "hello"}


@pytest.mark.requirement("ws.follow", "ws.slow-reader")
async def test_a_reader_goes_on_after_its_cursor_and_hears_why_where_it_cannot(
    autojump_clock: MockClock,
) -> None:
    async with open_bench() as bench, open_session(bench.broker) as peer:
        abcd, efgh = await bench.open("ABCD"), await bench.open("EFGH")
        await bench.connect(efgh, abcd)
        assert (await peer.result("follow", after="0", **capability(abcd, bench)))["recovered"] is True
        ring, pickup = await peer.rest()
        cursor = ring["params"]["cursor"]
        assert (await peer.result("follow", after=cursor, **capability(abcd, bench)))["recovered"] is True
        assert await peer.rest() == [pickup]
        for after, reason in ((cursor + "00", "future"), ("nonsense", "unknown")):
            resume = await peer.result("follow", after=after, **capability(abcd, bench))
            assert (resume["recovered"], resume["reason"]) == (False, reason)


@pytest.mark.requirement("ws.follow-again")
async def test_a_second_follow_of_the_same_stream_takes_the_place_of_the_first() -> None:
    broker = FakeBroker()
    async with open_session(broker) as peer:
        await peer.result("follow", **STATEMENT)
        broker.tell("ring")
        assert len(await peer.rest()) == 1
        await peer.result("follow", after="0", **STATEMENT)
        await wait_all_tasks_blocked()
        assert [each.open for each in broker.readers] == [False, True]
        broker.tell("env", n=2)
        assert [each["params"]["n"] for each in await peer.rest()] == [2]


@pytest.mark.requirement("ws.follow-again")
async def test_nothing_of_the_replaced_stream_comes_after_the_second_answer() -> None:
    broker = FakeBroker()
    async with open_session(broker) as peer:
        await peer.result("follow", **STATEMENT)
        await wait_all_tasks_blocked()
        for n in range(3):
            broker.tell("env", n=n)
        await peer.session.receive([request("again", "follow", **STATEMENT)])
        frames = await peer.rest()
        place = next(n for n, each in enumerate(frames) if each.get("id") == "again")
        assert frames[place + 1 :] == []


@pytest.mark.requirement("ws.follow-capability")
async def test_a_follow_statement_serves_its_stream_and_authenticates_nothing_else(
    autojump_clock: MockClock,
) -> None:
    async with open_bench() as bench, open_session(bench.broker) as peer:
        abcd = await bench.open("ABCD")
        assert (await peer.result("follow", **capability(abcd, bench, code="ABCD")))["recovered"] is True
        assert (await peer.refusal("list_convs"))["code"] == "unauthenticated"
        assert (await peer.refusal("follow"))["code"] == "unauthenticated"


@pytest.mark.requirement("ws.stream-ended")
async def test_a_stream_ends_when_its_statements_time_is_over(autojump_clock: MockClock) -> None:
    async with open_bench() as bench, open_session(bench.broker) as peer:
        abcd = await bench.open("ABCD")
        await peer.result("follow", **capability(abcd, bench, seconds=90, code="ABCD"))
        with trio.fail_after(91):
            await trio.sleep(89)
            assert await peer.rest() == []
            await trio.sleep(1.5)
        (ended,) = await peer.rest()
        assert ended["method"] == "ended"
        assert ended["params"]["refusal"]["code"] == "bad_statement"
        assert "result" in await peer.ask("wire_info")


@pytest.mark.requirement("ws.stream-ended")
async def test_a_stream_followed_by_code_ends_when_the_desk_moves(autojump_clock: MockClock) -> None:
    async with open_bench() as bench, open_session(bench.broker) as peer:
        abcd = await bench.open("ABCD")
        heir = await bench.open("HEIR")
        await bench.call("close_desk", **heir.statement("close_desk", bench.broker.pk, bench.ts, code="HEIR"))
        await peer.result("follow", **capability(abcd, bench, code="ABCD") | {"code": "ABCD"})
        move = abcd.statement("move_desk", bench.broker.pk, bench.ts, code="ABCD", new_pk=heir.pk)
        text = json.dumps(move["statement"], sort_keys=True, separators=(",", ":")).encode()
        assert (await bench.call("move_desk", **move, new_sig=heir.key.sign(text)))["pk"] == heir.pk
        frames = await peer.rest()
        assert [each["method"] for each in frames] == ["desk_moved", "ended"]
        assert frames[1]["params"]["code"] == "ABCD"
        assert frames[1]["params"]["refusal"]["code"] == "desk_moved"
        assert (await peer.result("resolve_code", code="ABCD"))["pk"] == heir.pk


async def test_unfollow_ends_the_streams_and_the_connection_goes_on() -> None:
    broker = FakeBroker()
    async with open_session(broker) as peer:
        await peer.result("follow", **STATEMENT, code="ABCD")
        await wait_all_tasks_blocked()
        assert await peer.result("unfollow", code="EFGH") == {"ended": 0}
        assert await peer.result("unfollow") == {"ended": 1}
        await wait_all_tasks_blocked()
        assert not broker.readers[0].open
        broker.tell("ring")
        assert await peer.rest() == []


async def test_a_connection_follows_a_bounded_number_of_streams() -> None:
    broker = FakeBroker()

    async def follow(*_: Any, **__: Any) -> FakeReader:
        reader = FakeReader(None)
        cursor = f"{len(broker.readers):08x}.0000000000000001.0"
        reader.resume = Resume(True, cursor, cursor)
        broker.readers.append(reader)
        return reader

    broker.follow = follow  # type: ignore[method-assign]
    async with open_session(broker) as peer:
        for _ in range(STREAMS):
            await peer.result("follow", **STATEMENT)
        assert (await peer.refusal("follow", **STATEMENT))["code"] == "bad_request"
        await wait_all_tasks_blocked()
        assert Counter(each.open for each in broker.readers) == {True: STREAMS, False: 1}


@pytest.mark.requirement("ws.slow-reader")
async def test_a_reader_that_fell_behind_is_closed_as_slow() -> None:
    broker = FakeBroker()
    async with open_session(broker) as peer:
        await peer.result("follow", **STATEMENT)
        broker.tell("ring")
        broker.readers[0].fall_behind()
        await wait_all_tasks_blocked()
        assert peer.outbox.closing == CLOSE["slow"]
        assert CLOSE["slow"].code == 4008
        assert peer.outbox.take() == []  # it resumes by cursor: what waits would only delay the close


@pytest.mark.requirement("ws.follow-again")
async def test_a_replaced_stream_that_fell_behind_at_that_moment_ends_nothing() -> None:
    class Racing(FakeBroker):
        async def follow(self, caller: Caller, **given: Any) -> Any:
            reader = await super().follow(caller, **given)
            if len(self.readers) == 2:
                self.readers[0].fall_behind()
            return reader

    async with open_session(Racing()) as peer:
        await peer.result("follow", **STATEMENT)
        await wait_all_tasks_blocked()
        await peer.result("follow", **STATEMENT)
        assert await peer.rest() == []
        assert peer.outbox.closing is None


async def test_a_stream_that_crashes_closes_the_connection_instead_of_going_silent() -> None:
    broker = FakeBroker()
    async with open_session(broker) as peer:
        await peer.result("follow", **STATEMENT)
        broker.readers[0]._send.send_nowait(RuntimeError("x"))
        await wait_all_tasks_blocked()
        assert peer.outbox.closing == CLOSE["fault"]


@pytest.mark.requirement("ws.presence")
async def test_a_desk_goes_offline_a_while_after_its_connection_left(autojump_clock: MockClock) -> None:
    async with open_bench() as bench:
        abcd = await bench.open("ABCD")
        async with open_session(bench.broker) as peer:
            await peer.result("follow", **capability(abcd, bench))
            peer.session.leave()
            await wait_all_tasks_blocked()
        assert (await bench.call("resolve_code", code="ABCD"))["online"] is True
        await trio.sleep(15)
        assert (await bench.call("resolve_code", code="ABCD"))["online"] is False


@pytest.mark.requirement("ws.follow-capability", "ws.stream-ended")
async def test_a_capability_of_the_upgrade_is_worth_nothing_after_its_time(autojump_clock: MockClock) -> None:
    async with open_bench() as bench:
        abcd = await bench.open("ABCD")
        given = capability(abcd, bench, seconds=60)
        caller = await bench.broker.admit(Caller(), json.dumps(given["statement"]).encode(), given["sig"])
        assert isinstance(caller, Caller)
        async with open_session(bench.broker, caller) as peer:
            assert await peer.result("list_convs") is not None
            await trio.sleep(61)
            assert (await peer.refusal("list_convs"))["code"] == "unauthenticated"
            assert (await peer.refusal("follow"))["code"] == "unauthenticated"


# Presence


@pytest.mark.requirement("ws.watch")
async def test_a_watch_gives_a_snapshot_then_changes_no_more_than_one_a_second(
    autojump_clock: MockClock,
) -> None:
    async with open_bench() as bench, open_session(bench.broker) as peer:
        parties = [await bench.open(code) for code in ("ABCD", "EFGH", "IJKL")]
        answer = await peer.result("watch", codes=["ABCD", "EFGH", "IJKL", "NONE"])
        assert answer == {"desks": {"ABCD": False, "EFGH": False, "IJKL": False, "NONE": False}}
        async with open_session(bench.broker) as other:
            for party in parties:
                await other.result("follow", **capability(party, bench))
            await trio.sleep(1.1)
            assert await peer.rest() == [
                {
                    "jsonrpc": "2.0",
                    "method": "presence",
                    "params": {"desks": {"ABCD": True, "EFGH": True, "IJKL": True}},
                }
            ]


@pytest.mark.requirement("ws.watch")
async def test_a_second_watch_takes_the_place_of_the_first() -> None:
    broker = FakeBroker()
    async with open_session(broker) as peer:
        await peer.result("watch", codes=["ABCD"])
        await peer.result("watch", codes=["EFGH"])
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BrokenResourceError):
            broker.watches[0].change(ABCD=True)
        broker.watches[1].change(EFGH=True)
        assert [each["params"] for each in await peer.rest()] == [{"desks": {"EFGH": True}}]


async def test_a_watch_that_crashes_closes_the_connection() -> None:
    broker = FakeBroker()
    async with open_session(broker) as peer:
        await peer.result("watch", codes=["ABCD"])
        broker.watches[0]._send.close()
        await wait_all_tasks_blocked()
        assert peer.outbox.closing == CLOSE["fault"]
