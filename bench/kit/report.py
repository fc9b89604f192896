"""What a bench says: percentiles, the loop's lag, tables, one JSON object on the last line, progress on stderr."""

import json
import math
import re
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

LAG: Final = "turret_loop_lag_seconds"
_BUCKET: Final = re.compile(rf'^{LAG}_bucket{{le="([^"]+)"}} (\S+)$', re.MULTILINE)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of them do not exceed; `values` sorted. 0.0: there are none."""
    if not values:
        return 0.0
    return values[min(len(values), max(1, math.ceil(share * len(values)))) - 1]


def spread(values: Sequence[float], digits: int = 3) -> dict[str, float]:
    """Median, least and most of some runs."""
    return {
        "median": round(statistics.median(values), digits),
        "min": round(min(values), digits),
        "max": round(max(values), digits),
    }


class Lag:
    """The loop's lag between scrapes of /metrics: how late the server's loop woke a sleeper (50 times a second)."""

    def __init__(self) -> None:
        self._counts: dict[float, float] = {}

    def add(self, before: str, after: str) -> None:
        """Count what came between two texts of /metrics."""
        first = dict(_BUCKET.findall(before))
        for edge, count in _BUCKET.findall(after):
            grown = float(count) - float(first.get(edge, 0))
            self._counts[float(edge)] = self._counts.get(float(edge), 0) + grown

    def ms(self, share: float) -> float:
        """The lag that `share` (0 to 1) of the samples did not exceed, ms; between the edges of a bucket by line."""
        edges = sorted(self._counts)
        total = self._counts[edges[-1]] if edges else 0
        low = below = 0.0
        for edge in edges:
            count = self._counts[edge]
            if count >= share * total and count > below:
                high = low if edge == float("inf") else edge
                return round((low + (high - low) * (share * total - below) / (count - below)) * 1000, 3)
            low, below = edge, count
        return 0.0


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """Rows as a Markdown table; columns in the order of the first row where none are named."""
    names = list(columns or rows[0])
    cells = [[_cell(row.get(name, "")) for name in names] for row in rows]
    widths = [max(len(names[at]), *(len(row[at]) for row in cells)) for at in range(len(names))]
    lines = [
        [name.ljust(width) for name, width in zip(names, widths, strict=True)],
        ["-" * width for width in widths],
        *([cell.rjust(width) for cell, width in zip(row, widths, strict=True)] for row in cells),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, Mapping) and "median" in value:
        return f"{_cell(value['median'])} ({_cell(value['min'])} to {_cell(value['max'])})"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def finish(report: Mapping[str, Any], *, as_json: bool) -> None:
    """With --json: the report as the last line of stdout, one object."""
    if as_json:
        print(json.dumps(report), flush=True)


def say(text: str) -> None:
    """Progress, on stderr, with the time of day."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
