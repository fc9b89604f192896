"""`turret restore`: a store made of a backup, looked through before it says done."""

import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import click

from broker.store import sqlite_backup
from broker.store.port import Fault
from gateways.commands.backup import explained, progress, wants_json
from gateways.commands.check import line_of, look_through
from gateways.commands.common import USAGE, Failure, Options, echo_error
from gateways.commands.restore_key import FILE, check_belongs, keys_in, read_wire_key
from gateways.keyfile import write_private


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="An empty or a new directory.",
)
@click.option(
    "--wire-key", type=click.Path(path_type=Path, dir_okay=False), help="The wire's key file, kept apart."
)
@click.option("--even-if-damaged", is_flag=True, help="Restore what there is of a backup with faults.")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON.")
@click.pass_context
def restore(
    context: click.Context,
    file: Path,
    data: Path,
    wire_key: Path | None,
    even_if_damaged: bool,
    as_json: bool,
) -> None:
    """Make a broker's directory of the backup in FILE, and look through all of it before saying so.

    The wire's key comes from --wire-key, or from the backup where that was made with it. Every stream gets a new epoch:
    clients notice, read their conversations again, and may submit again what they said since the backup.

    \b
    Example:
      turret restore turret-monday.backup --data /var/lib/turret --wire-key wire.key
    """
    options = Options(json=wants_json(context, as_json))
    now_ms = time.time_ns() // 1_000_000
    with explained(file):
        found = sqlite_backup.contents(file)
        key, pks = _key(file, found.key, wire_key)
        check_belongs(pks, found.wire_keys, str(wire_key or file))
        with ExitStack() as made:
            with progress("restore", options.json) as told:
                store = made.enter_context(
                    sqlite_backup.restoring(file, data, found, now_ms=now_ms, told=told)
                )
            looked = look_through(store, options.json)
            if not looked.ok:
                _tell(looked.faults, even_if_damaged, file)
    write_private(data / FILE, key)
    when = datetime.fromtimestamp(found.at / 1000, UTC).isoformat(timespec="seconds")
    options.show(
        {
            "data": str(data),
            "backup_at": found.at,
            "restored_at": now_ms,
            "pk": pks[-1],
            "conversations": looked.conversations,
            "envelopes": looked.envelopes,
            "faults": looked.count,
        },
        f"{data}: the store of {when}, {looked.conversations:,} conversations, {looked.envelopes:,} envelopes",
    )


def _key(file: Path, kept: bytes | None, wire_key: Path | None) -> tuple[bytes, tuple[str, ...]]:
    """The key's text and its public keys: the file that was given, else what the backup has."""
    if wire_key is not None:
        return read_wire_key(wire_key)
    if kept is None:
        words = f"{file} was made without the wire's key: give it by --wire-key FILE"
        raise Failure("key_file", words, USAGE)
    return kept, keys_in(kept, str(file))


def _tell(faults: list[Fault], anyway: bool, file: Path) -> None:
    for fault in faults:
        echo_error(line_of(fault))
    if not anyway:
        raise Failure(
            "damaged", f"{file} has faults, nothing was restored; --even-if-damaged takes what there is"
        )
