"""What a desk's actor is asked: for places, by the statements of its key, by operators (wire.md, Keys, Limits, Signed
statements)."""

import msgspec

from broker.actors.once import Once
from broker.core.desk import Ring, Screen


class ReservePlace(msgspec.Struct, frozen=True):
    """Hold a place for a conversation that this key dials or picks up. Answer: Place or Refusal. `token`: the asker."""

    conv: str
    token: int


class ReserveRing(msgspec.Struct, frozen=True):
    """Hold a place for a ring at this desk. Answer: None or Refusal (desk_busy)."""

    conv: str
    token: int
    ring: Ring


class Release(msgspec.Struct, frozen=True):
    """Give back what this asker held for a conversation that was not written."""

    token: int


class MayOpen(msgspec.Struct, frozen=True):
    """Whether Open would be refused for its code or its key. Answer: None or Refusal."""

    code: str


class Open(msgspec.Struct, frozen=True):
    """open_desk, verified. Answer: {code, pk, opened_at} or Refusal."""

    code: str
    recovery_pk: str | None
    once: Once


class Move(msgspec.Struct, frozen=True):
    """move_desk by the desk's own key, or by its recovery key (then it waits)."""

    code: str
    new_pk: str
    by_recovery: bool
    once: Once


class CancelMove(msgspec.Struct, frozen=True):
    """cancel_move by the desk's own key."""

    code: str
    once: Once


class Close(msgspec.Struct, frozen=True):
    """close_desk by the desk's own key."""

    code: str
    once: Once


class SetScreen(msgspec.Struct, frozen=True):
    """screen_desk by the desk's own key."""

    code: str
    screen: Screen
    once: Once


class Used(msgspec.Struct, frozen=True):
    """The desk's key reads its stream: the desk is in use."""


class Suspend(msgspec.Struct, frozen=True):
    """Operators suspend (or, with on false, release) the desk."""

    on: bool
    once: Once | None = None
