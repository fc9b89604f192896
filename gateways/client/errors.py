"""What a dealer's client raises: the wire said no, the line broke, the call is over, or the wire lied.

1. `Refused` is the wire's answer: typed, complete, and final for these bytes.
2. `Disconnected` says nothing about the outcome: only the identical bytes may follow.
3. `WireFault` means that what the wire showed can't be true. Nothing is sent to it any more.
"""

from broker.wire.envelope import Envelope
from broker.wire.refusals import Refusal


class DealerError(Exception):
    """What all of these have in common."""


class Refused(DealerError):
    """The wire refused (wire.md, Refusals); `refusal` is its value, `code` the name to branch on."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"{refusal.code}: {refusal.message}")
        self.refusal = refusal

    @property
    def code(self) -> str:
        return self.refusal.code

    @property
    def reason(self) -> str | None:
        """Of quota_exceeded: what there is too much of; `loop` where the loop guard has stopped a talk."""
        reason = self.refusal.detail.get("reason")
        return reason if isinstance(reason, str) else None

    @property
    def retry_after_s(self) -> float | None:
        """The wait that the wire asks for, seconds; None where it asks for none."""
        wait = self.refusal.detail.get("retry_after_ms")
        return wait / 1000 if isinstance(wait, int) and wait >= 0 else None


class Disconnected(DealerError):
    """There is no connection, or it broke before the answer. `retry_after_s`: the server's hint; `close_code`: the
    WebSocket's, where it said one."""

    def __init__(
        self, why: str, retry_after_s: float | None = None, *, close_code: int | None = None
    ) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s
        self.close_code = close_code


class Missed(DealerError):
    """A stream does not reach back to where the reader stood; what was lost can't be read from it any more.

    `reason`: trimmed, epoch_changed, unknown or future (wire.md, Streams). Reading goes on after it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"events are missing: {reason}")
        self.reason = reason


class WireFault(DealerError):
    """The wire contradicts its own rules: a signature, a chain value or a key that can't be right."""


class CallEnded(DealerError):
    """The conversation is over. `envelope` is its END: whose it is, and its reason."""

    def __init__(self, envelope: Envelope) -> None:
        self.envelope = envelope
        super().__init__(f"the call has ended: {self.reason or 'no reason given'}")

    @property
    def reason(self) -> str | None:
        """The END's own word for why, as its sender wrote it."""
        reason = self.envelope.body.get("reason")
        return reason if isinstance(reason, str) else None


def collapse(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one exception that tells what happened, out of a nursery's group.

    A connection that breaks is noticed by several tasks at once, so that `Disconnected` steps back behind
    anything else. The group itself comes back where more than one thing went wrong.
    """
    leaves = list(_leaves(group))
    telling = [leaf for leaf in leaves if not isinstance(leaf, Disconnected)]
    if not telling:
        return leaves[0]
    return telling[0] if len(telling) == 1 else group


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for each in group.exceptions:
        found += _leaves(each) if isinstance(each, BaseExceptionGroup) else [each]
    return found
