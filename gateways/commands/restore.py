"""`turret restore`: a store made of a backup, looked through before it says done."""

import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import click

from broker.actors.check_audit import kept_head
from broker.store import sqlite_backup, sqlite_check
from broker.store.port import Fault
from broker.wire.auditlog import AuditHead, head_text, read_head
from gateways import headfile
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
@click.option(
    "--audit-head",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The lost store's audit.head, if there is one: the audit log then says what is missing of it.",
)
@click.option("--even-if-damaged", is_flag=True, help="Restore what there is of a backup with faults.")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON.")
@click.pass_context
def restore(
    context: click.Context,
    file: Path,
    data: Path,
    wire_key: Path | None,
    audit_head: Path | None,
    even_if_damaged: bool,
    as_json: bool,
) -> None:
    """Make a broker's directory of the backup in FILE, and look through all of it before saying so.

    The wire's key comes from --wire-key, or from the backup where that was made with it. Every stream gets a new epoch:
    clients notice, read their conversations again, and may submit again what they said since the backup. The audit log
    says that there was a restore.

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
        lost = None if audit_head is None else _lost(audit_head, pks)
        with ExitStack() as made:
            with progress("restore", options.json) as told:
                store = made.enter_context(
                    sqlite_backup.restoring(file, data, found, now_ms=now_ms, told=told)
                )
            looked = look_through(store, options.json)
            if not looked.ok:
                _tell(looked.faults, even_if_damaged, file)
            head = _head_of(store)
    # Before the key, without which nobody serves it: a head that is missing beside a store is an alarm.
    head = max(filter(None, (head, lost)), key=lambda each: each.count, default=None)
    if head is not None:
        write_private(data / headfile.FILE, head_text(head) + b"\n")
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
            "secrets": looked.secrets,
            "faults": looked.count,
        },
        f"{data}: the store of {when}, {looked.conversations:,} conversations, {looked.envelopes:,} envelopes",
    )
    if looked.secrets:
        echo_error(
            f"turret: {looked.secrets:,} secrets are in it: put your copy of secrets.key into {data} before you "
            "serve it, or they are unreadable"
        )


def _key(file: Path, kept: bytes | None, wire_key: Path | None) -> tuple[bytes, tuple[str, ...]]:
    """The key's text and its public keys: the file that was given, else what the backup has."""
    if wire_key is not None:
        return read_wire_key(wire_key)
    if kept is None:
        words = f"{file} was made without the wire's key: give it by --wire-key FILE"
        raise Failure("key_file", words, USAGE)
    return kept, keys_in(kept, str(file))


def _lost(path: Path, pks: tuple[str, ...]) -> AuditHead:
    """The head of the lost store's audit log."""
    head = read_head(path.read_bytes())
    if head is None or not head.is_signed(pks):
        raise Failure("audit_head", f"{path} is no head of this wire's audit log", USAGE)
    return head


def _head_of(store: Path) -> AuditHead | None:
    """The head of the audit log that is in the backup."""
    with sqlite_check.opened(store) as (snapshot, _):
        text = None if snapshot is None else kept_head(snapshot)
    return None if text is None else read_head(text)


def _tell(faults: list[Fault], anyway: bool, file: Path) -> None:
    for fault in faults:
        echo_error(line_of(fault))
    if not anyway:
        raise Failure(
            "damaged", f"{file} has faults, nothing was restored; --even-if-damaged takes what there is"
        )
