"""What every core is: decide on a command, fold a record; no loop, no clock, no store.

1. `decide(state, command, now)` answers with a record or a refusal and changes nothing.
2. `fold(state, record)` is the only thing that changes a state, live and when the log is read again.
3. Time comes in as `Now`; a distance is taken on `mono`, a date is written from `wall_ms`.
"""

import msgspec


class Now(msgspec.Struct, frozen=True):
    """One reading of both clocks: Unix milliseconds, and seconds that only grow."""

    wall_ms: int
    mono: float


def mono_of(at: int, now: Now, started: float) -> float:
    """Where on the monotonic clock something accepted at wall time `at` lies, as far as can be told.

    For what was accepted before this process began (wire.md, Limits): its age is max(0, wall - at), and
    where the wall clock lies behind it, it counts as accepted when the process started.
    """
    if at > now.wall_ms:
        return started
    return now.mono - (now.wall_ms - at) / 1000
