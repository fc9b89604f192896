"""A `turret serve` that dies at the worst moment of an import: a part is durable, and nobody has been told.

DIE_AT: after how many parts; 0: with the tape itself, when its last commit is there.
"""

import os
import signal

from broker.core.tapes.catalog import KIND
from broker.store.port import Unit
from broker.store.sqlite import SqliteStore
from gateways.cli import main

_left = int(os.environ.get("DIE_AT", "0"))
_commit = SqliteStore.commit


async def commit(self: SqliteStore, unit: Unit) -> None:
    """Commit, and die when it was the one."""
    global _left
    await _commit(self, unit)
    part = unit.append is not None and unit.append.log.startswith(f"{KIND}:")
    whole = any(put.kind == KIND and ("all", "1") in put.index for put in unit.puts)
    _left -= part
    if (part and _left == 0) or (whole and _left < 0):
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    SqliteStore.commit = commit  # type: ignore[method-assign]
    main()
