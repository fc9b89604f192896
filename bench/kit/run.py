"""A measured run: the load beside what the broker's process, its loop and the machine did meanwhile.

V is measured right before and after each stretch of load, in the load's process, while the broker is idle; figures
of the broker are taken around the stretch alone, so that signing ahead and checking count nowhere.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from bench.kit.load import Load, Result
from bench.kit.machine import busy_s, cpu_s, rss_mib, verifications_per_s
from bench.kit.report import Lag, percentile
from bench.kit.server import Broker

STRETCH_S: Final = 5.0
"""The longest stretch for which is signed ahead: memory (1.3 KB an envelope), and a ts far from its bound."""
V_S: Final = 0.25


class Run(msgspec.Struct, kw_only=True):
    """What one run found, all stretches together."""

    envelopes_per_s: float
    verifications_per_s: float
    ratio_to_verify: float
    ratio_by_cpu: float
    """The cost of a verification over the broker's CPU per envelope: what the ratio would be on cores of its own, if
    all that the broker does had to fit in one."""
    p50_ms: float
    p99_ms: float
    lag_p50_ms: float
    lag_p99_ms: float
    cpu_us_per_envelope: float
    """CPU of the broker, its threads and helpers."""
    load_cpu_us_per_envelope: float
    """CPU of the load's own process."""
    others_cores: float
    """CPU that neither of them used, in cores: what else the machine did."""
    rss_mib: float
    envelopes: int
    seconds: float


class Measured:
    """Runs one load against one broker. `latencies`: ms of the last run, sorted."""

    def __init__(self, broker: Broker, load: Load, lines: int) -> None:
        self.latencies: list[float] = []
        self._broker = broker
        self._load = load
        self._lines = lines
        self._expected = 0.0

    def warm_up(self, seconds: float = 0.5) -> float:
        """A closed loop that does not count; envelopes a second, as far as one can tell from it."""
        self._expected = verifications_per_s(V_S) * 1.5
        self._sign(seconds)
        found = self._load.closed_loop(seconds).per_s
        self._expected = found * 1.5
        return found

    def closed(self, seconds: float) -> Run:
        """One envelope under way on each line. Raises Lost."""
        return self._run(seconds, self._load.closed_loop, sign=self._sign)

    def open(self, rate: float, seconds: float) -> Run:
        """`rate` envelopes a second, whether they are answered or not. Raises Lost."""

        def sign(stretch: float) -> None:
            self._load.sign(math.ceil(rate * stretch / self._lines) + 1)

        return self._run(seconds, lambda stretch: self._load.open_loop(rate, stretch), sign=sign)

    def _sign(self, seconds: float) -> None:
        self._load.sign(max(16, math.ceil(self._expected * seconds / self._lines)))

    def _run(self, seconds: float, drive: Callable[[float], Result], sign: Callable[[float], None]) -> Run:
        stretches = math.ceil(seconds / STRETCH_S)
        lag, results, v, broker_s, busy = Lag(), [], [], 0.0, 0.0
        for _ in range(stretches):
            sign(seconds / stretches)
            v.append(verifications_per_s(V_S))
            scraped, cpu, all_cpu = self._broker.metrics(), cpu_s(self._broker.pid), busy_s()
            results.append(drive(seconds / stretches))
            busy += busy_s() - all_cpu
            broker_s += cpu_s(self._broker.pid) - cpu
            lag.add(scraped, self._broker.metrics())
            v.append(verifications_per_s(V_S))
        self.latencies = sorted(each for result in results for each in result.latencies)
        return self._figures(results, v, broker_s, busy, lag)

    def _figures(
        self, results: Sequence[Result], v: Sequence[float], broker_s: float, busy: float, lag: Lag
    ) -> Run:
        took, count = sum(each.seconds for each in results), len(self.latencies)
        if not count:
            raise RuntimeError("not one envelope was acknowledged in the run")
        own = sum(each.own_cpu_s for each in results)
        mean = sum(v) / len(v)
        return Run(
            envelopes_per_s=round(count / took, 1),
            verifications_per_s=round(mean, 1),
            ratio_to_verify=round(count / took / mean, 4),
            ratio_by_cpu=round(count / broker_s / mean, 4) if broker_s else 0.0,
            p50_ms=round(percentile(self.latencies, 0.5), 3),
            p99_ms=round(percentile(self.latencies, 0.99), 3),
            lag_p50_ms=lag.ms(0.5),
            lag_p99_ms=lag.ms(0.99),
            cpu_us_per_envelope=round(broker_s / count * 1e6, 1),
            load_cpu_us_per_envelope=round(own / count * 1e6, 1),
            others_cores=round(max(0.0, busy - broker_s - own) / took, 2),
            rss_mib=round(rss_mib(self._broker.pid), 1),
            envelopes=count,
            seconds=round(took, 3),
        )


def medians(runs: Sequence[Run], names: Sequence[str] | None = None) -> dict[str, Any]:
    """Each figure's median over the runs."""
    wanted = names or [each for each in Run.__struct_fields__ if each not in ("envelopes", "seconds")]
    return {name: round(statistics.median(getattr(run, name) for run in runs), 4) for name in wanted}
