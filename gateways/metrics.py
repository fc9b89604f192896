"""Figures for Prometheus: calls by tool and outcome, the broker's own statistics, the loop's lag.

1. A label is a tool's name, an outcome's code or an actor's kind: a fixed set. Ids, keys, codes and addresses are
   never labels.
2. The registry is ours alone: nothing that a library registers elsewhere gets out.
"""

from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec
import trio
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from quart import Quart, Response

from broker.app import Broker, Caller, Progress
from broker.wire.refusals import Refusal

COUNTED: Final = frozenset({"accepted", "crashes", "slow_readers", "signatures_delayed"})
"""Statistics that only grow; the others are gauges."""
LAG_BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
CALL_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)


class Metrics:
    """What `GET /metrics` shows of one broker."""

    def __init__(self, broker: Broker) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self._calls = Counter(
            "turret_calls",
            "Calls of tools, by outcome (ok, a refusal's code, fault).",
            ["tool", "outcome"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "turret_call_seconds",
            "Time that a call took.",
            ["tool"],
            buckets=CALL_BUCKETS,
            registry=self.registry,
        )
        self._lag = Histogram(
            "turret_loop_lag_seconds",
            "How late the loop wakes a sleeper.",
            buckets=LAG_BUCKETS,
            registry=self.registry,
        )
        self.registry.register(_Statistics(broker))

    def text(self) -> bytes:
        """The exposition text, version 0.0.4."""
        return generate_latest(self.registry)

    def called(self, tool: str, outcome: str, seconds: float) -> None:
        """Count one call of a tool that exists."""
        self._calls.labels(tool, outcome).inc()
        self._seconds.labels(tool).observe(seconds)

    async def sample_lag(self, every_s: float = 0.25) -> None:
        """Measure the loop's lag for ever; run it in the server's nursery."""
        while True:
            due = trio.current_time() + every_s
            await trio.sleep_until(due)
            self._lag.observe(max(0.0, trio.current_time() - due))


class _Statistics:
    """A collector that asks the broker at each scrape."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def collect(self) -> Iterator[Metric]:
        for name, value in msgspec.structs.asdict(self._broker.statistics()).items():
            if isinstance(value, dict):
                family = GaugeMetricFamily(f"turret_{name}", f"{name} by kind", labels=["kind"])
                for kind, number in value.items():
                    family.add_metric([kind], number)
                yield family
            elif name in COUNTED:
                yield CounterMetricFamily(f"turret_{name}", _words(name), value=value)
            else:
                yield GaugeMetricFamily(f"turret_{name}", _words(name), value=value)
        reasons = self._broker.readiness()
        yield GaugeMetricFamily(
            "turret_ready", "1 while the broker takes new work.", value=0 if reasons else 1
        )


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

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

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
            if name in self._broker.tools:
                self._metrics.called(name, outcome, trio.current_time() - began)
        return result
