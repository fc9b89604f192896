"""What is remembered of a request so that it is done once (network.md, Idempotency; wire.md, Signed statements).

The answer is kept in the commit that makes the change: whoever sends the identical request again gets it back, and
another request under the same key is told so.
"""

from typing import Any, Final

import msgspec

from broker.actors.notes import Note
from broker.store.port import Put, Remember, Remembered
from broker.store.stored import stored
from broker.wire.refusals import Refusal, refuse

PARAM: Final = "idempotency_key"
MISMATCH: Final = refuse(
    "IDEMPOTENCY_MISMATCH",
    "this idempotency_key was used for another request; choose a new one",
    path=PARAM,
)
_REFUSED: Final = b"!"
"""Stands before a remembered refusal: no JSON begins with it."""


class Once(msgspec.Struct, frozen=True):
    """A request's key: whose (`scope`), the digest that binds the key to this one request, and until when (wall ms)
    its answer is kept. `note`: what the audit is told, where it is told of such requests; with an empty `key` there is
    that alone."""

    scope: str
    key: str
    digest: bytes
    until: int
    note: Note | None = None

    def remember(self, answer: Any) -> Remember | None:
        """The op that keeps the answer (msgspec-encodable, or a Refusal) in the same commit; None without a key."""
        if not self.key:
            return None
        text = msgspec.json.encode(answer)
        outcome = _REFUSED + text if isinstance(answer, Refusal) else text
        return Remember(self.scope, self.key, self.digest, outcome, self.until)

    def notes(self, about: str) -> tuple[Put, ...]:
        """What the audit is told in the same commit. `about`: what is changed."""
        return () if self.note is None else (self.note.put(about),)

    def nothing_to_tell(self) -> None:
        """The request was done before, and the audit told then; or there is nothing that it changes."""
        if self.note is not None:
            self.note.taken = True


def joined(once: Once | None, other: Once) -> Once:
    """Of a request's idempotency key and its statement's nonce the one that it is done once by (the key, if it has
    one), with the note."""
    if once is None:
        return other
    return once if once.key else msgspec.structs.replace(other, note=once.note)


def read_outcome(remembered: Remembered) -> Any:
    """A remembered answer: the Refusal that it was, else its members in their order (so that it is encoded to the very
    same bytes again)."""
    outcome, name = remembered.outcome, remembered.digest.hex()[:16]
    if outcome.startswith(_REFUSED):
        return stored(Refusal, outcome[1:], "answer", name)
    return stored(dict[str, Any], outcome, "answer", name)
