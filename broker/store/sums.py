"""Sums over rows, by which a damaged one is known from what was written.

SQLite finds a page whose structure is broken, but not a letter that has changed inside a row. CRC-32 finds every
change of few bits; it is no proof against somebody who may write the file: signatures and chains are (broker/wire).
"""

import sqlite3
from zlib import crc32


def sum_of(*parts: bytes) -> int:
    """The sum over the parts, one after the other. A microsecond for a KiB. What is no bytes (a file can hold anything)
    has -1, which is no sum."""
    total = 0
    try:
        for part in parts:
            total = crc32(part, total)
    except TypeError:
        return -1
    return total


def damaged(what: str) -> sqlite3.DatabaseError:
    """For whoever reads: `what` is not as it was written. It names rows by the store's own numbers, no conversation."""
    return sqlite3.DatabaseError(f"{what} is damaged; turret check tells more")
