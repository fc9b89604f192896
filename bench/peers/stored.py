"""What the peers with a ledger of our own (bench.peers.ledger) have on disk."""

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bench.peers.chains import Chain
from bench.peers.ledger import FILE
from bench.peers.side import compare


def missing(url: str, data: Path, chains: Sequence[Chain], sent: Sequence[int]) -> list[str]:
    """Read the file from outside, as the last commit left it."""
    found: defaultdict[str, dict[int, str]] = defaultdict(dict)
    connection = sqlite3.connect(data / FILE)
    for conv, n, sig in connection.execute("SELECT conv, n, sig FROM envelopes"):
        found[conv][n] = sig
    connection.close()
    return compare(found, chains, sent)
