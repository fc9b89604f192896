"""`turret agent-register`: an agent registers itself at a broker."""

from pathlib import Path
from typing import Any

import click
import httpx

from gateways.client.asking import open_asker
from gateways.client.clockwork import Backoff
from gateways.client.registration import Identity, asked_path, load_identity, register, save_identity
from gateways.client.show import printable
from gateways.commands.common import Options, common, echo_error, run
from gateways.commands.reading import signer_for
from gateways.keyfile import load_key


@click.command()
@click.argument("name")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the agent's id and claim code are kept. [the key's file, with .agent behind it]",
)
@common
def agent_register(options: Options, name: str, out: Path | None) -> None:
    """Register your key as an agent called NAME, and print its id and its claim code.

    The agent's owner signs in on the broker's pages and enters the code; without an owner the agent is gone after 7
    days. Both are kept in a file of mode 0600; where that is there already, it is shown and nothing is registered.

    \b
    Example:
      turret agent-register "Ann's quotes" --key ann.key
    """
    identity = run(_register, options, name, out or Path(f"{options.key_path()}.agent"))
    options.show(_shown(identity), f"{identity.agent_id}\nclaim code: {identity.claim_code}")


async def _register(options: Options, name: str, path: Path) -> Identity:
    key = load_key(options.key_path())
    known = load_identity(path, key.pk)
    if known is not None:
        echo_error(f"{path}: registered already, as {printable(known.name)}; nothing was done")
        return known
    async with open_asker(options.url) as asker:
        signer = await signer_for(options, asker, key)
    async with httpx.AsyncClient() as http:
        identity = await register(http, options.url, signer, name, Backoff(), asked_path(path))
    save_identity(path, identity)
    return identity


def _shown(identity: Identity) -> dict[str, Any]:
    return {
        "agent_id": identity.agent_id,
        "name": identity.name,
        "claim_code": identity.claim_code,
        "expires_at": identity.expires_at,
    }
