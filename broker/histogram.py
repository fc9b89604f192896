"""A histogram of plain numbers: what a hot path may touch, and Prometheus can show."""

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """How many values were at most each of `edges` (rising), and their sum. One thread at a time adds."""

    __slots__ = ("counts", "edges", "sum")

    def __init__(self, edges: Sequence[float]) -> None:
        self.edges = edges
        self.counts = [0] * (len(edges) + 1)
        """By the first edge that the value did not exceed; the last one: those beyond all edges."""
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Count one more. About 0.2 µs."""
        self.counts[bisect_left(self.edges, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)
