"""A finished trial as a page: its picture, its grades beside two others, its plans, calls and fills.

1. One file with its styles and nothing else: no script, no image, nothing that is loaded. Its policy says so.
2. What an agent wrote (a plan, an instrument) is text, escaped, in a <bdi>: no letter of it is ours.
3. Where a table of the picture's numbers is enough, the picture is not needed.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Final

from broker.core.trials.grade import Grades
from broker.core.trials.report import CALLS, PLANS, Report
from gateways.pages.chart import Svg
from gateways.pages.equity import FORMS, LINES, MARKS, MICRO, equity, money

TEMPLATES: Final = Path(__file__).parent / "templates"
STYLES: Final = (TEMPLATES / "equity.css", TEMPLATES / "trial.css")
"""What a page that shows a report has besides the pages' own sheet."""
OVER: Final[Mapping[str | None, str]] = {
    "rule": "a rule stood down",
    "loss": "the loss bound was reached",
    "money": "more profit than a trial tells",
    "until": "the plan’s last tick",
    "tape": "the tape’s end",
    None: "it was finalized before its plan was over",
}
OUTCOMES: Final[Mapping[str, str]] = {"RUNNING": "not over", "STAND_DOWN": "stood down", "DONE": "done"}
HINT: Final = (
    "This was run again from its calls and compared, tick by tick, before it was graded. What the plan says is its "
    "author’s, and no advice."
)


def page(report: Report) -> str:
    """The report as an HTML document of its own."""
    return document(f"Trial {report.ref[:12]}", f"<h1>A trial</h1>{body(report)}")


def refused(title: str, text: str) -> str:
    """A document that says why there is none."""
    return document(title, f"<h1>{escape(title)}</h1><p>{escape(text)}</p>")


def document(title: str, main: str) -> str:
    """A document of markup that is ours, with its styles in it."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_loads())}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)} – Turret</title>\n<style>{style()}</style>\n</head>\n"
        '<body>\n<header><div class="wide bar"><span class="brand">Turret</span></div></header>\n'
        f'<main class="wide">\n{main}\n</main>\n</body>\n</html>\n'
    )


def policy() -> str:
    """The Content-Security-Policy of such a document: its own styles, by their hash, and nothing else."""
    return f"{_loads()}; frame-ancestors 'none'; sandbox"


@cache
def style() -> str:
    """All its styles."""
    return "".join(each.read_text() for each in (TEMPLATES / "turret.css", *STYLES))


@cache
def _loads() -> str:
    digest = b64encode(sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def body(report: Report) -> Svg:
    """What a page shows of it: markup."""
    return Svg(
        "\n".join(
            (
                '<div class="trial">',
                f'<p class="hint">{HINT}</p>',
                _facts(report),
                '<section class="card" aria-labelledby="picture-title"><h2 id="picture-title">Profit and loss</h2>',
                f'{_legend()}<div class="picture">{equity(report)}</div>{_curve(report)}</section>',
                '<section aria-labelledby="grades-title"><h2 id="grades-title">Grades</h2>',
                f"{_grades(report)}</section>",
                '<section aria-labelledby="plans-title"><h2 id="plans-title">Plans and calls</h2>',
                f"{_plans(report)}{_calls(report)}</section>",
                '<section aria-labelledby="fills-title"><h2 id="fills-title">Fills</h2>',
                f"{_fills(report)}</section>",
                "</div>",
            )
        )
    )


def _facts(report: Report) -> str:
    made = "imported" if report.kind is None else f"{report.kind}, seed {report.seed}"
    facts = (
        ("Outcome", f"{OUTCOMES[report.outcome]}: {OVER[report.over]}"),
        ("Instrument", report.about.instrument),
        ("Ticks", f"{report.grades.ticks:,} of {report.ticks:,}"),
        ("Tape", f"{made}; {report.tape}"),
        ("Fill model", report.fills_model),
        ("Ref", report.ref),
    )
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{_text(value)}</dd>" for name, value in facts) + "</dl>"


def _legend() -> str:
    lines = [(f'<path class="{kind}" d="M0 9h26"></path>', name) for kind, name in LINES]
    marks = [
        (
            f'<path class="{side}" d="{FORMS[side]}" transform="translate(13 {1 if side == "buy" else 17})"></path>',
            name,
        )
        for side, name in MARKS
    ]
    fall = ('<path class="fall" d="M0 3h26v12h-26z"></path>', "below its height")
    return (
        '<ul class="legend">'
        + "".join(
            f'<li><svg class="equity" width="26" height="18" aria-hidden="true">{shape}</svg>{escape(name)}</li>'
            for shape, name in (*lines, *marks, fall)
        )
        + "</ul>"
    )


def _curve(report: Report) -> str:
    """The picture as numbers."""
    rows = []
    for name, points in (("the plan", report.curve), ("a naive maker", report.maker)):
        if points:
            least = min(points, key=lambda point: point[1])
            most = max(points, key=lambda point: point[1])
            shown = [f"{money(made)} at {tick:,}" for tick, made in (points[0], least, most, points[-1])]
            rows.append([name, *shown])
    return _table("The curves in numbers: money, at which tick", ("", "First", "Least", "Most", "Last"), rows)


def _grades(report: Report) -> str:
    columns = [shown(each) for each in (report.grades, report.naive, report.aside)]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    caption = (
        f"Money in the quote currency; sizes in units; times in ticks. Position at most {report.bound:,}"
    )
    return _table(caption, ("", "The plan", "Naive maker", "Aside"), rows)


def shown(grades: Grades) -> dict[str, str]:
    """Grades as people read them, by name."""
    earned, closed = grades.hits
    return {
        "Profit and loss": money(grades.pnl),
        "Deepest fall": money(grades.max_drawdown),
        "Sharpe, a tick": money(grades.sharpe),
        "Closed with a gain": f"{earned:,} of {closed:,}",
        "Turnover": f"{grades.turnover:,}",
        "Fills": f"{grades.fills:,}",
        "Orders": f"{grades.orders:,}",
        "Kept back by a bound": f"{grades.avoided:,}",
        "In the market": f"{grades.in_market:,}",
        "Ticks": f"{grades.ticks:,}",
    }


def _plans(report: Report) -> str:
    parts = [f"<h3>Call {n}</h3><pre><bdi>{escape(_safe(text))}</bdi></pre>" for n, text in report.plans]
    return "".join(parts) + _rest(len(report.plans), PLANS, "plans")


def _calls(report: Report) -> str:
    items = "".join(f"<li>{_text(call)}</li>" for call in report.calls)
    return (
        f'<details><summary>Calls</summary><ol start="0">{items}</ol>'
        f"{_rest(len(report.calls), CALLS, 'calls')}</details>"
    )


def _fills(report: Report) -> str:
    if not report.fills:
        return "<p>None.</p>"
    rows = [
        [f"{fill.tick:,}", fill.side, f"{fill.size:,}", f"{fill.price:,}", money(fill.fee)]
        for fill in report.fills
    ]
    more = report.grades.fills - len(rows)
    tick = f"{report.about.tick // MICRO}.{report.about.tick % MICRO:06}".rstrip("0").rstrip(".")
    table = _table(f"Prices in ticks of {tick}", ("Tick", "Side", "Size", "Price", "Fee"), rows)
    return table + (f'<p class="hint">{more:,} more are in the artifact.</p>' if more > 0 else "")


def _rest(count: int, most: int, what: str) -> str:
    return (
        f'<p class="hint">These are the first {most} {what}; the artifact has all.</p>'
        if count >= most
        else ""
    )


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names the row; it scrolls by itself where it is too wide."""
    columns = "".join(f'<th scope="col"{_number(n)}>{escape(head)}</th>' for n, head in enumerate(heads))
    lines = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f'<td class="number">{escape(each)}</td>' for each in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<div class="scroll" role="region" aria-label="{escape(caption)}" tabindex="0"><table>'
        f'<caption class="hint">{escape(caption)}</caption><thead><tr>{columns}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _number(n: int) -> str:
    return ' class="number"' if n else ""


def _text(value: str) -> str:
    return f"<bdi>{escape(_safe(value))}</bdi>"


def _safe(value: str) -> str:
    """Letters that no page may hold, or that turn others round, as what can't be shown."""
    return "".join(each if each in "\n\t" or each.isprintable() else "\ufffd" for each in value)
