"""What do bystanders feel of one dealer that misbehaves? (`python -m bench.dealers --noisy`)

Bystanders deal in an open loop at a modest rate, in turn without and with the noise of bench.kit.noise; the ratio of
their p99 is the figure. The noise runs on the same two cores, so that it also takes CPU from broker and load.
"""

from typing import Any, Final

from bench.kit.machine import cpu_s
from bench.kit.report import say
from bench.kit.run import Measured, Run, medians
from bench.kit.server import running

KINDS: Final = ("flood", "slow")
RATE: Final = 500.0
TARGET: Final = 2.0


def measure(measured: Measured, url: str, *, rate: float, seconds: float, runs: int) -> dict[str, Any]:
    """Quiet, flood and slow in turn, `runs` times. Raises Lost."""
    found: dict[str, list[Run]] = {"quiet": [], **{kind: [] for kind in KINDS}}
    noise_s = dict.fromkeys(KINDS, 0.0)
    for at in range(runs):
        found["quiet"].append(_told(f"quiet, run {at + 1}/{runs}", measured.open(rate, seconds)))
        for kind in KINDS:
            with running(["bench.kit.noise", kind, url]) as noise:
                before = cpu_s(noise.pid)
                found[kind].append(_told(f"{kind}, run {at + 1}/{runs}", measured.open(rate, seconds)))
                noise_s[kind] += cpu_s(noise.pid) - before
    quiet = medians(found["quiet"])
    rows = {kind: _row(medians(found[kind]), quiet, noise_s[kind] / runs / seconds) for kind in KINDS}
    worst = max(row["p99_ratio"] for row in rows.values())
    return {
        "loop": "noisy",
        "offered_per_s": rate,
        **quiet,
        "noise": rows,
        "p99_ratio": worst,
        "target": TARGET,
    }


def _row(noisy: dict[str, Any], quiet: dict[str, Any], cores: float) -> dict[str, Any]:
    return {
        **noisy,
        "p50_ratio": round(noisy["p50_ms"] / quiet["p50_ms"], 2),
        "p99_ratio": round(noisy["p99_ms"] / quiet["p99_ms"], 2),
        "noise_cores": round(cores, 2),
    }


def _told(name: str, run: Run) -> Run:
    say(
        f"bystanders, {name}: p50 {run.p50_ms:.2f} ms, p99 {run.p99_ms:.2f} ms, lag p99 {run.lag_p99_ms:.1f} ms"
    )
    return run
