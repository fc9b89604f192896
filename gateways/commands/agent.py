"""`turret agent`: a local MCP server that holds a key, so that a model can deal without signing code."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from broker.wire.ids import PK
from gateways.agent import run as agent_run
from gateways.agent.line import line_to
from gateways.agent.settings import Given, make_rails, read_caps, read_file
from gateways.client.pins import address
from gateways.commands.common import Options, common, run
from gateways.keyfile import load_key


@click.command()
@click.option(
    "--rules", type=click.Path(path_type=Path, dir_okay=False), help="A TOML file with the settings below."
)
@click.option("--code", metavar="CODE", help="Open this desk at the start; the model can open no other.")
@click.option(
    "--counterparty", "counterparties", metavar="CODE|PK", multiple=True, help="Deal with these alone."
)
@click.option(
    "--cap",
    "caps",
    metavar="MEMBER=AMOUNT",
    multiple=True,
    help="Sign no body whose MEMBER is beyond AMOUNT.",
)
@click.option("--type", "types", metavar="TYPE", multiple=True, help="Say these types alone.")
@click.option("--ask-before", metavar="TYPE", multiple=True, help="Ask the user before signing this type.")
@common
def agent(
    options: Options,
    rules: Path | None,
    code: str | None,
    counterparties: tuple[str, ...],
    caps: tuple[str, ...],
    types: tuple[str, ...],
    ask_before: tuple[str, ...],
) -> int:
    """Be an MCP server on standard input and output that holds your key, so that a model can dial and deal.

    An MCP client starts it. Options that list may be repeated, or list with commas. What a guard rail forbids is
    refused before it is signed. It ends with its input, and hangs up what is open.

    \b
    Example:
      turret agent --key alfa.key --code ALFA --counterparty BRAV --cap qty=5000000 --ask-before HIT
    """
    line_given = Given(
        code=code,
        counterparties=_split(counterparties),
        types=_split(types),
        ask_before=_split(ask_before),
        caps=read_caps(_split(caps) or ()),
    )
    rails = make_rails(Given() if rules is None else read_file(rules), line_given)
    key = load_key(options.key_path())
    address(options.url)  # a bad URL shows now, not in the first answer
    if options.wire is not None and not PK.fullmatch(options.wire):
        raise click.UsageError("--wire is a pk: 64 lowercase hex characters")
    _log_to_stderr()
    return run(agent_run.run, line_to(options.url, key, options.wire, rails))


def _split(values: Sequence[str]) -> list[str] | None:
    """Repeated options, each perhaps a list; None where there was none. An empty one must not lift its rail."""
    found = [each.strip() for value in values for each in value.split(",")]
    if not all(found):
        raise click.UsageError("an option that lists names nothing")
    return found or None


def _log_to_stderr() -> None:
    """Our own notes from INFO on, other libraries' from WARNING (theirs hold URLs)."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="turret agent: %(message)s")
    logging.getLogger("gateways.agent").setLevel(logging.INFO)
