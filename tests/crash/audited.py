"""A broker whose power goes at the worst moment: `python -m tests.crash.audited DIRECTORY WHEN`.

WHEN: `commit`, when the rows are in the store and the head is not beside it yet; `name`, when the new head is written
and has not its name. It dies by SIGKILL at its third row.
"""

import os
import signal
import sys
from pathlib import Path

import trio

from gateways.keyfile import write_private
from tests.support import audited


class Dying(audited.InlineHead):
    """Kills its own process at the write of the third row's head."""

    when = "commit"

    async def write(self, text: bytes) -> None:
        if b'"count":3,' in text:
            if self.when == "name":
                Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign,assignment]
                write_private(self.directory / audited.FILE, text)
            os.kill(os.getpid(), signal.SIGKILL)
        await super().write(text)


if __name__ == "__main__":
    Dying.when = sys.argv[2]
    audited.InlineHead = Dying  # type: ignore[misc]
    trio.run(audited.serve, Path(sys.argv[1]), 6)
