"""`python -m tests.history FILE`: check a history that a failed run has left."""

import sys
from pathlib import Path

from tests.history.checker import check
from tests.history.model import read

if __name__ == "__main__":
    history = read(Path(sys.argv[1]))
    faults = check(history)
    print(f"{len(history.sends)} requests, {len(history.seen)} events, {len(history.readings)} readings")
    print(*faults, sep="\n")
    sys.exit(bool(faults))
