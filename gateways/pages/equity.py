"""What a trial made, tick by tick, as SVG: its curve, the two beside it, its fills, its falls and what it held.

1. A pure function of a report. It holds no word but those it is given, escaped, and no style of its own but where it
   stands alone, as a file.
2. As wide as its place: lines are stretched and their pens are not; letters and marks stay as they are.
3. Each line has a dash of its own, each mark a form: nothing depends on colour.
"""

from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Final

from broker.core.thinning import Point
from broker.core.trials.report import Report
from gateways.pages.chart import Svg, ticks

MICRO: Final = 1_000_000
TOP: Final = 12
HEIGHT: Final = 220
"""Of the curve's place, in CSS pixels."""
GAP: Final = 26
BAND: Final = 64
"""Of the place of what is held, below the curve."""
FOOT: Final = 24
WHOLE: Final = TOP + HEIGHT + GAP + BAND + FOOT
LEGEND: Final = 30
"""Of the line that says what is what, where the picture stands alone."""
LEFT: Final = 84
RIGHT: Final = 24
ALONE: Final = 900
"""How wide the picture is alone; its words stand left of it."""
SHEET: Final = Path(__file__).parent / "templates" / "equity.css"
TITLE: Final = "Profit and loss, tick by tick"
LINES: Final = (("curve", "the plan"), ("maker", "a naive maker"), ("aside", "standing aside"))
MARKS: Final = (("buy", "bought"), ("sell", "sold"))
FORMS: Final = {"buy": "M0 3L5.5 13H-5.5Z", "sell": "M0 -3L5.5 -13H-5.5Z"}
"""A purchase points up from below the curve, a sale down from above it."""
HUES: Final = """svg { color-scheme: light dark; --ground: #ffffff; --ink: #1a1d23; --soft: #535b68; --line: #8a92a0;
--faint: #d5d9e0; --blue: #0b57b0; --red: #b3151e; --green: #14692f; font: 13px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --ground: #14171c; --ink: #eceff4; --soft: #b0b8c5; --line: #7d8696;
--faint: #363c47; --blue: #8ec1ff; --red: #ff9d97; --green: #86dba0; } }
"""
"""The page's colours, for a picture without one."""


def equity(report: Report) -> Svg:
    """The picture for a page, whose sheet has the styles of `equity.css`."""
    return Svg(_picture(report, "100%"))


def alone(report: Report) -> str:
    """The same as a file of its own, with its styles and a line that says what is what."""
    wide, high = LEFT + ALONE + RIGHT, LEGEND + WHOLE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}">'
        f"<style>{HUES}{sheet()}</style>"
        f'<rect class="ground" width="{wide}" height="{high}"></rect>'
        f'<g class="equity" transform="translate({LEFT} 0)">{_legend()}</g>'
        f'<svg x="{LEFT}" y="{LEGEND}" width="{ALONE}" height="{WHOLE}" overflow="visible">'
        f"{_picture(report, str(ALONE))}</svg></svg>\n"
    )


@cache
def sheet() -> str:
    """The styles of the picture."""
    return SHEET.read_text()


def money(micros: int) -> str:
    """Millionths of a currency as people read them: `-1,234.50`."""
    whole, rest = divmod(abs(micros), MICRO)
    digits = f"{rest:06}".rstrip("0")
    return f"{'-' if micros < 0 else ''}{whole:,}" + (f".{digits:0<2}" if digits else "")


def words(report: Report) -> str:
    """What the picture shows, for who reads it instead."""
    least = min(report.curve, key=lambda point: point[1], default=(0, 0))
    most = max(report.curve, key=lambda point: point[1], default=(0, 0))
    marks = len(report.marks)
    fills = report.grades.fills
    return (
        f"Over {report.grades.ticks:,} ticks the plan made {money(report.grades.pnl)}: at least {money(least[1])}, at "
        f"tick {least[0]:,}, and at most {money(most[1])}, at tick {most[0]:,}. Its deepest fall was "
        f"{money(report.grades.max_drawdown)}. The naive maker made {money(report.naive.pnl)}. "
        f"{marks:,} of {fills:,} fill{'s are' if fills != 1 else ' is'} marked."
    )


def _picture(report: Report, width: str) -> str:
    last = max(1, report.grades.ticks - 1)
    values = [made for _, made in (*report.curve, *report.maker)]
    low, high = min(0, *values, 0), max(0, *values, 0)
    scale = _Scale(ticks(low, high if high > low else MICRO), TOP, HEIGHT, last)
    sizes = [size for _, size in report.position]
    band = _Scale(_round(min(sizes), max(sizes)), TOP + HEIGHT + GAP, BAND, last)
    return "".join(
        (
            f'<svg class="equity" width="{width}" height="{WHOLE}" role="img" '
            'aria-labelledby="equity-title equity-words">',
            f'<title id="equity-title">{escape(TITLE)}</title><desc id="equity-words">{escape(words(report))}</desc>',
            "<defs>",
            *(f'<path id="mark-{side}" d="{form}"></path>' for side, form in FORMS.items()),
            "</defs>",
            *scale.grid(_short(scale.marks)),
            *band.grid([f"{mark:,}" for mark in band.marks]),
            f'<svg width="100%" height="{WHOLE}" viewBox="0 0 1000 {WHOLE}" preserveAspectRatio="none">',
            _shape("fall", _fall(report.curve, scale)),
            _line("aside", [(0, 0), (last, 0)], scale),
            _line("maker", report.maker, scale),
            _line("curve", report.curve, scale),
            _shape("held", _held(report.position, band, last)),
            "</svg>",
            *_marks(report, scale),
            _label(0, HEIGHT + TOP + GAP - 8, "Held, in units", ""),
            _label(0, WHOLE - 4, "tick 0", ""),
            _label("100%", WHOLE - 4, f"tick {last:,}", "end"),
            "</svg>",
        )
    )


class _Scale:
    """From values to a place: `marks` are its first and last, and those between."""

    def __init__(self, marks: list[int], top: int, height: int, last: int) -> None:
        self.marks = marks
        self._top, self._height, self._last = top, height, last

    def y(self, value: int) -> float:
        return round(
            self._top + self._height * (self.marks[-1] - value) / (self.marks[-1] - self.marks[0]), 1
        )

    def x(self, tick: int) -> float:
        """In thousandths of the width."""
        return round(min(tick, self._last) * 1000 / self._last, 2)

    def at(self, point: Point) -> str:
        return f"{self.x(point[0]):g} {self.y(point[1]):g}"

    def grid(self, labels: Sequence[str]) -> list[str]:
        lines = []
        for mark, label in zip(self.marks, labels, strict=True):
            y = self.y(mark)
            lines.append(f'<line class="grid" x1="0" x2="100%" y1="{y:g}" y2="{y:g}"></line>')
            lines.append(_label(-8, y + 4, label, "end"))
        return lines


def _round(least: int, most: int) -> list[int]:
    """The least and the most that was held, and nothing, as far as these are not the same."""
    found = sorted({least, 0, most})
    return found if len(found) > 1 else [0, 1]


def _short(marks: list[int]) -> list[str]:
    """Money of an axis: in thousands or millions where all of them are whole ones."""
    for size, sign in ((MICRO**2, " M"), (1000 * MICRO, " k")):
        if all(mark % size == 0 for mark in marks):
            return [f"{mark // size:,}{sign if mark else ''}" for mark in marks]
    return [money(mark) for mark in marks]


def _line(kind: str, points: Sequence[Point], scale: _Scale) -> str:
    places = list(map(scale.at, points)) or [scale.at((0, 0))]
    d = "M" + "L".join(places) + (f"L1000 {places[0].split()[1]}" if len(places) == 1 else "")
    return f'<path class="{kind}" vector-effect="non-scaling-stroke" d="{d}"></path>'


def _shape(kind: str, places: Sequence[str]) -> str:
    return f'<path class="{kind}" d="M{"L".join(places)}Z"></path>' if places else ""


def _fall(curve: Sequence[Point], scale: _Scale) -> list[str]:
    """How far the curve is below its height of before, which begins with 0: there along the height, back along it."""
    height, heights = 0, []
    for tick, made in curve:
        height = max(height, made)
        heights.append((tick, height))
    return [scale.at(point) for point in (*heights, *reversed(curve))]


def _held(position: Sequence[Point], band: _Scale, last: int) -> list[str]:
    """What is held, in steps, from nothing and back to it."""
    places, before = [band.at((0, 0))], 0
    for tick, size in position:
        places += [band.at((tick, before)), band.at((tick, size))]
        before = size
    return [*places, band.at((last, before)), band.at((last, 0))]


def _marks(report: Report, scale: _Scale) -> list[str]:
    """A mark at the curve for each fill that has one."""
    at = [tick for tick, _ in report.curve]
    marks = []
    for fill in report.marks:
        made = report.curve[max(0, bisect_right(at, fill.tick) - 1)][1]
        x = scale.x(fill.tick) / 10
        marks.append(
            f'<use class="{fill.side}" href="#mark-{fill.side}" x="{x:g}%" y="{scale.y(made):g}"></use>'
        )
    return marks


def _label(x: int | str, y: float, text: str, anchor: str) -> str:
    end = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x}" y="{y:g}"{end}>{escape(text)}</text>'


def _legend() -> str:
    """What is what, in one line."""
    parts, x = [], 0
    for kind, name in LINES:
        parts.append(f'<path class="{kind}" d="M{x} 18h26"></path>{_label(x + 32, 22, name, "")}')
        x += 150
    for side, name in MARKS:
        y = 10 if side == "buy" else 26
        parts.append(
            f'<use class="{side}" href="#mark-{side}" x="{x + 8}" y="{y}"></use>{_label(x + 20, 22, name, "")}'
        )
        x += 90
    parts.append(
        f'<path class="fall" d="M{x} 11h26v12h-26z"></path>{_label(x + 32, 22, "below its height", "")}'
    )
    return "".join(parts)
