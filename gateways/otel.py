"""Spans by OpenTelemetry: requests, calls of tools, commits, deliveries. Imported where traces are asked for alone.

1. Nothing of what a client sent stands in a span: no path beyond its first part, no id, no text of an exception.
2. A traceparent makes its span the parent where it comes from this machine or a proxy of ours; whoever else sends one
   would decide what we keep, so that it is linked to.
3. Where spans go, and how many are kept, say OpenTelemetry's variables (OTEL_EXPORTER_OTLP_ENDPOINT,
   OTEL_TRACES_SAMPLER …).

Source: W3C Trace Context; OpenTelemetry, semantic conventions for HTTP.
"""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, TypeVar, cast

import trio
from opentelemetry import context as contexts
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from broker.app import VERSION, Again, Broker, Caller, Courier, Outcome, Progress, Then, Tool
from broker.wire.refusals import Refusal
from gateways import requestid
from gateways.listen import App, Message, Network, Receive, Scope, Send, is_proxy, peer_of

S = TypeVar("S")
"""A store: gateways do not know which."""
FLUSH_S: Final = 1.5
"""Seconds at the end for the spans that were not sent yet; beside what the doors have, so that all is over in ten."""
PLACES: Final = frozenset(
    {
        "v1", "mcp", "ws", "rings", "channels", "a2a", "agents", "artifact", "oauth", "verify", "metrics", "healthz",
        "readyz", "owner", "directory", "consent", "sign-in", "sign-out", "sign-up", "pages", "openapi.json",
        ".well-known",
    }
)  # fmt: skip
"""First parts of paths that a span may name: those of the public port's doors."""
METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
"""What a request may be called; any other word is its sender's."""
OTHER: Final = "_OTHER"
_PARENT: Final = TraceContextTextMapPropagator()


@asynccontextmanager
async def open_exporting(proxies: tuple[Network, ...] = ()) -> AsyncIterator["Otel"]:
    """Traces that are sent by OTLP over HTTP, from a thread of their own."""
    named = "OTEL_SERVICE_NAME" in os.environ or "service.name" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    provider = TracerProvider(resource=Resource.create({} if named else {"service.name": "turret"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    try:
        yield Otel(provider, proxies)
    finally:
        with trio.move_on_after(FLUSH_S, shield=True):
            await trio.to_thread.run_sync(provider.shutdown, abandon_on_cancel=True)


class Otel:
    """See gateways.traces.Traces."""

    def __init__(self, provider: TracerProvider, proxies: tuple[Network, ...] = ()) -> None:
        self.tracer = provider.get_tracer("turret", VERSION)
        self._proxies = proxies

    def requests(self, app: App) -> App:
        async def traced(scope: Scope, receive: Receive, send: Send) -> None:
            parent, links = self._came_from(scope)
            first = scope["path"].strip("/").partition("/")[0]
            place = f"/{first}" if first in PLACES else "/"
            method = scope["method"] if scope["method"] in METHODS else OTHER
            span = self.tracer.start_span(
                f"{method if method != OTHER else 'HTTP'} {place}",
                context=parent,
                kind=SpanKind.SERVER,
                links=links,
                attributes={"http.request.method": method, "http.route": place},
            )

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("turret.request_id", requestid.current())
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(StatusCode.ERROR)
                await send(message)

            with _Inside(span):
                await app(scope, receive, sending)

        return traced

    def calls(self, broker: Broker) -> Broker:
        return cast(Broker, _Calls(broker, self))

    def store(self, store: S) -> S:
        return cast(S, _Store(store, self))

    def courier(self, courier: Courier) -> Courier:
        return _Courier(courier, self)

    def _came_from(self, scope: Scope) -> tuple[contexts.Context, list[Link]]:
        """The parent of a request's span, or what it is linked to."""
        none = contexts.Context()
        given = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        found = _PARENT.extract({name.lower(): value for name, value in given.items()}, context=none)
        named = get_current_span(found).get_span_context()
        if not named.is_valid:
            return none, []
        peer = peer_of(scope)
        ours = peer is not None and (peer.is_loopback or is_proxy(peer, self._proxies))
        bare = SpanContext(
            named.trace_id, named.span_id, True, named.trace_flags
        )  # tracestate is a text of theirs
        return (found, []) if ours else (none, [Link(bare)])


class _Inside:
    """While the block lasts a span is the present one; it ends with it. A fault marks it, and says nothing more."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def __enter__(self) -> Span:
        self._token = contexts.attach(set_span_in_context(self._span))
        return self._span

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        contexts.detach(self._token)
        if kind is not None and issubclass(kind, Exception):
            self._span.set_status(StatusCode.ERROR)
        self._span.end()


class _Calls:
    """A broker whose calls of tools have spans."""

    def __init__(self, broker: Broker, otel: Otel) -> None:
        self._broker = broker
        self._tracer = otel.tracer
        self._names = {*broker.tools, *broker.operator_tools}
        self.tools = broker.tools
        self.settings = broker.settings
        self.admission = broker.admission

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def begin(self, caller: Caller, tool: Tool, arguments: Any, then: Then) -> bool:
        span = self._tracer.start_span(tool.name, attributes={"turret.tool": tool.name})

        def answered(outcome: Any) -> None:
            if not isinstance(outcome, Again):
                _tell(span, outcome)
            span.end()
            then(outcome)

        token = contexts.attach(set_span_in_context(span))
        try:
            return self._broker.begin(caller, tool, arguments, answered)
        finally:
            contexts.detach(token)

    async def call(
        self, caller: Caller, name: str, params: bytes, *, progress: Progress | None = None
    ) -> Any:
        tool = name if name in self._names else "unknown"
        with _Inside(self._tracer.start_span(tool, attributes={"turret.tool": tool})) as span:
            answer = await self._broker.call(caller, name, params, progress=progress)
            _tell(span, answer)
            return answer


def _tell(span: Span, answer: Any) -> None:
    span.set_attribute("turret.outcome", answer.code if isinstance(answer, Refusal) else "ok")


class _Store:
    """A store whose commits have spans."""

    def __init__(self, store: Any, otel: Otel) -> None:
        self._store = store
        self._start = partial(otel.tracer.start_span, "commit", kind=SpanKind.CLIENT)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, unit: Any) -> None:
        with _Inside(self._start()):
            await self._store.commit(unit)

    def submit(self, unit: Any, then: Any) -> None:
        span = self._start()

        def landed(error: BaseException | None) -> None:
            if error is not None:
                span.set_status(StatusCode.ERROR)
            span.end()
            then(error)

        self._store.submit(unit, landed)


class _Courier:
    """A way out whose requests have spans, and carry the traceparent."""

    def __init__(self, courier: Courier, otel: Otel) -> None:
        self._courier = courier
        self._tracer = otel.tracer

    async def send(self, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> Outcome:
        with _Inside(self._tracer.start_span("webhook", kind=SpanKind.CLIENT)) as span:
            carried: dict[str, str] = {}
            _PARENT.inject(carried)
            outcome = await self._courier.send(url, [*headers, *carried.items()], body)
            if outcome.status is None:
                span.set_status(StatusCode.ERROR)
            else:
                span.set_attribute("http.response.status_code", outcome.status)
            return outcome
