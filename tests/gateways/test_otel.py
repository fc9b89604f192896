"""Spans: which there are, whose children they are, and what never stands in them."""

import ipaddress
import json
import os
from collections.abc import Sequence
from typing import Any

import pytest
import trio
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from broker.app import Caller, Outcome
from broker.store.memory import MemoryStore
from gateways import web
from gateways.metrics import Metrics
from gateways.otel import PLACES, Otel, open_exporting
from gateways.quick import Started, quick_reader
from gateways.web import web_app
from tests.support.asgi import asked
from tests.support.broker import Bench, open_bench
from tests.support.broker_fake import FakeBroker, proof

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
JSON = {"content-type": "application/json"}


class Seen:
    """What was exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.otel = Otel(provider, (ipaddress.ip_network("10.0.0.1/32"),))

    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()

    def one(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans() if span.name == name]
        return found


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.mark.requirement("observe.traces")
async def test_a_request_its_call_and_its_commit_are_one_trace(seen: Seen) -> None:
    async with open_bench(store=seen.otel.store(MemoryStore())) as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        line = await bench.dial(alfa, brav)
        seen.exporter.clear()
        broker = seen.otel.calls(bench.broker)
        door = seen.otel.requests(web_app(broker, Metrics(bench.broker)))
        body = json.dumps(line.next("PICKUP")).encode()
        answer = await asked(door, "/v1/send_env", JSON, method="POST", body=body)
        assert answer.status == 200
    request, call, commit = seen.one("POST /v1"), seen.one("send_env"), seen.one("commit")
    assert request.parent is None
    assert call.parent is not None
    assert call.parent.span_id == request.context.span_id
    assert commit.parent is not None
    assert commit.parent.span_id == call.context.span_id
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["turret.request_id"] == answer.headers["x-request-id"]
    assert call.attributes is not None
    assert call.attributes["turret.outcome"] == "ok"


@pytest.mark.requirement("observe.traces")
async def test_a_call_without_a_task_has_its_span_too(seen: Seen) -> None:
    async with open_bench(store=seen.otel.store(MemoryStore())) as bench:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        line = await bench.dial(alfa, brav)
        assert (await line.send("PICKUP"))["n"] == 1
        seen.exporter.clear()
        params = json.dumps(line.next("RFQ", {"px": "1"}), separators=(",", ":"))
        frame = b'{"jsonrpc":"2.0","id":1,"method":"send_env","params":%b}' % params.encode()
        started = quick_reader(bench.broker).read(frame)
        assert isinstance(started, Started)
        answers: list[Any] = []
        door = seen.otel.calls(bench.broker)
        assert door.begin(Caller(), started.tool, started.arguments, answers.append)
        with trio.fail_after(5):
            while not answers:
                await trio.lowlevel.checkpoint()
    call, commit = seen.one("send_env"), seen.one("commit")
    assert commit.parent is not None
    assert commit.parent.span_id == call.context.span_id


@pytest.mark.requirement("observe.traces")
@pytest.mark.parametrize(
    ("client", "continued"), [("127.0.0.1", True), ("10.0.0.1", True), ("203.0.113.9", False)]
)
async def test_a_traceparent_of_ours_is_gone_on_with_and_a_strangers_is_linked_to(
    seen: Seen, client: str, continued: bool
) -> None:
    broker = FakeBroker()
    door = seen.otel.requests(web_app(broker, Metrics(broker)))  # type: ignore[arg-type]
    await asked(door, "/healthz", {"traceparent": PARENT}, client=client)
    span = seen.one("GET /healthz")
    trace = f"{span.context.trace_id:032x}"
    assert (trace == TRACE) is continued
    assert [f"{link.context.trace_id:032x}" for link in span.links] == ([] if continued else [TRACE])


@pytest.mark.requirement("observe.traces")
@pytest.mark.parametrize(
    "given", ["00-0-0-01", "ff" * 30, "00-" + "0" * 32 + "-b7ad6b7169203331-01", "x\u00e9"]
)
async def test_a_traceparent_that_is_none_begins_a_trace_of_its_own(seen: Seen, given: str) -> None:
    broker = FakeBroker()
    door = seen.otel.requests(web_app(broker, Metrics(broker)))  # type: ignore[arg-type]
    await asked(door, "/healthz", {"traceparent": given})
    span = seen.one("GET /healthz")
    assert span.parent is None
    assert list(span.links) == []


@pytest.mark.requirement("observe.traces")
async def test_a_delivery_to_a_webhook_is_told_the_traceparent(seen: Seen) -> None:
    carried: list[dict[str, str]] = []

    class Way:
        async def send(self, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> Outcome:
            carried.append(dict(headers))
            return Outcome(204) if url == "https://good.example" else Outcome(None, "no_answer")

    courier = seen.otel.courier(Way())
    assert (await courier.send("https://good.example", [("webhook-id", "x")], b"{}")).status == 204
    assert (await courier.send("https://bad.example", [], b"{}")).status is None
    good, bad = seen.spans()
    assert carried[0]["webhook-id"] == "x"
    named = f"00-{good.context.trace_id:032x}-{good.context.span_id:016x}-"
    assert carried[0]["traceparent"].startswith(named)
    assert [span.status.status_code.name for span in (good, bad)] == ["UNSET", "ERROR"]


@pytest.mark.requirement("observe.traces")
async def test_nothing_that_a_client_sent_stands_in_a_span(seen: Seen) -> None:
    broker = FakeBroker()

    async def fail(*_: Any) -> None:
        raise RuntimeError("planted-in-a-fault")

    broker.answers["echo"] = fail
    counted = seen.otel.calls(broker)  # type: ignore[arg-type]
    door = seen.otel.requests(web_app(counted, Metrics(broker)))  # type: ignore[arg-type]
    shown = {**JSON, "authorization": f"Turret {proof(nonce='planted-nonce')}", "cookie": "planted-cookie"}
    for path in ("/v1/echo", "/v1/planted-tool", "/rings/PLAN?auth=planted-auth", "/planted-path/x"):
        await asked(door, path, shown, method="POST", body=b'{"a":"planted-body"}')
    await asked(door, "/healthz", method="PLANTED-METHOD")
    state = {"traceparent": PARENT, "tracestate": "planted=state"}
    await asked(door, "/healthz", state, client="203.0.113.9", server="192.0.2.1")
    with pytest.raises(LookupError):
        await counted.call(Caller(), "planted-tool", b"{}")
    text = "\n".join(span.to_json() for span in seen.spans())
    assert seen.spans()
    assert "plan" not in text.lower()
    assert seen.one("echo").status.status_code.name == "ERROR"


async def test_what_is_exported_goes_where_the_variables_say_and_leaving_does_not_hang(
    monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    monkeypatch.setitem(os.environ, "OTEL_SDK_DISABLED", "false")
    monkeypatch.setitem(os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setitem(os.environ, "OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with trio.fail_after(10):
        async with open_exporting() as otel:
            assert await otel.calls(bench.broker).call(Caller(), "wire_info", b"{}")


@pytest.mark.requirement("observe.traces")
async def test_a_span_can_name_the_place_of_every_route(monkeypatch: pytest.MonkeyPatch) -> None:
    quart = web.quart_app()
    monkeypatch.setattr(web, "quart_app", lambda: quart)
    async with open_bench() as bench:
        web_app(bench.broker, Metrics(bench.broker))
    places = {rule.rule.strip("/").partition("/")[0] for rule in quart.url_map.iter_rules()}
    assert places - {""} <= PLACES
    assert {"v1", "owner", "verify"} <= places
