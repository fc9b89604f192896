"""`turret agent-token`: an access token got by an agent's own key, for a client that can't get one itself."""

from pathlib import Path

import click

from gateways.client.registration import identity_path, load_identity
from gateways.commands.common import Failure, Options, common, run
from gateways.commands.credentials import Credentials, fetch_token
from gateways.keyfile import load_key, write_private


@click.command()
@click.option(
    "--agent", metavar="AGENT_ID", envvar="TURRET_AGENT", help="The agent. [as the key's .agent file says]"
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the token goes, mode 0600. [standard output]",
)
@common
def agent_token(options: Options, agent: str | None, out: Path | None) -> None:
    """Get an access token by your key. It is good for some minutes and does all that your agent may do.

    Give it to another program in a file (--token-file), never as an argument: others on the machine can read those.

    \b
    Example:
      turret agent-token --key ann.key --out ann.token
      turret whoami --token-file ann.token
    """
    named = agent or _known(options.key_path())
    token = run(fetch_token, options, Credentials(None, named), None)
    assert token is not None  # credentials are given
    if out is None:
        click.echo(token)
    else:
        write_private(out, f"{token}\n".encode())
        options.show({"file": str(out)}, f"{out}: a token of {named}")


def _known(key: Path) -> str:
    """The agent of a key, as the file beside it says."""
    found = load_identity(identity_path(key), load_key(key).pk)
    if found is None:
        raise Failure("unauthenticated", f"{key} is no agent's: turret agent-register, or give --agent")
    return found.agent_id
