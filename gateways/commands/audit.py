"""`turret audit`: the audit log in a file of its own, and whether such a file holds, anywhere and without a broker.

1. An export is JSON Lines: first the heads and the wire's keys, then each row under its number, as it is stored.
2. Whoever verifies names the wire's key: a file can say what it likes. What was damaged in the store is damaged in the
   file, and found by the same code; so is a file that was changed or cut afterwards.
"""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Final

import click
import msgspec

from broker.actors.check_audit import Rows
from broker.store import sqlite_check, sqlite_file
from broker.store.port import Fault
from broker.wire.auditlog import Verdict, Verifier, read_row
from broker.wire.ids import PK
from gateways.client.show import printable
from gateways.commands.backup import explained, wants_json
from gateways.commands.check import beside_of
from gateways.commands.common import REFUSED, USAGE, Failure, Options, echo_error

_OTHER_KEY: Final = (
    "the file is of a wire with another key than was given; whether that is yours, it can't say"
)
FORM = 1
"""The form of an export, in its first line."""


class _First(msgspec.Struct, frozen=True, omit_defaults=True):
    turret_audit: int
    exported_at: int
    wires: tuple[str, ...]
    apart: bool
    """Whether the file is of a directory that is served, where a head stands beside the store."""
    head: str | None = None
    beside: str | None = None
    restored: bool = False


class _Line(msgspec.Struct, frozen=True):
    n: int
    row: msgspec.Raw
    """null: it can't stand on a line of its own."""


@click.group(no_args_is_help=False)
def audit() -> None:
    """The audit log: export it, and verify an export offline.

    A running broker verifies its own: turret admin verify-audit-log.

    \b
    Example:
      turret audit export --data /var/lib/turret audit.jsonl
      turret audit verify audit.jsonl --wire 5f1c…
    """


@audit.command(short_help="all of it, in a file")
@click.argument("out", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), default="-")
@click.option(
    "--data", type=click.Path(path_type=Path, exists=True), required=True, help="The directory, or a backup."
)
@click.option("--json", "as_json", is_flag=True, help="What was written, as JSON.")
@click.pass_context
def export(context: click.Context, out: Path, data: Path, as_json: bool) -> int:
    """Write the audit log of a broker's directory, or of a backup, as JSON Lines into a new file OUT, or to standard
    output. The broker may run. Exits 1 when the log does not hold; all that there is, is written all the same.

    \b
    Example:
      turret audit export --data /var/lib/turret audit.jsonl
    """
    options = Options(json=wants_json(context, as_json))
    with explained(data):
        beside = beside_of(data) if data.is_dir() else None
        file = data / sqlite_file.FILE if data.is_dir() else data
        with sqlite_check.opened(file) as (snapshot, schema), _written(out) as put:
            if snapshot is None:
                raise Failure("store", _said(schema), USAGE)
            rows = Rows(snapshot, beside)
            first = _First(
                FORM,
                time.time_ns() // 1_000_000,
                rows.wires,
                beside is not None,
                _text(rows.head),
                _text(beside.head) if beside is not None else None,
                rows.restored,
            )
            put(msgspec.json.encode(first))
            for n, text in rows:
                put(msgspec.json.encode(_Line(n, msgspec.Raw(text if _is_plain(text) else b"null"))))
            verdict = rows.verdict()
    found = {"file": str(out), "rows": verdict.rows, "ok": verdict.ok}
    if str(out) != "-":
        options.show(found, f"{out}: {verdict.rows:,} rows")
    _complain(verdict)
    return 0 if verdict.ok else REFUSED


@audit.command(short_help="whether such a file holds, offline")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option(
    "--wire",
    "wires",
    metavar="PK",
    multiple=True,
    required=True,
    help="The wire's key; again for earlier ones.",
)
@click.option("--json", "as_json", is_flag=True, help="The verdict as JSON.")
@click.pass_context
def verify(context: click.Context, file: Path, wires: tuple[str, ...], as_json: bool) -> int:
    """Verify an exported audit log, offline: each row's chain and seal, and the heads. The first row that does not hold
    is named. Exits 0 when all holds, 1 when something does not.

    \b
    Example:
      turret audit verify audit.jsonl --wire 5f1c…
    """
    options = Options(json=wants_json(context, as_json))
    for wire in wires:
        if PK.fullmatch(wire) is None:
            raise click.UsageError(f"--wire is a key, 64 lowercase hex characters, and not {wire!r}", context)
    with click.open_file(str(file), "rb") as lines:
        verdict = verify_lines(lines, wires)
    options.show(verdict, report(verdict))
    return 0 if verdict.ok else REFUSED


def verify_lines(lines: Iterable[bytes], wires: tuple[str, ...]) -> Verdict:
    """The verdict on an export's lines by these keys of the wire. Raises Failure for what is no export."""
    reading = iter(lines)
    try:
        first = msgspec.json.decode(next(reading, b""), type=_First)
    except (msgspec.MsgspecError, UnicodeError):
        raise Failure(
            "bad_file", "this is no export of an audit log: its first line says so", USAGE
        ) from None
    if first.turret_audit != FORM:
        words = f"this export has form {first.turret_audit}; this Turret reads {FORM}"
        raise Failure("bad_file", words, USAGE)
    verifier = Verifier(
        frozenset(wires), _bytes(first.head), _bytes(first.beside), apart=first.apart, restored=first.restored
    )
    place = 0
    for line in reading:
        if not line.strip():
            continue
        try:
            read = msgspec.json.decode(line, type=_Line)
        except (msgspec.MsgspecError, UnicodeError):
            read = _Line(place + 1, msgspec.Raw(b"null"))
        place = read.n
        verifier.row(read.n, bytes(read.row))
    verdict = verifier.end()
    if not verdict.ok and not set(wires) & set(first.wires):
        named = f"{_OTHER_KEY}: {', '.join(first.wires) or 'none'}"
        return msgspec.structs.replace(verdict, remarks=[*verdict.remarks, named])
    return verdict


def report(verdict: Verdict) -> str:
    """A verdict in words, a fault a line; nothing in them can steer a terminal."""
    lines = [printable(fault.message) for fault in verdict.faults]
    if verdict.count > len(verdict.faults):
        lines.append(f"… and {verdict.count - len(verdict.faults):,} more")
    lines += [printable(remark) for remark in verdict.remarks]
    faults = f"{verdict.count:,} fault{'s' if verdict.count > 1 else ''}"
    what = "holds" if verdict.ok else faults
    if verdict.first is not None:
        what += f", the first at row {verdict.first}"
    head = verdict.head
    sealed = f", sealed by {head.wire} up to row {head.count}" if head is not None else ""
    return "\n".join([*lines, f"{what}: {verdict.rows:,} rows{sealed}"])


def _complain(verdict: Verdict) -> None:
    if not verdict.ok:
        for line in report(verdict).splitlines():
            echo_error(f"turret: {line}")


def _said(faults: list[Fault]) -> str:
    return "; ".join(f"{fault.name}: {fault.message}" for fault in faults) or "the store can't be read"


def _is_plain(text: bytes) -> bool:
    """Whether a row can stand on a line of its own; what can't was never written by a broker."""
    return read_row(text) is not None and b"\n" not in text and b"\r" not in text


def _text(head: bytes | None) -> str | None:
    return None if head is None else head.decode(errors="replace")


def _bytes(head: str | None) -> bytes | None:
    return None if head is None else head.encode()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextmanager
def _written(out: Path) -> Iterator[Any]:
    """Takes lines for a new file of mode 0600, or for standard output."""
    with ExitStack() as closing:
        file: IO[bytes] = sys.stdout.buffer
        if str(out) != "-":
            file = closing.enter_context(open(out, "xb", opener=_private))
        yield lambda line: file.write(line + b"\n")
        file.flush()
