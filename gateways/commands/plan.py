"""`turret plan check`: is a text or a JSON tree a plan, and what does it cost? Needs no broker."""

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from broker.core.plan.diagnostics import Diagnostic
from broker.core.plan.limits import MAX_TEXT
from broker.core.plan.printer import money
from broker.core.plan.read import Checked, read_any
from broker.core.plan.tree import to_value
from gateways.client.show import printable
from gateways.commands.backup import wants_json
from gateways.commands.common import Failure, Options, echo_error

MOST = 4 * MAX_TEXT
"""Bytes of a file that are looked at: more can be no plan."""


@click.group(no_args_is_help=False)
def plan() -> None:
    """Plans of trials: check one, offline.

    \b
    Example:
      turret plan check fade.plan
    """


@plan.command(short_help="whether a file is a plan, and what it costs")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="The tree, or the diagnostics, as JSON.")
@click.option("--tree", is_flag=True, help="The plan's JSON form alone.")
@click.pass_context
def check(context: click.Context, file: Path, as_json: bool, tree: bool) -> None:
    """Check a plan, in its text or its JSON form (which begins with a brace). FILE is - for standard input.

    Prints the canonical text; what it is bound to and what it costs go to standard error. Exits 1 and says where, what
    was expected, and a repair where one is obvious, for each thing that is wrong.

    \b
    Example:
      turret plan check fade.plan
    """
    options = Options(json=wants_json(context, as_json))
    data = sys.stdin.buffer.read(MOST + 1) if str(file) == "-" else _read(file)
    found = read_any(data.decode(errors="replace"))
    if isinstance(found, list):
        raise _wrong(options, str(file), found, tree=data.lstrip()[:1] == b"{")
    if options.json:
        options.show(_report(found))
    elif tree:
        click.echo(msgspec.json.encode(found.plan))
    else:
        click.echo(found.text, nl=False)
        echo_error(_summary(found))


def _read(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(MOST + 1)


def _wrong(options: Options, file: str, found: list[Diagnostic], *, tree: bool) -> Failure:
    """Shows the diagnostics; the error's line counts them. Those of a tree name places of its text."""
    if options.json:
        options.show({"diagnostics": found})
    else:
        for each in found:
            where = f"{file}, as text" if tree and each.code != "shape" else file
            click.echo(printable(f"{where}:{each}"))
    wrong = "1 thing is" if len(found) == 1 else f"{len(found)} things are"
    return Failure("no_plan", f"{file} is no plan: {wrong} wrong with it")


def _report(checked: Checked) -> dict[str, Any]:
    return {
        "plan": to_value(checked.plan),
        "text": checked.text,
        "cost": checked.cost,
        "reach": checked.reach,
        "bound": checked.plan.bound,
    }


def _summary(checked: Checked) -> str:
    bound = checked.plan.bound
    return (
        f"{checked.plan.name} {checked.plan.version}: at most {checked.cost} steps a tick, looks back {checked.reach} "
        f"ticks; bound to a position of {bound.position}, a loss of {money(bound.loss)}, {bound.orders} orders, "
        f"tick {bound.until}"
    )
