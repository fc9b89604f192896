"""`turret backup`: one file that holds a store as it is now, taken beside a running broker."""

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from broker.store import sqlite_backup
from broker.store.port import InUse, NotAStore, SchemaTooNew
from gateways.commands.common import USAGE, Failure, Options, echo_error
from gateways.commands.restore_key import FILE, read_wire_key


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), required=True, help="The broker's directory."
)
@click.option("--with-key", is_flag=True, help="Put the wire's key into the file too: guard it like the key.")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON.")
@click.pass_context
def backup(context: click.Context, file: Path, data: Path, with_key: bool, as_json: bool) -> None:
    """Write a backup of a broker's store into a new FILE. The broker may run, and goes on.

    FILE gets mode 0600 and is never overwritten. The wire's key is not in it: keep a copy of DIR/wire.key apart, made
    once after the first start; a restore needs it. Nor is DIR/secrets.key, ever, without which secrets are unreadable.

    \b
    Example:
      turret backup --data /var/lib/turret turret-monday.backup
    """
    options = Options(json=wants_json(context, as_json))
    key = read_wire_key(data / FILE)[0] if with_key else None
    at, began = time.time_ns() // 1_000_000, time.monotonic()
    with explained(data), progress("backup", options.json) as told:
        sqlite_backup.back_up(data, file, at=at, key=key, told=told)
    size, seconds = file.stat().st_size, round(time.monotonic() - began, 3)
    found = {"file": str(file), "at": at, "bytes": size, "seconds": seconds, "with_key": with_key}
    options.show(found, f"{file}: {size:,} bytes in {seconds:g} s")
    if not with_key:
        echo_error(f"turret: the wire's key is not in it; a restore needs a copy of {data / FILE}")


def wants_json(context: click.Context, given: bool) -> bool:
    """Whether --json was given after the command, before it, or by the environment."""
    return given or bool((context.find_object(dict) or {}).get("json"))


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """What is wrong with a store or a backup, as the one line of a command."""
    try:
        yield
    except (NotAStore, SchemaTooNew, InUse) as error:
        raise Failure("store", str(error), USAGE) from None
    except sqlite3.Error as error:
        raise Failure("store", f"{path}: {error}", USAGE) from None


@contextmanager
def progress(label: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, where that is a terminal; told how much is done, and of how much."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, of: None
        return
    bar: Any
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def told(done: int, of: int) -> None:
            bar.length = max(of, 1)
            bar.update(min(done, bar.length) - bar.pos)

        yield told
