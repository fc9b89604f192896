"""`turret rotate-secrets-key`: another key for secrets, and all of them sealed anew."""

import secrets
import time
from functools import partial
from pathlib import Path

import click
import trio

from broker.actors.safe import NotResealed, Resealed, reseal
from gateways.commands.backup import wants_json
from gateways.commands.common import USAGE, Failure, Options
from gateways.commands.serving import without_server
from gateways.safekey import SafeKeyError, key_path, keys_of, new_line, read_lines, write_lines


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    required=True,
    help="The broker's directory.",
)
@click.option(
    "--secrets-key-file",
    type=click.Path(dir_okay=False),
    help="The keys' file, where serve was given one.  [default: DIR/secrets.key]",
)
@click.option("--json", "as_json", is_flag=True, help="The result as JSON.")
@click.pass_context
def rotate_secrets_key(
    context: click.Context, data: Path, secrets_key_file: str | None, as_json: bool
) -> None:
    """Seal all secrets with a new key, and throw the old ones away. The broker must be stopped.

    Whatever ends it in between, every secret stays readable; run it again. Backups from before need the old file: keep
    a copy of it as long as you keep them.

    \b
    Example:
      turret rotate-secrets-key --data /var/lib/turret
    """
    try:
        from gateways.doors import ServeError
    except ModuleNotFoundError as missing:
        raise without_server(missing) from None
    options = Options(json=wants_json(context, as_json))
    path = key_path(data, secrets_key_file)
    try:
        done = trio.run(partial(rotate, data, path, time.time_ns() // 1_000_000))
    except (SafeKeyError, ServeError, NotResealed) as error:
        raise Failure("store", str(error), USAGE) from None
    found = {"file": str(path), "secrets": done.secrets, "unreadable": done.unreadable}
    left = f"; {done.unreadable} that no key opens stay as they are" if done.unreadable else ""
    options.show(found, f"{path}: a new key, {done.secrets} secrets sealed with it{left}")


async def rotate(data: Path, path: Path, now_ms: int) -> Resealed:
    """The new key beside the old ones, then all secrets, then the old ones away: at each moment all is readable.

    Raises SafeKeyError, ServeError, and NotResealed: the old keys then stay, too.
    Cancelling leaves old and new keys."""
    from gateways.serve import open_store

    async with open_store(data) as store:
        lines = [*read_lines(path), new_line(now_ms)]
        write_lines(path, lines)
        done = await reseal(store, keys_of(lines), secrets.token_bytes)
        write_lines(path, lines[-1:])
    return done
