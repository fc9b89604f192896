"""`/ws` on the public port: the dealing port's own connection, from the upgrade to every kind of end."""

import json
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
import trio_websocket
from trio.testing import wait_all_tasks_blocked
from websockets.frames import Opcode

from broker.store.memory import MemoryStore
from broker.wire.refusals import refuse
from gateways.gate import Gate
from gateways.http import serve_http, tls_context
from gateways.listen import Bounds
from gateways.session import CLOSE_S, DRAIN_S
from gateways.underway import IN_FLIGHT
from gateways.websocket import ws_app
from gateways.wrappers import Origins, check_origin
from tests.gateways.test_dealing_ends import living, never, reset, until
from tests.gateways.test_handshake import head, status
from tests.support.broker import open_bench
from tests.support.broker_fake import FakeBroker, proof
from tests.support.peers import exchange, read_until
from tests.support.streams import Writer
from tests.support.ws import (
    SETTINGS,
    Client,
    Port,
    authenticate,
    capability,
    clock_of,
    masked,
    request,
)

ECHO = request(1, "echo")


@asynccontextmanager
async def open_public(
    broker: Any,
    bounds: Bounds = Bounds(),  # noqa: B008  # frozen
    tls: ssl.SSLContext | None = None,
    gate: Gate | None = None,
) -> AsyncIterator[Port]:
    """The public port with nothing but /ws on it, behind its guards."""
    shutdown = trio.Event()
    app = ws_app(broker, shutdown=shutdown, bounds=bounds, clock=clock_of(broker), gate=gate)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    dialled: list[trio.abc.Stream] = []
    address = listeners[0].socket.getsockname()[:2]
    port = Port(shutdown, lambda: trio.open_tcp_stream(*address), dialled)  # noqa: ASYNC105  # awaited there
    port.address = address
    guarded = check_origin(app, Origins(), bounds)

    async def serve(task_status: trio.TaskStatus[None]) -> None:
        await serve_http(
            guarded,
            listeners,
            broker.settings,
            shutdown=shutdown,
            bounds=bounds,
            tls=tls,
            task_status=task_status,
        )
        port.returned.set()

    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(serve)
            yield port
            nursery.cancel_scope.cancel()
    finally:
        for stream in dialled:
            await trio.aclose_forcefully(stream)


@pytest.mark.requirement("ws.one-protocol", "ws.hello-first", "ws.authenticate", "ws.follow")
async def test_a_deal_is_made_over_the_public_port() -> None:
    async with open_bench() as bench, open_public(bench.broker) as port:
        abcd, efgh = await bench.open("ABCD"), await bench.open("EFGH")
        async with trio_websocket.open_websocket(
            "127.0.0.1", port.address[1], "/ws", use_ssl=False
        ) as dealer:
            hello = json.loads(await dealer.get_message())
            proven = authenticate(abcd, bench, hello["params"]["challenge"])
            await dealer.send_message(request(1, "authenticate", **proven).decode())
            await dealer.send_message(request(2, "follow").decode())
            assert [json.loads(await dealer.get_message())["id"] for _ in range(2)] == [1, 2]
            line = await bench.dial(efgh, abcd)
            assert json.loads(await dealer.get_message())["params"]["conv"] == line.conv
            await dealer.send_message(request(3, "send_env", **line.next("PICKUP")).decode())
            kinds = {json.loads(await dealer.get_message()).get("method", "answer") for _ in range(2)}
            assert kinds == {"env", "answer"}


@pytest.mark.requirement("ws.concurrent", "ws.no-silence", "ws.malformed-frame")
async def test_frames_are_answered_as_on_the_dealing_port() -> None:
    async with open_public(FakeBroker()) as port:
        client = await port.dial(path="/ws")
        await client.send(*(request(n, "echo") for n in range(100)))
        assert {(await client.receive())["id"] for _ in range(100)} == set(range(100))
        await client.send_raw(masked(b"\x00", Opcode.BINARY) + masked(b"", Opcode.BINARY) + masked(b""))
        assert [(await client.receive())["error"]["code"] for _ in range(3)] == [-32600, -32600, -32700]
        assert (await client.ask("nothing"))["error"]["code"] == -32601
        text = request(9, "echo", text="grün €")
        await client.send_raw(masked(text[:60], fin=False) + masked(text[60:], Opcode.CONT))
        assert (await client.receive())["result"]["echo"]["text"] == "grün €"


@pytest.mark.requirement(
    "ws.frame-limit", "ws.utf8", "ws.close-bounded", "ws.too-large-1009", "ws.not-utf8-1007"
)
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (masked(b"x" * 70_000), 1009),
        (masked("€".encode() * 22_000), 1009),
        (masked(b"x" * 40_000, fin=False) + masked(b"x" * 40_000, Opcode.CONT, fin=False), 1009),
        (masked(b'"\xff"'), 1007),
        (b"\x81\x01a", 1002),
    ],
    ids=["long", "long in bytes", "long in pieces", "not UTF-8", "unmasked"],
)
async def test_a_breach_closes_with_its_code(data: bytes, code: int) -> None:
    async with open_public(FakeBroker(), Bounds(linger_s=0.1)) as port:
        client = await port.dial(path="/ws")
        await client.send_raw(data)
        assert (await client.wait_closed())[0] == code


@pytest.mark.requirement("ws.upgrade-proof")
async def test_the_upgrade_may_carry_a_proof_and_a_wrong_one_is_refused_over_http() -> None:
    broker = FakeBroker()
    async with open_public(broker) as port:
        client = await port.dial({"Authorization": f"Turret {proof()}"}, "/ws")
        assert "result" in await client.ask("follow")
        broker.refuse_admission = refuse("bad_statement", "too old")
        answer = await exchange(port.address, head("/ws", Authorization=f"Turret {proof()}", Host=host(port)))
        assert status(answer) == 401
        assert b'"code":"bad_statement"' in answer


def host(port: Port) -> str:
    return f"127.0.0.1:{port.address[1]}"


@pytest.mark.requirement("ws.origin")
async def test_a_strange_page_may_not_open_a_socket() -> None:
    async with open_public(FakeBroker()) as port:
        asked = head("/ws", Origin="https://evil.example", Host=host(port))
        stream = await port.connect()
        await stream.send_all(asked)
        assert status(await read_until(stream, b"}}")) == 403


@pytest.mark.requirement("ws.contained")
async def test_a_hostile_upgrade_ends_one_connection_alone() -> None:
    async with open_public(FakeBroker()) as port:
        bystander = await port.dial(path="/ws")
        answer = await exchange(
            port.address, head("/ws", Host=host(port)) + b"\x89\x80mask" + b"trailing" * 100
        )
        assert status(answer) == 400
        assert "result" in await bystander.ask("echo")
        assert "result" in await (await port.dial(path="/ws")).ask("echo")


@pytest.mark.requirement("ws.slow-reader", "ws.whole-frames")
async def test_a_client_that_stops_reading_is_closed_as_slow_and_resumes() -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench, open_public(bench.broker) as port:
        abcd = await bench.open("ABCD")
        lazy, busy = await port.dial(path="/ws"), await port.dial(path="/ws")
        for client in (lazy, busy):
            await client.ask("follow", **capability(abcd, bench))
        writer = Writer(store, f"pk:{abcd.pk}", size=8_000)
        seen: list[int] = []
        for _ in range(40):
            await writer.write(64)
            while len(seen) < writer.written:
                seen.append((await busy.receive())["params"]["n"])
        assert seen == list(range(2560))
        assert bench.broker.statistics().pending_bytes <= 2 * SETTINGS.streams.queue_bytes
        code, _ = await lazy.wait_closed()
        assert code == 4008
        got = [each["params"]["n"] for each in lazy.texts()]
        assert got == list(range(len(got)))
        assert 0 < len(got) < 2560


@pytest.mark.requirement("ws.close-bounded", "ws.slow-reader")
async def test_a_client_that_never_reads_is_cut_by_the_sockets_deadline() -> None:
    store = MemoryStore()
    async with (
        open_bench(store=store) as bench,
        open_public(bench.broker, Bounds(send_s=0.2, orphan_s=0.2, linger_s=0.1)) as port,
    ):
        abcd = await bench.open("ABCD")
        client = await port.dial(path="/ws")
        await client.ask("follow", **capability(abcd, bench))
        writer = Writer(store, f"pk:{abcd.pk}", size=8_000)
        await writer.write(2560)
        with trio.fail_after(5):
            await until(lambda: bench.broker.statistics().readers == 0)


@pytest.mark.requirement("ws.ping", "ws.dead-peer")
async def test_a_peer_that_answers_no_ping_is_gone_and_one_that_does_stays() -> None:
    streams = msgspec.structs.replace(SETTINGS.streams, ping_s=0.1, dead_s=0.4)
    async with (
        open_bench(msgspec.structs.replace(SETTINGS, streams=streams)) as bench,
        open_public(bench.broker, Bounds(orphan_s=0.1)) as port,
    ):
        parties = [await bench.open("ABCD"), await bench.open("EFGH")]
        dead, alive = await port.dial(path="/ws"), await port.dial(path="/ws")
        for client, party in zip((dead, alive), parties, strict=True):
            await client.ask("follow", **capability(party, bench))
        dead.answers = False
        with trio.move_on_after(1.5):
            await alive.receive()
        assert bench.broker.statistics().readers == 1
        assert "result" in await alive.ask("wire_info")
        assert (await dead.wait_closed())[0] == 1006


@pytest.mark.requirement("ws.close-bounded", "ws.contained", "ws.presence")
@pytest.mark.parametrize("when", ["idle", "inside a frame", "while asked"])
async def test_a_reset_ends_the_connection_and_its_stream(when: str) -> None:
    async with open_bench() as bench, open_public(bench.broker) as port:
        abcd = await bench.open("ABCD")
        bystander = await port.dial(path="/ws")
        client = await port.dial(path="/ws")
        await client.ask("follow", **capability(abcd, bench))
        if when == "inside a frame":
            await client.send_raw(masked(ECHO)[:-3])
        elif when == "while asked":
            await client.send(*[request(1, "wire_info")] * 50)
        reset(client)
        with trio.fail_after(5):
            await until(lambda: bench.broker.statistics().readers == 0)
        assert "result" in await bystander.ask("wire_info")


@pytest.mark.requirement("ws.back-pressure")
async def test_a_client_that_asks_for_much_at_once_and_reads_gets_all_of_it() -> None:
    broker = FakeBroker()
    broker.answers["send_env"] = {"much": "y" * 4_000_000}
    async with open_public(broker) as port:
        client = await port.dial(path="/ws")
        await client.send(*(request(n, "send_env") for n in range(4)))
        answers = [await client.receive() for _ in range(4)]
        assert sorted(each["id"] for each in answers) == [0, 1, 2, 3]
        assert {len(each["result"]["much"]) for each in answers} == {4_000_000}


@pytest.mark.requirement("ws.last-words")
async def test_requests_right_before_a_close_are_still_done() -> None:
    broker = FakeBroker()
    done: list[int] = []

    async def slowly(*_: Any) -> dict[str, int]:
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        done.append(1)
        return {}

    broker.answers["send_env"] = slowly
    async with open_public(broker) as port:
        client = await port.dial(path="/ws")
        last = b"".join(masked(request(n, "send_env")) for n in range(30))
        await client.send_raw(last + masked(struct.pack("!H", 1000), Opcode.CLOSE))
        assert (await client.wait_closed())[0] == 1000
        with trio.fail_after(5):
            await until(lambda: len(done) == 30)


@pytest.mark.requirement("ws.contained")
async def test_connections_that_come_and_go_leave_no_task_behind() -> None:
    async with open_public(FakeBroker()) as port:
        await (await port.dial(path="/ws")).close()  # the first one starts what reads for all
        await wait_all_tasks_blocked()
        before = living()

        async def visit(n: int) -> None:
            client = await port.dial(path="/ws")
            await client.send(ECHO)
            if n % 3 == 0:
                await client.close()
            elif n % 3 == 1:
                reset(client)
            else:
                await client.stream.aclose()

        for _ in range(2):
            async with trio.open_nursery() as nursery:
                for n in range(30):
                    nursery.start_soon(visit, n)
        with trio.fail_after(10):
            await until(lambda: living() <= before)


@pytest.mark.requirement("ws.restart")
async def test_at_shutdown_requests_under_way_are_answered_then_1012_with_a_hint() -> None:
    broker = FakeBroker()
    gate = trio.Event()

    async def slowly(*_: Any) -> dict[str, str]:
        await gate.wait()
        return {"in": "time"}

    broker.answers["send_env"] = slowly
    async with open_public(broker) as port:
        client, idle = await port.dial(path="/ws"), await port.dial(path="/ws")
        await client.send(request(1, "send_env"))
        with trio.fail_after(5):
            await until(lambda: len(broker.calls) == 1)
        port.shutdown.set()
        code, reason = await idle.wait_closed()
        assert code == 1012
        assert 500 <= msgspec.json.decode(reason)["retry_in_ms"] < 5500
        gate.set()
        assert (await client.receive())["result"] == {"in": "time"}
        assert (await client.wait_closed())[0] == 1012
        for each in (client, idle):
            await each.stream.aclose()
        with trio.fail_after(5):
            await port.returned.wait()


@pytest.mark.requirement("ws.last-words")
async def test_requests_that_wait_behind_others_when_the_peer_closes_are_done_as_well() -> None:
    broker = FakeBroker()
    gate = trio.Event()

    async def gated(*_: Any) -> dict[str, int]:
        await gate.wait()
        return {}

    broker.answers["send_env"] = gated
    async with open_public(broker) as port:
        client = await port.dial(path="/ws")
        await client.send_raw(b"".join(masked(request(n, "send_env")) for n in range(IN_FLIGHT + 5)))
        with trio.fail_after(5):
            await until(lambda: len(broker.calls) == IN_FLIGHT)
        await client.send_raw(masked(b"", Opcode.CLOSE))
        gate.set()
        assert (await client.wait_closed())[0] == 1005
        with trio.fail_after(5):
            await until(lambda: len(broker.calls) == IN_FLIGHT + 5)


@pytest.mark.requirement("ws.presence", "ws.last-words")
async def test_streams_of_a_peer_that_left_end_soon_though_its_requests_go_on() -> None:
    broker = FakeBroker()
    broker.answers["send_env"] = never
    async with open_public(broker) as port:
        client = await port.dial({"Authorization": f"Turret {proof()}"}, "/ws")
        await client.ask("follow")
        await client.send(request(1, "send_env"))
        with trio.fail_after(5):
            await until(lambda: len(broker.calls) == 1)
        reset(client)
        with trio.fail_after(DRAIN_S / 2):
            await until(lambda: not broker.readers[0].open)


@pytest.mark.requirement("ws.close-half")
async def test_a_peer_that_answers_our_close_frees_its_place_at_once() -> None:
    broker = FakeBroker()
    async with open_public(broker) as port:
        await (await port.dial(path="/ws")).close()  # the first one starts what reads for all
        await wait_all_tasks_blocked()
        before = living()
        client = await port.dial({"Authorization": f"Turret {proof()}"}, "/ws")
        await client.ask("follow")
        broker.readers[0].fall_behind()
        await wait_all_tasks_blocked()  # the port has said its close, and waits for ours
        with trio.fail_after(CLOSE_S / 2):
            assert (await client.wait_closed())[0] == 4008
            await client.stream.aclose()
            await until(lambda: living() <= before)


@pytest.mark.requirement("ws.handshake")
@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"Upgrade": None}, 426),
        ({"Sec_WebSocket_Version": "12"}, 400),
        ({"Sec_WebSocket_Key": None}, 400),
        ({"Content_Length": "5"}, 400),
        ({"Authorization": "Bearer x"}, 401),
        ({"Host": "evil.example"}, 421),
    ],
    ids=str,
)
async def test_what_is_no_good_upgrade_is_refused_over_http(asked: dict[str, str | None], code: int) -> None:
    async with open_public(FakeBroker()) as port:
        stream = await port.connect()
        await stream.send_all(head("/ws", **{"Host": host(port), **asked}))
        assert status(await read_until(stream, b"\r\n\r\n")) == code


@pytest.mark.requirement("ws.handshake")
async def test_a_connection_that_has_carried_requests_may_become_a_websocket() -> None:
    async with open_public(FakeBroker()) as port:
        stream = await port.connect()
        await stream.send_all(head("/ws", Host="evil.example"))
        assert status(await read_until(stream, b"}}")) == 421
        client = await Client.open(stream, path="/ws")
        assert "result" in await client.ask("echo")


@pytest.mark.requirement("ws.one-protocol", "http.tls")
async def test_a_websocket_opens_within_tls_and_after_requests(certificate: tuple[str, str]) -> None:
    trust = ssl.create_default_context(cafile=certificate[0])
    async with open_public(FakeBroker(), tls=tls_context(*certificate)) as port:
        tcp = await port.connect()
        stream = trio.SSLStream(tcp, trust, server_hostname="localhost", https_compatible=True)
        await stream.send_all(head("/ws", Host="evil.example"))
        assert status(await read_until(stream, b"}}")) == 421
        client = await Client.open(stream, path="/ws")
        await client.send(*(request(n, "echo") for n in range(50)))
        assert {(await client.receive())["id"] for _ in range(50)} == set(range(50))
        client.protocol.send_close(1000)
        await client._flush()
        assert (await client.wait_closed())[0] == 1000


@pytest.mark.requirement("ws.close-bounded", "ws.slow-reader")
async def test_a_peer_that_ignores_our_close_is_left_soon() -> None:
    broker = FakeBroker()
    async with open_public(broker, Bounds(linger_s=0.1)) as port:
        await (await port.dial(path="/ws")).close()  # the first one starts what reads for all
        await wait_all_tasks_blocked()
        before = living()
        client = await port.dial({"Authorization": f"Turret {proof()}"}, "/ws")
        client.answers = False
        await client.ask("follow")
        broker.readers[0].fall_behind()
        with trio.fail_after(CLOSE_S + 2):
            await until(lambda: living() <= before)
        assert (await client.wait_closed())[0] == 4008


async def test_cancelling_the_server_ends_connections_soon_even_with_requests_under_way() -> None:
    broker = FakeBroker()
    broker.answers["send_env"] = never
    with trio.fail_after(5):
        async with open_public(broker) as port:
            client = await port.dial(path="/ws")
            await client.send(request(1, "send_env"))
            await until(lambda: len(broker.calls) == 1)
