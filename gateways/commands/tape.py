"""`turret tape`: tapes for trials: make one, check a CSV file, import it, list and remove what a broker has.

1. A file is read here, and is a tape or is not; a broker gets its bytes in parts, reads them again, and shows nothing
   before all are there. An import that was broken goes on where it was.
2. A URL is the broker's to fetch: so a secret of its headers never leaves it, and nothing of the file comes here.
"""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import urlsplit

import click

from broker.core.tapes.catalog import fault, parts_of
from broker.core.tapes.csvfile import CsvReader, decimal, to_csv
from broker.core.tapes.synthetic import KINDS, SEED, make
from broker.core.tapes.tape import MAX_TICKS, Tape
from broker.wire.ids import MAX_SAFE
from gateways.client.link import ANSWER_S
from gateways.client.show import printable
from gateways.commands.admin import (
    LONG_S,
    Place,
    ask_operators,
    merged,
    operator_options,
    operators,
    place_of,
)
from gateways.commands.backup import wants_json
from gateways.commands.common import Failure, Options, echo_error, run

MOST = 256 * 1024 * 1024
"""Bytes of a file that are read: a million lines of any form fit in."""
PIECE = 65_536
"""Bytes that are read at once."""
_FILE = click.Argument(["file"], type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))


def _facts() -> list[click.Parameter]:
    """What a CSV file does not say of itself."""
    return [
        click.Option(
            ["--instrument"], required=True, metavar="NAME", help="What is quoted, as plans name it: EURUSD."
        ),
        click.Option(
            ["--tick"], required=True, metavar="DECIMAL", help="The smallest step of a price: 0.00001."
        ),
        click.Option(
            ["--fee"], default="0", show_default=True, metavar="DECIMAL", help="What a fill costs a unit."
        ),
    ]


@click.group(no_args_is_help=False)
def tape() -> None:
    """Tapes for trials: make one or check a CSV file, offline, and bring it to a broker, as its operator.

    The file has a header, time,bid,ask or time,bid,ask,size, and a line a tick; the first wrong line is named.

    \b
    Example:
      turret tape import ticks.csv --instrument EURUSD --tick 0.00001 --licence CC-BY-4.0
    """


def _check(file: Path, instrument: str, tick: str, fee: str, as_json: bool) -> None:
    """Check a CSV file, offline: is it a tape, and which? Exits 1 and names the first line that is wrong. FILE is - for
    standard input.

    \b
    Example:
      turret tape check ticks.csv --instrument EURUSD --tick 0.00001
    """
    options = Options(json=wants_json(click.get_current_context(), as_json))
    found = _read(file, instrument, tick, fee)
    about = found.about
    facts = {
        "ref": found.ref(),
        "instrument": about.instrument,
        "ticks": len(found),
        "start": about.start,
        "step": about.step,
        "sized": about.sized,
    }
    sizes = "with sizes" if about.sized else "without sizes"
    options.show(
        facts, f"{about.instrument}: {len(found):,} ticks of {about.step} ms, {sizes}\nref: {facts['ref']}"
    )


tape.add_command(
    click.Command(
        "check",
        params=[
            _FILE,
            *_facts(),
            click.Option(["--json", "as_json"], is_flag=True, help="The facts as JSON."),
        ],
        callback=_check,
        help=_check.__doc__,
        short_help="whether a CSV file is a tape, offline",
    )
)


def _make(kind: str, seed: int, ticks: int | None) -> None:
    """Write a tape that is made by rule and seed, as every broker has it, as a CSV file to standard output. KIND is
    trend, mean-revert, jump or thin. The same seed gives the same quotes on every machine.

    \b
    Example:
      turret tape make trend --seed 7 > ticks.csv
    """
    made = make(KINDS[kind], seed, ticks)
    about = made.about
    for line in to_csv(made):
        click.echo(line, nl=False)
    facts = f"--instrument {about.instrument} --tick {decimal(about.tick)} --fee {decimal(about.fee)}"
    echo_error(f"{len(made):,} ticks; to check or import them: {facts}")


tape.add_command(
    click.Command(
        "make",
        params=[
            click.Argument(["kind"], type=click.Choice(list(KINDS))),
            click.Option(
                ["--seed"],
                type=click.IntRange(0, MAX_SAFE),
                default=SEED,
                show_default=True,
                help="Which one; the default is the catalog's.",
            ),
            click.Option(
                ["--ticks"], type=click.IntRange(2, MAX_TICKS), help="How many; else as in the catalog."
            ),
        ],
        callback=_make,
        help=_make.__doc__,
        short_help="write a seeded tape as a CSV file, offline",
    )
)


def _command(name: str, params: list[click.Parameter], short: str) -> Callable[[Callable[..., None]], None]:
    """Add a sub-command that talks to the operators' port; its function gets the options, the place, and its values."""

    def add(function: Callable[..., None]) -> None:
        @merged
        def callback(options: Options, given: dict[str, Any], values: dict[str, Any]) -> None:
            function(options, given, **values)

        all = [*params, *operator_options(environment=True)]
        tape.add_command(
            click.Command(name, params=all, callback=callback, help=function.__doc__, short_help=short)
        )

    return add


class _Where(click.ParamType[str | Path]):
    """A file, or a URL that the broker fetches."""

    name = "file or URL"

    def convert(
        self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | Path:
        if isinstance(value, str) and value.lower().startswith(("https://", "http://")):
            return value
        path: Path = _FILE.type.convert(value, param, ctx)
        return path


@_command(
    "import",
    [
        click.Argument(["file"], type=_Where(), metavar="FILE|URL"),
        *_facts(),
        click.Option(["--title"], metavar="TEXT", help="What the catalog calls it; else the file's name."),
        click.Option(
            ["--licence"], default="not stated", show_default=True, metavar="TEXT", help="Of its quotes."
        ),
        click.Option(
            ["--header"],
            multiple=True,
            metavar="'NAME: TEXT'",
            help="Sent with the request for a URL; ${NAME} in it is the operators' secret of that name.",
        ),
    ],
    "bring a CSV file into a broker's catalog",
)
def _import(
    options: Options,
    given: dict[str, Any],
    file: Path | str,
    instrument: str,
    tick: str,
    fee: str,
    title: str | None,
    licence: str,
    header: tuple[str, ...],
) -> None:
    """Bring a CSV file into a broker's catalog, through the operators' port. Exits 1 and names the first line that is
    wrong; then nothing is imported. What was broken off goes on when it is asked again.

    A URL (https://) is fetched by the broker, from public addresses alone. A header may name secrets of the operators,
    as ${NAME}, in single quotes: turret admin set-secret keeps them, and nobody is shown them.

    \b
    Examples:
      turret tape import ticks.csv --instrument EURUSD --tick 0.00001 --licence CC-BY-4.0
      turret tape import https://feed.example.org/ticks.csv --instrument EURUSD --tick 0.00001 \\
        --header 'Authorization: Bearer ${FEED_TOKEN}'
    """
    words = {"title": title or _called(file), "licence": licence}
    if isinstance(file, Path):
        if header:
            raise click.UsageError("--header is for a URL: a file is read here")
        found = _read(file, instrument, tick, fee)
        entry = run(_send, place_of(given), found, words)
    else:
        facts = {"url": file, "instrument": instrument, "tick": tick, "fee": fee, "headers": _headers(header)}
        entry = run(_one, place_of(given), "fetch_tape", {**facts, **words}, LONG_S)
    options.show(entry, _line(entry))


def _called(file: Path | str) -> str:
    """What a tape is called where nobody says it."""
    path = PurePosixPath(urlsplit(file).path) if isinstance(file, str) else file
    return "tape" if str(path) in ("-", "/", ".") else path.stem


def _headers(given: tuple[str, ...]) -> dict[str, str]:
    """Headers by name. Raises UsageError, which shows none: a value may be a secret."""
    headers: dict[str, str] = {}
    for number, header in enumerate(given, 1):
        name, colon, value = header.partition(":")
        if not colon or name in headers:
            raise click.UsageError(f"--header, number {number}: 'NAME: TEXT', each name once")
        headers[name] = value.strip()
    return headers


@_command("list", [], "the tapes of a broker's catalog")
def _list(options: Options, given: dict[str, Any]) -> None:
    """List the tapes of a broker's catalog.

    \b
    Example:
      turret tape list
    """
    found = run(_one, place_of(given), "list_tapes", {})
    options.show(found, "\n".join(map(_line, found["entries"])))


@_command("remove", [click.Argument(["ref"])], "take an imported tape out of a broker's catalog")
def _remove(options: Options, given: dict[str, Any], ref: str) -> None:
    """Take an imported tape, by its REF, out of a broker's catalog. Trials on it can't go on.

    \b
    Example:
      turret tape remove 5f0c…e2
    """
    options.show(run(_one, place_of(given), "remove_tape", {"ref": ref}), f"removed {ref}")


def _read(file: Path, instrument: str, tick: str, fee: str) -> Tape:
    """The tape of a file. Raises Failure with the first line that is wrong."""
    reader, size = CsvReader(instrument=instrument, tick=tick, fee=fee), 0
    with _opened(file) as opened:
        while (data := opened.read(PIECE)) and reader.feed(data) is None:
            size += len(data)
            if size > MOST:
                raise Failure("no_tape", f"{file}: more than {MOST} bytes")
    found = reader.end()
    if not isinstance(found, Tape):
        where = f"{file}:{found.line}" if found.line else str(file)
        raise Failure("no_tape", f"{where}: {found.message}")
    if (wrong := fault(found)) is not None:
        raise Failure("no_tape", f"{file}: {wrong}")
    return found


def _opened(file: Path) -> AbstractContextManager[IO[bytes]]:
    return nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb")


async def _send(place: Place, found: Tape, words: dict[str, str]) -> Any:
    ref, sent = found.ref(), 0
    async with operators(place) as mcp:
        for part in parts_of(found):
            params = {"ref": ref, "part": sent, "rows": part.decode()}
            answer = await ask_operators(mcp, place, "send_tape_rows", params)
            sent += 1
            if answer["here"]:
                echo_error("this tape is in the catalog already")
                break
        return await ask_operators(mcp, place, "import_tape", {"ref": ref, "parts": sent, **words}, LONG_S)


async def _one(place: Place, tool: str, params: dict[str, Any], patience_s: float = ANSWER_S) -> Any:
    async with operators(place) as mcp:
        return await ask_operators(mcp, place, tool, params, patience_s)


def _line(entry: dict[str, Any]) -> str:
    """An entry of the catalog, for people; its ref as `remove` takes it."""
    facts = f"{entry['index']:>4}  {entry['ref']}  {entry['instrument']}  {entry['ticks']:,} ticks"
    return printable(f"{facts}  {entry['title']} ({entry['licence']})")
