"""A broker that logs all that it can, and in which one tool is broken: `python -m tests.security.loud serve …`."""

import logging
import sys
from typing import Any

from broker.tools import transcripts
from gateways.cli import main

FAULT = "a fault that was planted"


def broken(*_: Any) -> bytes:
    raise RuntimeError(FAULT)


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("turret").setLevel = lambda level: None  # type: ignore[method-assign]  # as loud as the root
    transcripts.receipt_text = broken
    main()
