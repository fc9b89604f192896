"""A broker that logs all that it can, and in which one tool is broken: `python -m tests.security.loud serve …`."""

import logging
import sys
from typing import Any

from broker.tools import transcripts
from gateways import logs
from gateways.cli import main

FAULT = "a fault that was planted"


def broken(*_: Any) -> bytes:
    raise RuntimeError(FAULT)


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    logs.configure = lambda settings: None  # type: ignore[assignment]  # bare: what the code says, nothing taken out
    transcripts.receipt_text = broken
    main()
