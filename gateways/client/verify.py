"""The offline verifier: a transcript's file in, a verdict out. Needs no broker and no connection.

1. What holds and what breaks is decided by broker/wire/chain.py alone; here it is read and told.
2. The first broken step is named; after it nothing is believed.
"""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from broker.wire.chain import Verdict, verify_transcript

MAX_LINE: Final = 1024 * 1024
"""The longest line that is read, bytes; an envelope with its row takes 10,000."""


def verify_file(path: Path, wires: Collection[str] = ()) -> Verdict:
    """Walk an export (JSON Lines). `wires`: keys of wires to trust beside the one that CALL names.

    Raises OSError when the file can't be read; whatever it holds is the verdict's business.
    """
    with open(path, "rb") as file:
        return verify_transcript(_lines(file), wires)


def _lines(file: Any) -> Iterator[bytes]:
    """Lines one by one. An endless one is cut: it breaks where it stands instead of filling memory."""
    while line := file.readline(MAX_LINE):
        yield line


def as_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as an object, for `--json`."""
    found: dict[str, Any] = msgspec.to_builtins(verdict)
    return found


def report(verdict: Verdict) -> str:
    """The verdict in words, several lines, without a line end at the end."""
    broken = verdict.broken
    if broken is not None:
        head = f"broken at n = {broken.n} (line {broken.line}): {broken.code}: {broken.message}"
        return f"{head}\n{verdict.rows} envelopes before it hold"
    lines = [f"holds: {verdict.rows} envelopes of conversation {verdict.conv}"]
    lines += [f"  {who} {pk}" for who, pk in zip(("caller", "called"), verdict.parties, strict=False)]
    lines.append(f"  {_ending(verdict)}")
    lines.append(f"  chain  {verdict.chain}")
    proven = [at for at in verdict.received if at is not None]
    if proven:
        last = _time(max(proven))
        lines.append(f"  received: {len(proven)} of {verdict.rows} receipts of the wire, the last {last}")
    else:
        lines.append("  times unproven: no receipts of a known wire")
    lines += [f"  warning: n = {warned.n}: {warned.message}" for warned in verdict.warnings]
    return "\n".join(lines)


def _ending(verdict: Verdict) -> str:
    if verdict.ended is None:
        return "open: no END yet"
    by = "by the wire" if verdict.ended_by_wire else "by a party"
    return f"ended {by}" + (f": {verdict.ended}" if verdict.ended else "")


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
