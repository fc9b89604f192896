"""Of many values those that a drawing needs: no extreme is lost."""

from collections.abc import Sequence
from typing import Final

PIECES: Final = 150
"""Into which many values are cut; four of each stay at most."""
Point = tuple[int, int]
"""Where a value stood, and the value."""


def decimate(values: Sequence[int], pieces: int = PIECES) -> list[Point]:
    """(place, value) of those that are drawn, in their order: all where they are few, else of each piece the first, the
    least, the greatest and the last."""
    if len(values) <= 4 * pieces:
        return list(enumerate(values))
    kept: set[int] = set()
    for piece in range(pieces):
        places = range(piece * len(values) // pieces, (piece + 1) * len(values) // pieces)
        kept |= {places[0], places[-1]}
        kept |= {min(places, key=values.__getitem__), max(places, key=values.__getitem__)}
    return [(place, values[place]) for place in sorted(kept)]
