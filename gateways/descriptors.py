"""File descriptors: as many as we may have, and what happens when there are none left.

Each connection takes one. Without any, newcomers wait in the kernel's backlog, and Trio asks again every tenth of a
second; a load balancer should know (/readyz), and the log should not fill up with it.
"""

import errno
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

NONE_LEFT: Final = "no file descriptors are left: no connections are taken"
QUIET_S: Final = 60.0
"""Seconds after which the log says it again."""


def take_all() -> None:
    """Raise the process' own limit (1024 on most machines) to what the machine allows it."""
    if resource is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def are_left() -> bool:
    """Whether one more can be had now. Costs 2 µs."""
    try:
        os.close(os.dup(0))
    except OSError as error:
        return error.errno not in (errno.EMFILE, errno.ENFILE)
    return True


class Quiet(logging.Filter):
    """Lets one record through, in one line, and no other for QUIET_S: for Trio's complaint of each failed accept."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._again_at = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._now()
        if now < self._again_at:
            return False
        self._again_at = now + QUIET_S
        record.exc_info = None
        return True


def keep_quiet() -> None:
    """Have Trio's servers complain once a minute. Calling twice is fine."""
    logger = logging.getLogger("trio.serve_listeners")
    if not any(isinstance(each, Quiet) for each in logger.filters):
        logger.addFilter(Quiet())
