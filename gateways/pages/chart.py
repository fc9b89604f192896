"""A line chart as SVG, made of numbers alone: the points of a session, action by action.

1. A pure function of the values. It holds no word but those it is given, escaped, and no style: the sheet has it.
2. As wide as its place: the line is stretched and its pen is not; letters stay as large as those of the page. Points
   stand left of it, where the sheet leaves room.
3. Of many values those stay that the eye would see: of each piece the first, the least, the greatest and the last.
"""

from collections.abc import Sequence
from html import escape
from typing import Final

import msgspec

from broker.core.thinning import decimate

TOP: Final = 18
HEIGHT: Final = 168
"""Of the line's place, in CSS pixels; above it is room for a label, below it for the numbers of actions."""
WHOLE: Final = TOP + HEIGHT + 26
GRID: Final = 4
"""Lines across at most, about."""


class Svg(str):
    """Markup that we made: a template writes it out as it is."""

    def __html__(self) -> str:
        return str(self)


class Summary(msgspec.Struct, frozen=True):
    """What the chart says, for who reads it instead: (after which action, points)."""

    first: tuple[int, int]
    least: tuple[int, int]
    most: tuple[int, int]
    last: tuple[int, int]


def summary(values: Sequence[int]) -> Summary:
    """The first, the (first) least and greatest, the last of these; ValueError for none."""
    if not values:
        raise ValueError("a chart has one value at least")
    at = range(len(values))
    least, most = min(at, key=values.__getitem__), max(at, key=values.__getitem__)
    ends = (0, len(values) - 1)
    first, low, high, last = ((n, values[n]) for n in (ends[0], least, most, ends[1]))
    return Summary(first, low, high, last)


def ticks(low: int, high: int) -> list[int]:
    """Round numbers from `low` or below to `high` or above, evenly: 1, 2 or 5 times a power of ten apart; two at
    least."""
    step = 1
    while (high - low) > GRID * step:
        step = step * 5 // 2 if str(step).startswith("2") else step * 2
    first = low // step * step
    last = max(-(-high // step) * step, first + step)
    return list(range(first, last + step, step))


def line(values: Sequence[int], title: str, words: str, ends: tuple[str, str]) -> Svg:
    """The SVG of values, one an action. `title` and `words` tell what it shows and how it went; `ends` stand below it,
    left and right. ValueError for no values."""
    told = summary(values)
    marks = ticks(told.least[1], told.most[1])
    span, whole = marks[-1] - marks[0], max(1, len(values) - 1)

    def y(value: int) -> float:
        return round(TOP + HEIGHT * (marks[-1] - value) / span, 1)

    d = "M" + "L".join(f"{place * 1000 / whole:.1f} {y(value)}" for place, value in decimate(values))
    if len(values) == 1:
        d += f"L1000 {y(values[0])}"  # a session without an action: its points stay
    return Svg(
        "".join(
            (
                f'<svg class="chart" width="100%" height="{WHOLE}" role="img" '
                'aria-labelledby="chart-title chart-words">',
                f'<title id="chart-title">{escape(title)}</title><desc id="chart-words">{escape(words)}</desc>',
                *(_across("grid", y(mark)) for mark in marks),
                _across("begin", y(values[0])),
                f'<svg width="100%" height="{WHOLE}" viewBox="0 0 1000 {WHOLE}" preserveAspectRatio="none">',
                f'<path class="line" vector-effect="non-scaling-stroke" d="{d}"></path></svg>',
                *(f'<text x="-8" y="{y(mark) + 4}" text-anchor="end">{mark:,}</text>' for mark in marks),
                f'<text x="0" y="{WHOLE - 4}">{escape(ends[0])}</text>',
                f'<text x="100%" y="{WHOLE - 4}" text-anchor="end">{escape(ends[1])}</text></svg>',
            )
        )
    )


def _across(kind: str, y: float) -> str:
    return f'<line class="{kind}" x1="0" x2="100%" y1="{y}" y2="{y}"></line>'
