"""How fast a channel may be written to: so many messages in any minute, and of one member (network.md, Channels).

1. Nothing here reads a clock; distances are taken on the monotonic one, as for envelopes (wire.md, Limits).
2. What was accepted stays counted when the log is read again, also after a restart.
"""

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from broker.core.machine import Now, mono_of
from broker.wire.limits import wait_ms


class Pace(msgspec.Struct, frozen=True):
    """Messages that a channel takes in any window, those of one member, and the window, seconds (`[limits]`)."""

    channel: int = 200
    member: int = 30
    window_s: float = 60.0


PACE: Final = Pace()


class Spent(msgspec.Struct, frozen=True, gc=False):
    """A message as the limits see it; `mono`: when, on this process's monotonic clock."""

    seq: int
    agent_id: str
    mono: float


def wait(spent: Collection[Spent], agent_id: str, mono: float, pace: Pace = PACE) -> int:
    """Milliseconds until an agent may send, at monotonic second `mono`; 0: at once.

    `spent`: the last messages of the channel, oldest first, `pace.channel` of them at least if there are as many.
    """
    own = [each.mono for each in spent if each.agent_id == agent_id]
    everybody = [each.mono for each in spent]
    return max(
        wait_ms(own, mono, pace.member, pace.window_s), wait_ms(everybody, mono, pace.channel, pace.window_s)
    )


class Seen(msgspec.Struct, frozen=True):
    """What this process knew of a channel: its last seq, and the last messages."""

    head: int
    spent: tuple[Spent, ...]


def recount(rows: Iterable[tuple[int, str, int]], seen: Seen | None, started: Now, now: Now) -> list[Spent]:
    """What the last messages (seq, agent, wall milliseconds; rising) are to the limits, when the log is read again.

    Those of before this process began are as old as the wall clock says, and where that lies behind, as old as the
    process.
    """
    known = {each.seq: each for each in seen.spent} if seen is not None else {}
    spent: list[Spent] = []
    for seq, agent_id, at in rows:
        if seq in known:
            spent.append(known[seq])
        elif seen is None or seq <= seen.head:
            spent.append(Spent(seq, agent_id, mono_of(at, started, started.mono)))
        else:  # a commit that was in doubt, and landed
            last = spent[-1].mono if spent else started.mono
            spent.append(Spent(seq, agent_id, max(last, mono_of(at, now, now.mono))))
    return spent
