"""Plots, with matplotlib (the `bench` extra): a file's name ends in .png or .svg. Loaded when something is drawn."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MISSING = "plots need matplotlib: pip install 'turret[bench]'"


def need() -> None:
    """Raise SystemExit with one line where there is no matplotlib: before a run, not after it."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise SystemExit(MISSING) from None


def distribution(file: Path, series: Mapping[str, Sequence[float]], title: str) -> None:
    """Latencies (ms; any order) of each series by percentile, up to where there are values to tell it."""
    figure, axes = _figure(title)
    most = 10.0
    for name, values in series.items():
        if not values:
            continue
        ordered = sorted(values)
        count = len(ordered)
        axes.plot([count / (count - at) for at in range(count)], ordered, label=name, drawstyle="steps-post")
        most = max(most, float(count))
    axes.set_xscale("log")
    axes.set_yscale("log")
    marks = [each for each in (1, 2, 10, 100, 1_000, 10_000, 100_000) if each <= most]
    axes.set_xticks(marks, [f"{100 - 100 / each:g} %" for each in marks])
    axes.minorticks_off()
    axes.set_xlabel("percentile")
    axes.set_ylabel("latency, ms")
    _save(figure, axes, file)


def against_load(file: Path, rows: Sequence[Mapping[str, float]], title: str) -> None:
    """Throughput and p99 (rows: offered_per_s, envelopes_per_s, p50_ms, p99_ms) against offered load."""
    figure, axes = _figure(title)
    offered = [row["offered_per_s"] for row in rows]
    axes.plot(offered, [row["envelopes_per_s"] for row in rows], "o-", label="accepted, left")
    axes.plot(offered, offered, ":", color="grey", label="offered")
    axes.set_xlabel("offered, envelopes per second")
    axes.set_ylabel("accepted, envelopes per second")
    right = axes.twinx()
    right.plot(offered, [row["p99_ms"] for row in rows], "s--", color="tab:red", label="p99, right")
    right.plot(offered, [row["p50_ms"] for row in rows], "s--", color="tab:orange", label="p50, right")
    right.set_yscale("log")
    right.set_ylabel("acknowledgement latency, ms")
    right.legend(loc="lower right")
    _save(figure, axes, file)


def _figure(title: str) -> tuple[Any, Any]:
    need()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title)
    axes.grid(visible=True, alpha=0.3)
    return figure, axes


def _save(figure: Any, axes: Any, file: Path) -> None:
    axes.legend(loc="upper left")
    figure.savefig(file)
