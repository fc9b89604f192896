"""How connections of the dealing port end: closes, resets, stalls, slow readers, shutdown; always in time."""

import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from trio.testing import MockClock, wait_all_tasks_blocked
from websockets.frames import Opcode

from broker.store.memory import MemoryStore
from broker.wire.refusals import refuse
from gateways.dealing import serve_dealing
from gateways.listen import Bounds
from gateways.poll import poller
from gateways.session import CLOSE_S, DRAIN_S, Session
from tests.gateways.test_dealing import ECHO, echoed
from tests.gateways.test_handshake import head
from tests.support.broker import open_bench
from tests.support.broker_fake import FakeBroker, proof
from tests.support.network import MemoryListener
from tests.support.peers import trickle
from tests.support.streams import Writer
from tests.support.ws import SETTINGS, Client, capability, masked, open_port, request


async def test_a_close_by_the_peer_is_answered_and_the_connection_leaves() -> None:
    async with open_port(FakeBroker(), sockets=True) as port:
        client = await port.dial()
        await client.close()
        assert client.protocol.close_code == 1000


@pytest.mark.requirement("ws.last-words")
@pytest.mark.parametrize("end", ["close", "half-close"])
async def test_a_request_right_before_the_end_is_still_done(end: str) -> None:
    broker = FakeBroker()
    done = trio.Event()

    async def slowly(*_: Any) -> dict[str, int]:
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        done.set()
        return {}

    broker.answers["send_env"] = slowly
    async with open_port(broker) as port:
        client = await port.dial()
        last = masked(request(1, "send_env"))
        if end == "close":
            await client.send_raw(last + masked(struct.pack("!H", 1000), Opcode.CLOSE))
            assert (await client.wait_closed())[0] == 1000
        else:
            await client.send_raw(last)
            await client.stream.send_eof()  # type: ignore[attr-defined]
            assert echoed(await client.receive())
        with trio.fail_after(5):
            await done.wait()


@pytest.mark.requirement("ws.presence", "ws.last-words")
async def test_streams_of_a_peer_that_left_end_at_once_though_its_requests_go_on(
    autojump_clock: MockClock,
) -> None:
    broker = FakeBroker()
    broker.answers["send_env"] = never
    async with open_port(broker) as port:
        client = await port.dial({"Authorization": f"Turret {proof()}"})
        await client.ask("follow")
        await client.send(request(1, "send_env"))
        await client.stream.send_eof()  # type: ignore[attr-defined]
        await wait_all_tasks_blocked()
        assert not broker.readers[0].open
        start = trio.current_time()
        await client.wait_closed(10)
        assert trio.current_time() - start <= DRAIN_S + 0.01


async def never(*_: Any) -> None:
    """A tool that hangs."""
    await trio.sleep_forever()


@pytest.mark.requirement("ws.close-bounded")
async def test_a_broken_write_ends_the_connection_though_nothing_is_heard_from_the_peer(
    autojump_clock: MockClock,
) -> None:
    broker = FakeBroker()
    async with open_port(broker) as port:
        client = await port.dial({"Authorization": f"Turret {proof()}"})
        await client.ask("follow")
        await wait_all_tasks_blocked()
        client.stream.receive_stream.close()  # type: ignore[attr-defined]
        broker.tell("ring")
        await wait_all_tasks_blocked()
        assert not broker.readers[0].open
        assert trio.current_time() == 0


@pytest.mark.requirement("ws.close-bounded", "ws.slow-reader")
async def test_a_peer_that_never_answers_our_close_is_cut(autojump_clock: MockClock) -> None:
    broker = FakeBroker()
    async with open_port(broker) as port:
        client = await port.dial({"Authorization": f"Turret {proof()}"})
        client.answers = False
        await client.ask("follow")
        broker.readers[0].fall_behind()
        start = trio.current_time()
        await wait_all_tasks_blocked()
        await client.send(ECHO)  # too late: we have said goodbye
        code, reason = await client.wait_closed(60)
        assert (code, "cursor" in reason) == (4008, True)
        assert broker.calls == []
        assert trio.current_time() - start <= CLOSE_S + 0.01


@pytest.mark.requirement("ws.close-bounded", "ws.slow-reader", "ws.contained")
async def test_hundreds_of_readers_that_were_too_slow_leave_no_task_behind(autojump_clock: MockClock) -> None:
    broker = FakeBroker()
    async with open_port(broker) as port:
        await wait_all_tasks_blocked()
        before = living()
        for _ in range(300):
            client = await port.dial({"Authorization": f"Turret {proof()}"})
            await client.ask("follow")
        for reader in broker.readers:
            reader.fall_behind()
        await trio.sleep(CLOSE_S + 0.1)
        assert living() == before
        assert not any(reader.open for reader in broker.readers)


@pytest.mark.requirement("ws.close-bounded")
async def test_a_peer_that_closes_and_then_stays_connected_is_cut(autojump_clock: MockClock) -> None:
    listener = MemoryListener()
    left = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve_dealing, FakeBroker(), [listener], shutdown=left))  # type: ignore[arg-type,list-item]
        client = await Client.open(await listener.connect())
        await client.send_raw(masked(b"", Opcode.CLOSE))
        await trio.sleep(CLOSE_S + 0.1)
        with pytest.raises(trio.BrokenResourceError):
            await client.send_raw(b"x")
        left.set()


@pytest.mark.requirement("ws.close-bounded", "ws.slow-reader", "ws.contained")
async def test_a_send_that_makes_no_progress_ends_the_connection_within_15_s(
    autojump_clock: MockClock,
) -> None:
    class Clogging(MemoryListener):
        """Its connections take a send only as far as the far end reads."""

        async def connect(self) -> trio.abc.Stream:
            ours, theirs = trio.testing.lockstep_stream_pair()
            await self._send.send(theirs)
            return ours

    listener = Clogging()
    broker = FakeBroker()
    broker.answers["send_env"] = {"much": "x" * 300_000}
    async with trio.open_nursery() as nursery:
        serve = partial(serve_dealing, broker, [listener], shutdown=trio.Event())  # type: ignore[arg-type,list-item]
        nursery.start_soon(serve)
        client = await Client.open(await listener.connect())
        start = trio.current_time()
        await client.send(request(1, "send_env"))
        with trio.fail_after(60), suppress(trio.BrokenResourceError):
            while True:
                await client.send_raw(masked(b"", Opcode.PING))  # it talks, but does not read
                await trio.sleep(0.5)
        assert 10 <= trio.current_time() - start <= 15.01
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("ws.close-bounded", "ws.handshake")
async def test_a_slow_writer_of_headers_is_cut_after_10_s(autojump_clock: MockClock) -> None:
    async with open_port(FakeBroker()) as port:
        stream = await port.connect()
        start = trio.current_time()
        with pytest.raises(trio.BrokenResourceError):
            await trickle(stream, b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 100, pause_s=1)
        assert trio.current_time() - start == pytest.approx(11, abs=1)


@pytest.mark.requirement("ws.close-bounded", "ws.contained")
@pytest.mark.parametrize("when", ["after the handshake", "inside a frame", "after our close", "while asked"])
async def test_a_reset_at_any_moment_ends_the_connection_and_no_other(when: str) -> None:
    async with open_bench() as bench, open_port(bench.broker, sockets=True) as port:
        abcd = await bench.open("ABCD")
        bystander = await port.dial()
        client = await port.dial()
        await client.ask("follow", **capability(abcd, bench))
        assert bench.broker.statistics().readers == 1
        if when == "inside a frame":
            await client.send_raw(masked(ECHO)[:-3])
        elif when == "after our close":
            await client.send_raw(masked(b"", Opcode.CLOSE))
        elif when == "while asked":
            await client.send(*[request(1, "wire_info")] * 50)
        reset(client)
        with trio.fail_after(5):
            await until(lambda: bench.broker.statistics().readers == 0)
        assert echoed(await bystander.ask("wire_info"))


def reset(client: Client) -> None:
    """Close with an RST."""
    stream = client.stream
    assert isinstance(stream, trio.SocketStream)
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.socket.close()


@pytest.mark.requirement("ws.contained")
async def test_two_hundred_connections_leave_no_task_behind() -> None:
    async with open_port(FakeBroker(), sockets=True) as port:
        poller()  # one task for all connections of a run
        await wait_all_tasks_blocked()
        before = living()

        async def visit(n: int) -> None:
            client = await port.dial()
            await client.send(ECHO)
            if n % 4 == 0:
                await client.close()
            elif n % 4 == 1:
                reset(client)
            elif n % 4 == 2:
                await client.stream.aclose()
            else:
                await client.receive()
                await client.stream.aclose()

        for _ in range(4):
            async with trio.open_nursery() as nursery:
                for n in range(50):
                    nursery.start_soon(visit, n)
        with trio.fail_after(10):
            await until(lambda: living() <= before)


def living() -> int:
    return trio.lowlevel.current_statistics().tasks_living


async def until(true: Callable[[], bool]) -> None:
    """Look again and again; the caller bounds it."""
    while not true():  # noqa: ASYNC110  # the kernel tells when it likes
        await trio.sleep(0.005)


@pytest.mark.requirement("ws.contained")
async def test_a_fault_in_the_door_itself_ends_one_connection_alone() -> None:
    broker = FakeBroker()
    async with open_port(broker) as port:
        bystander = await port.dial()
        broker.wire_info = None  # type: ignore[assignment,method-assign]
        with pytest.raises(EOFError):
            await port.dial()
        assert echoed(await bystander.ask("echo"))


@pytest.mark.requirement("ws.handshake")
async def test_beyond_the_bound_a_newcomer_is_turned_away_and_later_taken() -> None:
    async with open_port(FakeBroker(), bounds=Bounds(connections=2)) as port:
        first, _second = await port.dial(), await port.dial()
        stream = await port.connect()
        with trio.fail_after(5):
            assert b" 503 " in await stream.receive_some()
        await first.close()
        await wait_all_tasks_blocked()
        assert echoed(await (await port.dial()).ask("echo"))


# Slow readers


@pytest.mark.requirement("ws.slow-reader", "ws.whole-frames", "ws.contained")
async def test_a_client_that_stops_reading_is_closed_as_slow_and_misses_nothing_when_it_resumes() -> None:
    """20 MB are published while one client does not read; another reads all the time."""
    store = MemoryStore()
    async with open_bench(store=store) as bench, open_port(bench.broker, sockets=True) as port:
        abcd = await bench.open("ABCD")
        lazy, busy = await port.dial(), await port.dial()
        for client in (lazy, busy):
            await client.ask("follow", **capability(abcd, bench))
        writer = Writer(store, f"pk:{abcd.pk}", size=8_000)
        seen: list[int] = []
        worst = 0
        for _ in range(40):
            await writer.write(64)
            while len(seen) < writer.written:
                seen.append((await busy.receive())["params"]["n"])
            worst = max(worst, bench.broker.statistics().pending_bytes)
        assert seen == list(range(2560))
        assert worst <= 2 * SETTINGS.streams.queue_bytes
        assert bench.broker.statistics().slow_readers == 1
        code, _ = await lazy.wait_closed()
        assert code == 4008
        got = lazy.texts()
        assert [each["params"]["n"] for each in got] == list(range(len(got)))
        assert 0 < len(got) < 2560
        again = await port.dial()
        await again.ask("follow", after=got[-1]["params"]["cursor"], **capability(abcd, bench))
        rest = [(await again.receive())["params"]["n"] for _ in range(2560 - len(got))]
        assert rest == list(range(len(got), 2560))


@pytest.mark.requirement("ws.back-pressure", "ws.slow-reader")
async def test_a_client_that_asks_for_much_and_reads_nothing_stops_being_read(
    autojump_clock: MockClock,
) -> None:
    broker = FakeBroker(SETTINGS)
    broker.answers["send_env"] = {"much": "x" * 100_000}
    ours, theirs = trio.testing.memory_stream_pair()
    blocked = trio.Event()
    theirs.send_stream.send_all_hook = blocked.wait  # type: ignore[union-attr]
    listener = MemoryListener()
    async with trio.open_nursery() as nursery:
        serve = partial(serve_dealing, broker, [listener], shutdown=trio.Event())  # type: ignore[arg-type,list-item]
        nursery.start_soon(serve)
        await listener._send.send(theirs)
        await ours.send_all(head())
        await wait_all_tasks_blocked()
        for n in range(200):
            await ours.send_all(masked(request(n, "send_env")))
        await wait_all_tasks_blocked()
        assert len(broker.calls) < 80
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("ws.back-pressure")
async def test_pings_of_a_client_that_reads_nothing_do_not_pile_up_as_pongs(
    autojump_clock: MockClock,
) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    blocked = trio.Event()
    theirs.send_stream.send_all_hook = blocked.wait  # type: ignore[union-attr]
    listener = MemoryListener()
    async with trio.open_nursery() as nursery:
        serve = partial(serve_dealing, FakeBroker(SETTINGS), [listener], shutdown=trio.Event())  # type: ignore[arg-type,list-item]
        nursery.start_soon(serve)
        await listener._send.send(theirs)
        await ours.send_all(head())
        await wait_all_tasks_blocked()
        flood = masked(b"x" * 125, Opcode.PING) * 100
        for _ in range(100):
            await ours.send_all(flood)
        await wait_all_tasks_blocked()
        left = len(theirs.receive_stream._incoming._data)  # type: ignore[union-attr]
        assert left > 50 * len(flood)
        nursery.cancel_scope.cancel()


# Shutdown


@pytest.mark.requirement("ws.restart", "ws.close-bounded")
async def test_at_shutdown_requests_under_way_are_answered_then_1012_with_a_hint(
    autojump_clock: MockClock,
) -> None:
    broker = FakeBroker()

    async def slowly(*_: Any) -> dict[str, str]:
        await trio.sleep(2)
        return {"in": "time"}

    broker.answers["send_env"] = slowly
    async with open_port(broker) as port:
        client, idle = await port.dial(), await port.dial()
        await client.send(request(1, "send_env"))
        await wait_all_tasks_blocked()
        port.shutdown.set()
        assert (await client.receive())["result"] == {"in": "time"}
        for each in (client, idle):
            code, reason = await each.wait_closed()
            assert code == 1012
            assert 500 <= msgspec.json.decode(reason)["retry_in_ms"] < 5500
            await each.stream.aclose()
        with trio.fail_after(1):
            await port.returned.wait()


@pytest.mark.requirement("ws.restart", "ws.close-bounded")
@pytest.mark.parametrize("peer", ["hangs", "ignores the close", "shakes hands"])
async def test_the_shutdown_ends_in_time_whatever_peers_do(peer: str, autojump_clock: MockClock) -> None:
    broker = FakeBroker()
    broker.answers["send_env"] = never
    async with open_port(broker) as port:
        if peer == "shakes hands":
            await (await port.connect()).send_all(b"GET ")
        else:
            client = await port.dial()
            if peer == "hangs":
                await client.send(request(1, "send_env"))
        await wait_all_tasks_blocked()
        start = trio.current_time()
        port.shutdown.set()
        with trio.fail_after(10):
            await port.returned.wait()
        longest = 0.0 if peer == "shakes hands" else DRAIN_S + CLOSE_S
        assert trio.current_time() - start <= longest + 0.01


@pytest.mark.requirement("ws.restart", "ws.stream-ended")
async def test_what_was_committed_before_the_shutdown_reaches_its_followers_first(
    autojump_clock: MockClock,
) -> None:
    async with open_bench() as bench, open_port(bench.broker) as port:
        abcd, efgh = await bench.open("ABCD"), await bench.open("EFGH")
        client = await port.dial()
        await client.ask("follow", **capability(abcd, bench))
        await bench.dial(efgh, abcd)
        bench.broker.end_streams(refuse("unavailable", "the broker restarts"))
        port.shutdown.set()
        assert (await client.wait_closed())[0] == 1012
        assert [each["method"] for each in client.texts()] == ["ring", "ended"]


async def test_cancelling_the_server_cuts_everything_at_once() -> None:
    listener = MemoryListener()
    async with trio.open_nursery() as nursery:
        serve = partial(serve_dealing, FakeBroker(), [listener], shutdown=trio.Event())  # type: ignore[arg-type,list-item]
        nursery.start_soon(serve)
        client = await Client.open(await listener.connect())
        nursery.cancel_scope.cancel()
    assert (await client.wait_closed())[0] == 1006


@pytest.mark.requirement("ws.contained")
async def test_a_fault_where_frames_are_taken_ends_that_connection_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_port(FakeBroker(), sockets=True) as port:
        one, other = await port.dial(), await port.dial()
        real = Session.take

        def take(self: Session, frames: Sequence[Any]) -> int:
            if any(b"poison" in (each or b"") for each in frames):
                raise ZeroDivisionError
            return real(self, frames)

        monkeypatch.setattr(Session, "take", take)
        await one.send(b"poison")
        assert (await one.wait_closed(2))[0] == 1006
        assert "result" in await other.ask("ping")
