"""`GET /rings/<code>` over real sockets: who may read, what comes, how it ends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import httpx_sse
import msgspec
import pytest
import trio

from broker.app import Caller
from broker.config import Settings, Streams
from broker.store.port import Unavailable
from broker.wire.refusals import refuse
from gateways.caller import write_proof
from gateways.eventstream import Decoder, Event
from gateways.listen import Bounds
from gateways.metrics import Metrics
from gateways.web import web_app
from tests.support.agents import make_agent, suspend
from tests.support.broker import Bench
from tests.support.broker_fake import DEALER_PK, FakeBroker, proof
from tests.support.network import Served, serving
from tests.support.peers import Download, dial, eventually, read_all, read_until, stalled
from tests.support.raw import QUICK
from tests.support.tokens import agent_of, gate_of

AUTH = {"authorization": f"Turret {proof(code='ALFA')}"}
REQUEST = (
    b"GET /rings/ALFA HTTP/1.1\r\nhost: localhost\r\nauthorization: %s\r\n\r\n"
    % AUTH["authorization"].encode()
)
START = "f00df00d.0000000000000001.0"


@pytest.fixture
def broker() -> FakeBroker:
    return FakeBroker(Settings(streams=Streams(comment_s=0.1)))


@pytest.fixture
async def served(broker: FakeBroker) -> AsyncIterator[Served]:
    app = web_app(broker, Metrics(broker))  # type: ignore[arg-type]
    async with serving(app, bounds=QUICK) as server:
        yield server


class Listening(Download):
    """A client of one stream: its response, and events one by one."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        super().__init__(stream)
        self.decoder = Decoder()
        self._events: list[Event] = []

    async def next(self) -> Event | None:
        """The next event; None at the stream's end."""
        while not self._events:
            data = await self.read()
            if not data:
                return None
            self._events = self.decoder.feed(data)
        return self._events.pop(0)

    async def refusal(self) -> dict[str, object]:
        """The body of an answer that is no stream."""
        refusal: dict[str, object] = msgspec.json.decode(await self.read())["refusal"]
        return refusal


@asynccontextmanager
async def listen(
    served: Served, path: str = "/rings/ALFA", headers: dict[str, str] | None = None
) -> AsyncIterator[Listening]:
    async with dial(served.address) as stream:
        listening = Listening(stream)
        await listening.ask(path, AUTH if headers is None else headers)
        yield listening


@pytest.mark.requirement("streams.sse-events")
async def test_resume_comes_first_then_events_with_their_cursors(served: Served, broker: FakeBroker) -> None:
    async with listen(served) as listening:
        assert listening.status == 200
        first = await listening.next()
        assert first is not None
        assert (first.event, first.id) == ("resume", START)
        assert msgspec.json.decode(first.data) == {"recovered": True, "from": START, "head": START}
        for kind in ("ring", "env", "end", "desk_moved"):
            cursor = broker.tell(kind, conv="c1", n=0)
            event = await listening.next()
            assert event is not None
            assert (event.event, event.id) == (kind, cursor)
            assert msgspec.json.decode(event.data) == {"cursor": cursor, "own": False, "conv": "c1", "n": 0}


@pytest.mark.requirement("streams.sse-headers")
async def test_the_headers_keep_proxies_and_caches_off(served: Served) -> None:
    async with listen(served) as listening:
        headers = listening.headers
        assert headers["content-type"] == "text/event-stream; charset=utf-8"
        assert headers["cache-control"] == "no-store"
        assert headers["x-accel-buffering"] == "no"
        assert "content-encoding" not in headers


@pytest.mark.requirement("streams.sse-comment")
async def test_a_comment_breaks_every_silence(served: Served) -> None:
    async with dial(served.address) as stream:
        await stream.send_all(REQUEST)
        await read_until(stream, b": ping\n\n")
        await read_until(stream, b": ping\n\n")


@pytest.mark.requirement("streams.sse-cursor")
@pytest.mark.parametrize(
    ("path", "headers", "after"),
    [
        ("/rings/ALFA", {}, None),
        ("/rings/ALFA?after=0", {}, "0"),
        ("/rings/ALFA/?after=a.b.1", {}, "a.b.1"),
        ("/rings/ALFA", {"last-event-id": "a.b.2"}, "a.b.2"),
        ("/rings/ALFA?after=a.b.1", {"last-event-id": "a.b.2"}, "a.b.2"),
        ("/rings/ALFA?after=a.b.1", {"last-event-id": ""}, "a.b.1"),
    ],
)
async def test_the_cursor_comes_from_last_event_id_or_the_query(
    served: Served, broker: FakeBroker, path: str, headers: dict[str, str], after: str | None
) -> None:
    async with listen(served, path, AUTH | headers) as listening:
        await listening.next()
        assert broker.readers[0].after == after


async def test_an_event_source_shows_its_proof_in_the_query_and_it_is_logged_nowhere(
    served: Served, broker: FakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    secret = proof(code="ALFA")
    with caplog.at_level(0):
        async with listen(served, f"/rings/ALFA?auth={secret}", {}) as listening:
            assert await listening.next() is not None
        await eventually(lambda: not broker.readers[0].open)
    assert broker.admitted[0][0] == Caller()
    assert secret not in caplog.text


@pytest.mark.requirement("streams.sse-refused-before")
@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        ("/rings/ALFA", {}, 401, "unauthenticated"),
        ("/rings/ALFA", {"authorization": "Bearer x"}, 401, "unauthenticated"),
        ("/rings/ALFA", {"authorization": "Turret x"}, 401, "bad_statement"),
        ("/rings/ALFA?auth=x", {}, 401, "bad_statement"),
        ("/rings/alfa", AUTH, 404, "not_found"),
        ("/rings/ALFAX", AUTH, 404, "not_found"),
        ("/rings/", AUTH, 404, "not_found"),
        ("/rings/ALFA/x", AUTH, 404, "not_found"),
        ("/rings/ALFA?after=" + "x" * 200, AUTH, 400, "bad_request"),
    ],
)
async def test_who_may_not_read_gets_the_refusal_and_no_stream(
    served: Served, broker: FakeBroker, path: str, headers: dict[str, str], status: int, code: str
) -> None:
    async with listen(served, path, headers) as listening:
        assert (listening.status, (await listening.refusal())["code"]) == (
            status,
            code,
        )
        assert listening.headers["cache-control"] == "no-store"
    assert broker.readers == []


async def test_a_refusal_of_the_broker_has_its_status(served: Served, broker: FakeBroker) -> None:
    broker.refuse_follow = refuse("not_a_party", "the code does not resolve to your key")
    async with listen(served) as listening:
        assert listening.status == 403


@pytest.mark.parametrize("method", ["POST", "HEAD", "DELETE"])
async def test_other_methods_are_405(served: Served, broker: FakeBroker, method: str) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.request(method, f"{served.url}/rings/ALFA", headers=AUTH)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert broker.readers == []


async def closed(listening: Listening) -> tuple[str, dict[str, object]]:
    """The last event's data, once the stream has ended in good order."""
    event = await listening.next()
    while event is not None and event.event != "closed":
        event = await listening.next()
    assert event is not None
    assert await listening.next() is None
    data: dict[str, object] = msgspec.json.decode(event.data)
    return event.id, data


@pytest.mark.requirement("streams.sse-end")
async def test_the_stream_names_the_refusal_that_ends_it_and_keeps_the_last_cursor(
    served: Served, broker: FakeBroker
) -> None:
    async with listen(served) as listening:
        await listening.next()
        cursor = broker.tell("env")
        refusal = refuse("desk_moved", "ALFA has moved to another key", pk=DEALER_PK)
        broker.readers[0].end(refusal)
        assert await closed(listening) == (cursor, {"reason": "desk_moved", "refusal": refusal.body()})
        assert listening.decoder.retry_ms == 2000
    await eventually(lambda: not broker.readers[0].open)


async def test_a_reader_that_is_too_slow_is_told_and_ended(served: Served, broker: FakeBroker) -> None:
    async with listen(served) as listening:
        await listening.next()
        broker.readers[0].fall_behind()
        assert (await closed(listening))[1] == {"reason": "slow"}


@pytest.mark.requirement("streams.sse-restart")
async def test_a_restart_ends_the_stream_with_a_wait_by_chance(served: Served, broker: FakeBroker) -> None:
    waits = set()
    for _ in range(5):
        async with listen(served) as listening:
            await listening.next()
            broker.end_streams(refuse("unavailable", "the broker restarts"))
            assert (await closed(listening))[1]["reason"] == "unavailable"
            waits.add(listening.decoder.retry_ms)
    assert all(wait is not None and 500 <= wait <= 5500 for wait in waits)
    assert len(waits) > 1


async def test_a_fault_within_the_stream_ends_it_with_an_incident(
    served: Served, broker: FakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    async with listen(served) as listening:
        await listening.next()
        broker.readers[0]._send.send_nowait(RuntimeError("a secret"))
        _, data = await closed(listening)
        assert data["reason"] == "internal"
        assert str(data["incident"]) in caplog.text


@pytest.mark.requirement("ws.unavailable", "streams.sse-end")
async def test_a_store_that_gives_nothing_ends_the_stream_as_unavailable_and_is_no_fault(
    served: Served, broker: FakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    async with listen(served) as listening:
        await listening.next()
        broker.readers[0]._send.send_nowait(Unavailable("the disk is gone"))
        _, data = await closed(listening)
        assert data["reason"] == "unavailable"
        assert data["refusal"]["retryable"] is True
    assert "incident" not in caplog.text


@pytest.mark.requirement("presence.sse-ends-with-its-stream")
async def test_a_client_that_leaves_closes_its_reader_without_noise(
    served: Served, broker: FakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    async with listen(served) as listening:
        await listening.next()
        assert broker.readers[0].open
    await eventually(lambda: not broker.readers[0].open)
    assert [record for record in caplog.records if record.name.startswith("gateways")] == []


async def test_a_client_that_never_reads_is_cut_and_does_not_slow_another(
    served: Served, broker: FakeBroker
) -> None:
    async with stalled(served.address, REQUEST):
        await eventually(lambda: len(broker.readers) == 1)
        async with listen(served) as listening:
            await listening.next()
            for _ in range(300):
                broker.tell("env", pad="x" * 30_000)
                event = await listening.next()
                assert event is not None
            await eventually(lambda: not broker.readers[0].open)
            assert broker.readers[1].open


async def test_the_shutdown_ends_in_time_with_streams_open(broker: FakeBroker) -> None:
    app = web_app(broker, Metrics(broker))  # type: ignore[arg-type]
    async with serving(app, bounds=Bounds(grace_s=2)) as server, listen(server) as listening:
        await listening.next()
        broker.end_streams(refuse("unavailable", "the broker restarts"))
        server.shutdown.set()
        with trio.fail_after(1):
            await server.ended.wait()


@pytest.mark.requirement("streams.sse-no-injection")
async def test_hostile_text_arrives_as_one_event_at_independent_readers(bench: Bench) -> None:
    text = "\r\n\r\nevent: x\ndata: y\u0085\u2028\u2029\0\x1c é"
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    given = brav.statement("follow", bench.broker.pk, bench.ts, code="BRAV", until=bench.ts + 600)
    statement = msgspec.json.encode(given["statement"], order="sorted")
    headers = {"authorization": f"Turret {write_proof(statement, given['sig'])}"}
    async with serving(web_app(bench.broker, Metrics(bench.broker))) as server:
        params = bench.calling(alfa, brav, note=text)
        assert "conv" in await bench.call("send_call", **params)
        async with listen(server, "/rings/BRAV?after=0", headers) as listening:
            received = b""
            while b"event: ring" not in received:
                received += await listening.read()
            independent = httpx_sse._decoders.SSEDecoder()
            read = [each for line in received.decode()[:-1].split("\n") if (each := independent.decode(line))]
            assert [each.event for each in read] == ["resume", "ring"]
            ring = read[1]
            assert ring.json()["envelope"]["body"]["note"] == text
            assert ring.json()["cursor"] == ring.id
        async with listen(server, "/rings/BRAV", headers | {"last-event-id": ring.id}) as listening:
            resume = await listening.next()
            assert resume is not None
            assert msgspec.json.decode(resume.data) == {"recovered": True, "from": ring.id, "head": ring.id}
        async with listen(server, "/rings/ALFA", headers) as listening:
            assert (listening.status, (await listening.refusal())["code"]) == (403, "not_a_party")


async def test_the_end_of_a_raw_stream_is_the_end_of_its_chunks(served: Served, broker: FakeBroker) -> None:
    async with dial(served.address) as stream:
        await stream.send_all(REQUEST.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        await read_until(stream, b"resume")
        broker.readers[0].fall_behind()
        assert (await read_all(stream)).endswith(b"\r\n0\r\n\r\n")


# By a token


@pytest.mark.requirement("doors.sse", "doors.challenge", "doors.hostile-tokens")
async def test_a_token_opens_a_stream_and_a_bad_one_is_led_to_a_better(broker: FakeBroker) -> None:
    gate, bearers = gate_of(broker)
    bearers.give("t", agent_of("ag_1"))
    async with serving(web_app(broker, Metrics(broker), gate=gate), bounds=QUICK) as served:  # type: ignore[arg-type]
        async with listen(served, headers={"authorization": "Bearer t"}) as listening:
            assert listening.status == 200
            assert (await listening.next()) is not None
        for path, headers in (
            ("/rings/ALFA", {"authorization": "Bearer bad"}),
            ("/rings/ALFA?access_token=t", {}),
            ("/rings/ALFA?auth=t", {}),
        ):
            async with httpx.AsyncClient(base_url=served.url) as http:
                no = await http.get(path, headers=headers)
                assert no.status_code == 401, path
                assert no.headers.get_list("www-authenticate")[0].startswith("Bearer resource_metadata=")
    assert [token for token, _ in bearers.asked] == ["t", "bad"]


@pytest.mark.requirement("doors.sse", "doors.right-lost")
async def test_a_stream_read_by_a_token_ends_when_the_right_is_lost(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    agent = await make_agent(bench, "alice", key=alfa.key)
    gate, bearers = gate_of(bench.broker)
    bearers.give("t", agent)
    async with serving(web_app(bench.broker, Metrics(bench.broker), gate=gate), bounds=QUICK) as served:
        headers = {"authorization": "Bearer t"}
        async with listen(served, "/rings/BRAV", headers) as listening:
            assert (listening.status, (await listening.refusal())["code"]) == (403, "not_a_party")
        async with listen(served, "/rings/ALFA", headers) as listening:
            assert (await listening.next()) is not None
            await bench.dial(brav, alfa)
            ring = await listening.next()
            assert ring is not None
            assert ring.event == "ring"
            suspend(bench, agent)
            with trio.fail_after(1):
                closed = await listening.next()
                assert closed is not None
                assert msgspec.json.decode(closed.data)["refusal"]["code"] == "suspended"
                assert await listening.next() is None
