"""`turret arena`: what a session of the arena left, checked anywhere and without a broker."""

import sys
from pathlib import Path

import click

from broker.config import Arena
from broker.core.arenaverify import Report
from broker.core.arenaverify import verify as verify_artifact
from broker.core.games.table import load
from gateways.client.show import printable
from gateways.commands.backup import wants_json
from gateways.commands.common import USAGE, Failure, Options


@click.group(no_args_is_help=False)
def arena() -> None:
    """The arena: verify the artifact of a finished session, offline.

    \b
    Example:
      turret arena verify session.json
    """


@arena.command(short_help="whether the artifact of a session holds, offline")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option("--ref", metavar="REF", help="Its ref: the bytes must be those.")
@click.option(
    "--game",
    "modules",
    metavar="MODULE",
    multiple=True,
    help="A game that Turret does not bring along; again for more.",
)
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@click.pass_context
def verify(
    context: click.Context, file: Path, ref: str | None, modules: tuple[str, ...], as_json: bool
) -> None:
    """Verify the artifact of a session, offline: its form, the commit, the deal, each action, each balance, the result.
    Exits 1 and names the first thing that does not hold. FILE is - for standard input.

    MODULE is a Python module that is a game, as the setting arena.games names it: it is imported, so it runs.

    \b
    Example:
      turret arena verify session.json
    """
    options = Options(json=wants_json(context, as_json))
    content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    try:
        games = load(dict.fromkeys((*Arena().games, *modules)))
    except ValueError as error:
        raise Failure("game", str(error), USAGE) from None
    found = verify_artifact(content, games, ref)
    fault = found.fault
    if options.json or fault is None:
        options.show(found, None if fault is not None else report(found))
    if fault is not None:
        event = "" if fault.event is None else f" at event {fault.event}"
        holding = (
            f"; {found.events} events hold before it" if fault.event is not None and found.events else ""
        )
        hints = {"game": " (--game MODULE names one)", "kind": " (turret grade checks a trial)"}
        raise Failure(
            fault.what, f"{file} does not hold{event}: {fault.message}{hints.get(fault.what, '')}{holding}"
        )


def report(found: Report) -> str:
    """A report that holds, for people."""
    events = "1 event" if found.events == 1 else f"{found.events:,} events"
    lines = [
        f"{found.game} {found.game_version}, of {found.agent_id} ({found.mode}): {events} hold",
        f"over: {found.over}; net {found.net:+,}, balance {found.balance:,}",
        f"ref: {found.ref}",
        *(f"not to be checked: {each}" for each in found.unchecked),
    ]
    return "\n".join(map(printable, lines))
