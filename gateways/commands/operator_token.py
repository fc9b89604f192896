"""`turret operator-token`: a new token for a broker's operators, in a file."""

import secrets
from pathlib import Path

import click

from gateways.commands.common import Options, common
from gateways.keyfile import save_secret

BYTES = 32


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The new file, mode 0600; none is overwritten.",
)
@common
def operator_token(options: Options, out: Path) -> None:
    """Make a token for a broker's operators: 256 bits of chance, which only who runs this can read.

    The broker opens the operators' port with it, and the operators' commands show it. Another token takes its place
    when the broker is started with another file.

    \b
    Example:
      turret operator-token --out operators.token
      turret serve --operator-token-file operators.token
      turret admin list-agents --operator-token-file operators.token
    """
    save_secret(out, f"turret_operator_{secrets.token_urlsafe(BYTES)}", "a token file")
    options.show({"file": str(out)}, f"{out}: a token for the operators; keep it as you keep a password")
