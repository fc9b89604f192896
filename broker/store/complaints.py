"""What goes wrong with a store is said in the log: once, not at each of a thousand requests that meet it."""

import logging
import time
from collections.abc import Callable
from typing import Final

QUIET_S: Final = 60.0
"""Seconds after which the same is said again."""
KEPT: Final = 100
"""Different things remembered at most; beyond it all are forgotten at once."""


class Complaints:
    """A log that does not repeat itself."""

    def __init__(self, log: logging.Logger, now: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._now = now
        self._said: dict[str, float] = {}

    def say(self, text: str) -> None:
        """Log it as an error, unless the same was logged less than QUIET_S ago."""
        now = self._now()
        before = self._said.get(text)
        if before is not None and now - before < QUIET_S:
            return
        if len(self._said) >= KEPT:
            self._said.clear()
        self._said[text] = now
        self._log.error("%s", text)
