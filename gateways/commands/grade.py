"""`turret grade`: a finished trial, run again, compared and graded; anywhere, by its artifact and its tape."""

import hashlib
import sys
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from broker.core.tapes.csvfile import Complaint, decimal, read_csv
from broker.core.tapes.tape import Tape, read_tape
from broker.core.trials.report import Report, report_of
from broker.core.trials.review import Fault, Graded, made_again, read_trial, review
from broker.core.trials.script import Artifact, Entry
from gateways.client.artifacts import SCHEME, fetch_artifact, read_ref
from gateways.client.show import printable
from gateways.commands.common import USAGE, Failure, Options, common, echo_error, run
from gateways.pages.equity import alone
from gateways.pages.trialreport import OUTCOMES, OVER, page, shown

PLOTS: Final = {".svg": alone, ".html": page}
"""What a plot is, by the end of its file's name."""
COLUMNS: Final = ("plan", "naive maker", "aside")
PLACES: Final = {"plan": "call", "call": "call", "fills": "fill", "marks": "mark"}
"""What a fault's number counts, from 0."""


@click.command()
@click.argument("source", metavar="REF|FILE")
@click.option(
    "--tape",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The tape, or the CSV file that it was imported from; needed where it is not made by rule.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="Draw it: FILE.svg is the picture, FILE.html a page with picture, grades, plans and fills.",
)
@common
def grade(options: Options, source: str, tape: Path | None, plot: Path | None) -> None:
    """Grade a finished trial: what it made, how far it fell, beside a naive maker and one that stood aside.

    REF is the ref of its artifact, or kestrel://artifact/…, fetched from any broker that has it; FILE is the artifact,
    - for standard input. The trial is run again here, call by call, and compared: exits 1 and names the first thing
    that does not hold. A tape that is made by rule is made again; another is needed as a file.

    \b
    Example:
      turret grade 5f0c…e2 --plot trial.svg
    """
    if plot is not None and plot.suffix.lower() not in PLOTS:
        raise Failure("plot", f"{plot}: a plot is a file whose name ends with .svg or .html", USAGE)
    content = _content(options, source)
    ref = hashlib.sha256(content).hexdigest()
    found = graded(content, tape)
    if isinstance(found, Fault):
        if options.json:
            options.show({"ref": ref, "fault": found})
        where = "" if found.n is None else f" at {PLACES[found.what]} {found.n}"
        other = " (turret arena verify checks a session of the arena)" if found.what == "kind" else ""
        raise Failure(found.what, f"{source} does not hold{where}: {found.message}{other}")
    artifact, grades = found
    report = report_of(ref, artifact, grades)
    if plot is not None:
        plot.write_text(PLOTS[plot.suffix.lower()](report), encoding="utf-8")
        echo_error(f"drawn: {plot}")
    options.show(told(report), lines(report))


def graded(content: bytes, tape: Path | None) -> tuple[Artifact, Graded] | Fault:
    """An artifact and its grades, or what does not hold. Raises Failure where its tape is wanted."""
    artifact = read_trial(content)
    if isinstance(artifact, Fault):
        return artifact
    market = _tape(artifact.entry, tape)
    found = market if isinstance(market, Fault) else review(content, artifact, market)
    return found if isinstance(found, Fault) else (artifact, found)


def told(report: Report) -> dict[str, Any]:
    """What programs are told: as kestrel.grade answers."""
    names = ("ref", "tape", "fills_model", "outcome", "over", "kind", "seed", "grades", "aside", "naive")
    return {name: msgspec.to_builtins(getattr(report, name)) for name in names}


def lines(report: Report) -> str:
    """What people are told."""
    columns = [shown(each) for each in (report.grades, report.naive, report.aside)]
    rows = [["", *COLUMNS], *([name, *(each[name] for each in columns)] for name in columns[0])]
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    made = "imported" if report.kind is None else f"{report.kind}, seed {report.seed}"
    head = (
        f"{report.about.instrument} ({made}): {report.grades.ticks:,} of {report.ticks:,} ticks, run again: it holds",
        f"{OUTCOMES[report.outcome]}: {OVER[report.over]}",
        f"ref: {report.ref}",
        "",
    )
    table = [
        "  ".join(each.rjust(width) if n else each.ljust(width) for n, (each, width) in enumerate(columns_of))
        for columns_of in (zip(row, widths, strict=True) for row in rows)
    ]
    return "\n".join(printable(each.rstrip()) for each in (*head, *table))


def _content(options: Options, source: str) -> bytes:
    """The artifact's bytes: of a broker, where a ref is given and no file has its name."""
    if source == "-":
        return sys.stdin.buffer.read()
    path = Path(source)
    if not source.startswith(SCHEME) and (path.exists() or not _is_ref(source)):
        if not path.exists():
            said = f"{source} is no file, and no ref, which is 64 lowercase hex characters"
            raise Failure("usage", said, USAGE)
        return path.read_bytes()
    return run(fetch_artifact, options.url, read_ref(source))


def _is_ref(source: str) -> bool:
    try:
        read_ref(source)
    except ValueError:
        return False
    return True


def _tape(entry: Entry, file: Path | None) -> Tape | Fault:
    """The tape of an entry: of a file where one is given, else made again."""
    if file is None:
        made = made_again(entry)
        if made is None:
            raise Failure("tape", f"its tape was imported: give it with --tape FILE ({entry.ref})", USAGE)
        return made
    content = file.read_bytes()
    if content.startswith(b"{"):
        return read_tape(content)
    about = entry.about
    found = read_csv(content, instrument=about.instrument, tick=decimal(about.tick), fee=decimal(about.fee))
    if isinstance(found, Complaint):
        raise Failure("tape", f"{file}, line {found.line}: {found.message}", USAGE)
    return found
