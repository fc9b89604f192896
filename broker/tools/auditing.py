"""What operators did, in one place: every change by an operator passes here after it was made.

The hash chain of network.md (Reports, audit) will be written from here; until then it is a line in the log.
"""

import logging
from typing import TypeVar

from broker.tools.context import Context
from broker.wire.refusals import Refusal

T = TypeVar("T")
log = logging.getLogger("turret.operators")


def audited(context: Context, kind: str, subject: str | None, answer: T) -> T:
    """Note what an operator changed, unless it was refused; gives the answer on. Nothing secret comes here."""
    del context
    if not isinstance(answer, Refusal):
        log.info("%s %s", kind, subject or "")
    return answer
