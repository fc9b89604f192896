"""Figures for Prometheus (gateways.figures says which): calls by tool and outcome, the broker's statistics, the doors'.

1. The hot path touches plain numbers alone: what is derived from them is derived when somebody asks.
2. The registry is ours alone: nothing that a library registers elsewhere gets out.
3. Who asks the public port must be on this machine: figures tell how busy everybody is. A port of their own
   (serve.metrics_bind) is as open as its address. To everybody else there is no such path.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Any, Final

import trio
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from quart import Quart, Response, request

from broker.app import VERSION, Broker
from broker.histogram import Histogram
from gateways import render
from gateways.caller import is_local
from gateways.figures import BY_NAME, FIGURES, Figure
from gateways.listen import Network

LAG_BUCKETS: Final = (
    *(each / 1000 for each in (0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50)),
    *(0.1, 0.2, 0.5, 1.0, 2.0),
)
"""Fine where a server should be: benches read p50 and p99 from them. An idle loop shows up to 1 ms, because the
kernel is asked to wait in whole milliseconds."""
CALL_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)
ENVELOPES: Final = ("send_call", "send_env")
"""Tools whose calls carry an envelope each."""

Value = float | Histogram | Mapping[Any, "float | Histogram"]
"""A sample, or some by their labels: a text for one label, a tuple for more."""


class Metrics:
    """What `GET /metrics` shows of one broker."""

    def __init__(self, broker: Broker) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.calls: Counter[tuple[str, str]] = Counter()
        """(tool, outcome) → how many."""
        self.times: dict[str, Histogram] = {}
        self.acknowledged = Histogram(CALL_BUCKETS)
        self.audit_intact: bool | None = None
        """What the last verification of the audit log found; None: nobody has asked."""
        self.sign_ins: Counter[tuple[str, str]] = Counter()
        self._broker = broker
        self._lag = Histogram(LAG_BUCKETS)
        self._sources: dict[str, Callable[[], Value | None]] = {}
        for name, source in self._own():
            self.feed(name, source)
        self.registry.register(self)
        ProcessCollector(registry=self.registry)

    def feed(self, name: str, source: Callable[[], Value | None]) -> None:
        """Have a declared figure asked of `source` at each scrape. KeyError: it is not declared."""
        assert not BY_NAME[name].of, name
        self._sources[name] = source

    def text(self) -> bytes:
        """The exposition text, version 0.0.4."""
        return generate_latest(self.registry)

    def called(self, tool: str, outcome: str, seconds: float) -> None:
        """Count one call of a tool that exists. On the hot path: plain numbers, no lock (one loop, one thread)."""
        self.calls[tool, outcome] += 1
        times = self.times.get(tool)
        if times is None:
            times = self.times[tool] = Histogram(CALL_BUCKETS)
        times.add(seconds)

    async def sample_lag(self, busy_s: float = 0.02, idle_s: float = 0.25) -> None:
        """Measure the loop's lag for ever; run it in the server's nursery.

        Every `busy_s` while calls come, every `idle_s` while none do: 50 samples a second took an idle broker 1 % of
        a core.
        """
        calls = 0
        while True:
            before, calls = calls, self.calls.total()
            due = trio.current_time() + (busy_s if calls != before else idle_s)
            await trio.sleep_until(due)
            self._lag.add(max(0.0, trio.current_time() - due))

    def collect(self) -> Iterator[Metric]:
        """What the registry asks at each scrape: every declared figure that somebody gives now."""
        statistics = self._broker.statistics()
        for figure in FIGURES:
            source = self._sources.get(figure.name)
            if figure.of:
                yield _family(figure, attrgetter(figure.of)(statistics))
            elif source is not None and (value := source()) is not None:
                yield _family(figure, value)

    def _own(self) -> Iterator[tuple[str, Callable[[], Value | None]]]:
        yield "turret_build_info", lambda: {VERSION: 1}
        yield "turret_ready", lambda: 0 if self._broker.readiness() else 1
        yield "turret_loop_lag_seconds", lambda: self._lag
        yield "turret_envelopes_total", self._envelopes
        yield "turret_acknowledgement_seconds", lambda: self.acknowledged
        yield "turret_tool_calls_total", lambda: self.calls
        yield "turret_tool_call_seconds", lambda: self.times
        yield "turret_audit_intact", lambda: None if self.audit_intact is None else int(self.audit_intact)
        yield "turret_sign_ins_total", lambda: self.sign_ins

    def _envelopes(self) -> Value:
        found: Counter[str] = Counter(accepted=0, duplicate=0)
        for (tool, outcome), count in self.calls.items():
            if tool in ENVELOPES:
                found["accepted" if outcome == "ok" else outcome] += count
        return found


def _family(figure: Figure, value: Value) -> Metric:
    rows = sorted(value.items()) if isinstance(value, Mapping) else [((), value)]
    labels = figure.labels
    found: Any
    if figure.kind == "histogram":
        found = HistogramMetricFamily(figure.name, figure.help, labels=labels)
    elif figure.kind == "counter":
        found = CounterMetricFamily(figure.name.removesuffix("_total"), figure.help, labels=labels)
    else:
        found = GaugeMetricFamily(figure.name, figure.help, labels=labels)
    for key, each in rows:
        values = [key] if isinstance(key, str) else list(key)
        if isinstance(each, Histogram):
            edges = [*map(str, each.edges), "+Inf"]
            found.add_metric(values, list(zip(edges, accumulate(each.counts), strict=True)), each.sum)
        else:
            found.add_metric(values, each)
    return found  # type: ignore[no-any-return]  # the library's families have no types


def register(app: Quart, metrics: Metrics, *, proxies: Sequence[Network] | None = ()) -> None:
    """Add `GET /metrics` for who asks from this machine. `proxies` None: for everybody who reaches the port."""

    @app.get("/metrics")
    async def figures() -> Response:
        scope: Any = request.scope
        if proxies is not None and not is_local(scope, proxies):
            status, _, body = render.http(render.NOTHING)
            response = Response(body, status)
            response.headers["content-type"] = "application/json; charset=utf-8"
        else:
            response = Response(metrics.text(), 200)
            response.headers["content-type"] = CONTENT_TYPE_LATEST
        response.headers["cache-control"] = "no-store"
        return response
