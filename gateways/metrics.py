"""Figures for Prometheus: calls by tool and outcome, the broker's own statistics, the loop's lag.

1. A label is a tool's name, an outcome's code or an actor's kind: a fixed set. Ids, keys, codes and addresses are
   never labels.
2. The registry is ours alone: nothing that a library registers elsewhere gets out.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate
from time import perf_counter
from typing import Any, Final, cast

import msgspec
import trio
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from quart import Quart, Response

from broker.app import Again, Broker, Caller, Progress, Then, Tool
from broker.wire.refusals import Refusal

COUNTED: Final = frozenset({"accepted", "crashes", "slow_readers", "signatures_delayed"})
"""Statistics that only grow; the others are gauges."""
LAG_BUCKETS: Final = (
    *(each / 1000 for each in (0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50)),
    *(0.1, 0.2, 0.5, 1.0, 2.0),
)
"""Fine where a server should be: benches read p50 and p99 from them. An idle loop shows up to 1 ms, because the
kernel is asked to wait in whole milliseconds."""
CALL_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)


class Metrics:
    """What `GET /metrics` shows of one broker."""

    def __init__(self, broker: Broker) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self._calls: dict[tuple[str, str], int] = {}
        self._times: dict[str, _Times] = {}
        self._lag = Histogram(
            "turret_loop_lag_seconds",
            "How late the loop wakes a sleeper.",
            buckets=LAG_BUCKETS,
            registry=self.registry,
        )
        self.registry.register(_Collector(lambda: _statistics(broker)))
        self.registry.register(_Collector(self._called))

    def text(self) -> bytes:
        """The exposition text, version 0.0.4."""
        return generate_latest(self.registry)

    def called(self, tool: str, outcome: str, seconds: float) -> None:
        """Count one call of a tool that exists. On the hot path: plain numbers, no lock (one loop, one thread)."""
        key = (tool, outcome)
        self._calls[key] = self._calls.get(key, 0) + 1
        times = self._times.get(tool)
        if times is None:
            times = self._times[tool] = _Times()
        times.counts[bisect_left(CALL_BUCKETS, seconds)] += 1
        times.sum += seconds

    async def sample_lag(self, busy_s: float = 0.02, idle_s: float = 0.25) -> None:
        """Measure the loop's lag for ever; run it in the server's nursery.

        Every `busy_s` while calls come, every `idle_s` while none do: 50 samples a second took an idle broker 1 % of
        a core.
        """
        calls = 0
        while True:
            before, calls = calls, sum(self._calls.values())
            due = trio.current_time() + (busy_s if calls != before else idle_s)
            await trio.sleep_until(due)
            self._lag.observe(max(0.0, trio.current_time() - due))

    def _called(self) -> Iterator[Metric]:
        calls = CounterMetricFamily(
            "turret_calls",
            "Calls of tools by outcome: ok, a refusal's code, cancelled, fault.",
            labels=["tool", "outcome"],
        )
        for key, count in sorted(self._calls.items()):
            calls.add_metric(key, count)
        yield calls
        seconds = HistogramMetricFamily("turret_call_seconds", "Time that a call took.", labels=["tool"])
        for tool, times in sorted(self._times.items()):
            edges = [*map(str, CALL_BUCKETS), "+Inf"]
            buckets = list(zip(edges, accumulate(times.counts), strict=True))
            seconds.add_metric([tool], buckets, times.sum)
        yield seconds


class _Times:
    """How long the calls of one tool took: how many fell into each bucket, and the sum in seconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(CALL_BUCKETS) + 1)
        self.sum = 0.0


class _Collector:
    """What the registry asks at each scrape."""

    def __init__(self, collect: Callable[[], Iterator[Metric]]) -> None:
        self.collect = collect


def _statistics(broker: Broker) -> Iterator[Metric]:
    for name, value in msgspec.structs.asdict(broker.statistics()).items():
        if isinstance(value, dict):
            family = GaugeMetricFamily(f"turret_{name}", f"{name} by kind", labels=["kind"])
            for kind, number in value.items():
                family.add_metric([kind], number)
            yield family
        elif name in COUNTED:
            yield CounterMetricFamily(f"turret_{name}", _words(name), value=value)
        else:
            yield GaugeMetricFamily(f"turret_{name}", _words(name), value=value)
    reasons = broker.readiness()
    yield GaugeMetricFamily("turret_ready", "1 while the broker takes new work.", value=0 if reasons else 1)


def _words(name: str) -> str:
    return f"{name.replace('_', ' ')} (broker statistics)"


def register(app: Quart, metrics: Metrics) -> None:
    """Add `GET /metrics`."""

    @app.get("/metrics")
    async def figures() -> Response:
        response = Response(metrics.text(), 200)
        response.headers["content-type"] = CONTENT_TYPE_LATEST
        response.headers["cache-control"] = "no-store"
        return response


def measured(broker: Broker, metrics: Metrics) -> Broker:
    """The same broker, with every call counted; give this one to the doors."""
    return cast(Broker, _Measured(broker, metrics))  # all else is the broker's own


class _Measured:
    def __init__(self, broker: Broker, metrics: Metrics) -> None:
        self._broker = broker
        self._metrics = metrics
        # What the doors read at every call stands here, so that __getattr__ is not asked.
        self.tools = broker.tools
        self.settings = broker.settings

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def begin(self, caller: Caller, tool: Tool, arguments: Any, then: Then) -> bool:
        """As the broker's; what turns out to need `call` is counted there."""
        name, began = tool.name, perf_counter()

        def answered(outcome: Any) -> None:
            if isinstance(outcome, Refusal):
                self._metrics.called(name, outcome.code, perf_counter() - began)
            elif not isinstance(outcome, Again):
                self._metrics.called(name, "ok", perf_counter() - began)
            then(outcome)

        return self._broker.begin(caller, tool, arguments, answered)

    async def call(
        self, caller: Caller, name: str, params: bytes, *, progress: Progress | None = None
    ) -> Any:
        """As the broker's. A name that is no tool is not counted: names that clients choose are no labels."""
        began = trio.current_time()
        outcome = "fault"
        try:
            result = await self._broker.call(caller, name, params, progress=progress)
            outcome = result.code if isinstance(result, Refusal) else "ok"
        except trio.Cancelled:
            outcome = "cancelled"
            raise
        finally:
            if name in self.tools:
                self._metrics.called(name, outcome, trio.current_time() - began)
        return result
