"""`turret check`: is a store or a backup whole? Every page, call, document and stream."""

import time
from pathlib import Path
from typing import Final

import click
import msgspec

from broker.actors.check import Counts, check_store
from broker.actors.check_audit import Beside
from broker.store import sqlite_check, sqlite_file
from broker.store.port import Fault
from broker.wire.safekeys import SafeKeys
from gateways.client.show import printable
from gateways.commands import restore_key
from gateways.commands.backup import explained, progress, wants_json
from gateways.commands.common import REFUSED, USAGE, Failure, Options
from gateways.headfile import read_head_file
from gateways.safekey import SafeKeyError, key_path, keys_of, read_lines

SHOWN: Final = 1000
"""Faults that are listed; all are counted."""


class Found(msgspec.Struct):
    """What a check came to."""

    ok: bool
    file: str
    conversations: int
    envelopes: int
    events: int
    seconds: float
    count: int
    """Faults, the listed ones being the first of them."""
    faults: list[Fault]
    channels: int = 0
    messages: int = 0
    sessions: int = 0
    """Of the arena."""
    trials: int = 0
    audited: int = 0
    """Rows of the audit log."""
    secrets: int = 0
    unreadable: int = 0
    """Secrets whose key is not in the file of keys; where there is no such file they are not looked into."""


@click.command()
@click.option(
    "--data", type=click.Path(path_type=Path, exists=True), required=True, help="The directory, or a backup."
)
@click.option(
    "--secrets-key-file",
    type=click.Path(dir_okay=False),
    help="The keys of secrets, where serve was given them.  [default: DIR/secrets.key]",
)
@click.option("--json", "as_json", is_flag=True, help="What was found as JSON.")
@click.pass_context
def check(context: click.Context, data: Path, secrets_key_file: str | None, as_json: bool) -> int:
    """Look through a store or a backup: its schema and pages, every conversation's chain and signatures, documents
    beside their logs, each stream's positions, the arena's sessions and points, trials (run again), secrets (that
    their key opens them), and the audit log. Writes nothing; the broker may run.

    Each fault is named on a line of its own. Exits 0 when all holds, 1 when something does not, 2 when there is
    nothing to look at.

    \b
    Example:
      turret check --data /var/lib/turret
    """
    options = Options(json=wants_json(context, as_json))
    with explained(data):
        file = data / sqlite_file.FILE if data.is_dir() else data
        # The head first: a broker that runs may add rows meanwhile, and a head that is behind is no fault.
        found = look_through(file, options.json, beside_of(data, secrets_key_file) if data.is_dir() else None)
    options.show(found, report(found))
    return 0 if found.ok else REFUSED


def beside_of(directory: Path, secrets_key_file: str | None = None) -> Beside | None:
    """The audit's head, the wire's keys and those of secrets that stand in a directory; None where it was never served.
    Raises Failure."""
    if not (directory / restore_key.FILE).exists():
        return None
    wires = restore_key.read_wire_key(directory / restore_key.FILE)[1]
    return Beside(
        read_head_file(directory), wires, _safe_keys(key_path(directory, secrets_key_file), secrets_key_file)
    )


def _safe_keys(path: Path, named: str | None) -> SafeKeys | None:
    if named is None and not path.exists():
        return None
    try:
        return keys_of(read_lines(path))
    except SafeKeyError as error:
        raise Failure("key_file", str(error), USAGE) from None


def look_through(path: Path, quiet: bool, beside: Beside | None = None) -> Found:
    """Check a file, with a bar on a terminal. Raises NotAStore, SchemaTooNew, OSError."""
    counts, faults, number, began = Counts(), list[Fault](), 0, time.monotonic()
    with sqlite_check.opened(path) as (snapshot, schema), progress("check", quiet) as told:
        number += len(schema)
        faults += schema
        done = 0
        if snapshot is not None:
            size = snapshot.size()
            for step in check_store(snapshot, counts, beside):
                if isinstance(step, Fault):
                    number += 1
                    faults += [step] if len(faults) < SHOWN else []
                else:
                    done += step
                    told(done, size)
    seconds = round(time.monotonic() - began, 3)
    return Found(
        ok=number == 0,
        file=str(path),
        conversations=counts.conversations,
        envelopes=counts.envelopes,
        events=counts.events,
        channels=counts.channels,
        messages=counts.messages,
        sessions=counts.sessions,
        trials=counts.trials,
        audited=counts.audited,
        secrets=counts.secrets,
        unreadable=counts.unreadable,
        seconds=seconds,
        count=number,
        faults=faults,
    )


def report(found: Found) -> str:
    """The findings in words, a fault a line; nothing in them can steer a terminal."""
    lines = [printable(line_of(fault)) for fault in found.faults]
    if found.count > len(found.faults):
        lines.append(f"… and {found.count - len(found.faults):,} more")
    looked = f"{found.conversations:,} conversations, {found.envelopes:,} envelopes, {found.events:,} events"
    if found.channels:
        looked += f", {found.channels:,} channels, {found.messages:,} messages"
    if found.sessions:
        looked += f", {found.sessions:,} sessions of the arena"
    if found.trials:
        looked += f", {found.trials:,} trials"
    if found.audited:
        looked += f", {found.audited:,} rows of the audit log"
    if found.secrets:
        looked += f", {found.secrets:,} secrets"
    if found.unreadable:
        looked += f" ({found.unreadable:,} unreadable: their key is not in the file of keys)"
    verdict = "holds" if found.ok else f"{found.count:,} fault{'s' if found.count > 1 else ''}"
    return "\n".join([*lines, f"{verdict}: {looked} in {found.seconds:g} s"])


def line_of(fault: Fault) -> str:
    """One fault in words."""
    where = f"{fault.where} {fault.name}".strip() + ("" if fault.n is None else f", {fault.n}")
    return f"{where}: {' '.join(fault.message.split())}"
