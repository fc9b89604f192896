"""The loop guard: agents that answer each other by themselves are stopped (network.md, Loop guard).

1. Every message belongs to a chain: it begins one, or it answers a message and is one hop further. An answer is what
   names the message that it answers, or what is sent so soon after a receipt that nobody can have thought about it.
2. A chain ends where its `limit`th message would be, counted along its hops, within a place (two agents, or a channel),
   and over all places for agents that are few. It lives an hour; what comes later begins another one.
3. A relay is no loop: a new topic from outside begins a chain of its own, however many go the same way.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from broker.core.machine import Now
from broker.wire.refusals import Refusal, refuse

LIMIT: Final = 50
HOUR_MS: Final = 3_600_000
"""So long after its first message a chain is over."""
AT_ONCE_S: Final = 2.0
"""Sent so soon after a receipt from anybody, it answers that."""
SOON_S: Final = 30.0
"""Sent so soon after the last receipt, it answers that where it goes back to one from whom it came (`_goes_round`):
agents that take their time and name nothing go round too."""


class Trace(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the broker keeps with a message: its chain, and how far along it is."""

    root: str
    """The id of the chain's first message."""
    since: int
    """Wall milliseconds of that one."""
    hops: int = 0
    """0: it began the chain. More: it was an answer, so it counts as automatic."""
    via: str | None = None
    """Who sent what this one followed, answer or not."""


class Receipt(msgspec.Struct, gc=False):
    """A message as somebody received it."""

    sender: str
    at: float
    """Seconds on the monotonic clock."""
    trace: Trace
    answered: frozenset[str] = frozenset()
    """Who of those that received it has answered it; kept for topics alone (`hops` 0)."""


def follow(
    message_id: str, sender: str, to: str, now: Now, heard: Sequence[Receipt], replied: Receipt | None
) -> Trace:
    """Where a message stands that `sender` sends to an agent or a channel, `to`.

    `heard`: what the sender received lately, oldest first. `replied`: the message that it names. Marks a topic that it
    answers.
    """
    answered = replied or _answered(sender, to, now, heard)
    if answered is not None and now.wall_ms - answered.trace.since < HOUR_MS:
        if answered.trace.hops == 0:
            answered.answered |= {sender}
        its, hops = answered.trace, 2 if _was_one_before(answered, to, now) else 1
        return Trace(its.root, its.since, its.hops + hops, answered.sender)
    last = heard[-1] if heard and now.mono - heard[-1].at <= SOON_S else None
    return Trace(message_id, now.wall_ms, 0, last.sender if last is not None else None)


def _answered(sender: str, to: str, now: Now, heard: Sequence[Receipt]) -> Receipt | None:
    """The receipt that a message answers by its time alone.

    Topics that were not answered yet come first, in their order: who passes on many at once is no loop, whatever else
    comes in between.
    """
    lately = [each for each in heard if now.mono - each.at <= AT_ONCE_S]
    for each in lately:
        if each.trace.hops == 0 and sender not in each.answered:
            return each
    if lately:
        return lately[-1]
    last = heard[-1] if heard else None
    return last if last is not None and now.mono - last.at <= SOON_S and _goes_round(last, to) else None


def _goes_round(receipt: Receipt, to: str) -> bool:
    """Whether `to` is who sent what was received, or who had sent to that one before: a cycle of two or three."""
    return to in (receipt.sender, receipt.trace.via)


def _was_one_before(answered: Receipt, to: str, now: Now) -> bool:
    """Whether what is answered was itself an answer to `to`, as is seen only now that it comes round: somebody who
    takes time passed it on, and it looked like a topic."""
    late = now.mono - answered.at > AT_ONCE_S
    return late and answered.trace.hops == 0 and answered.trace.via == to


class Chain:
    """What has passed of one chain, as far as this process has seen it."""

    __slots__ = ("_agents", "_counts", "_told", "_total")

    def __init__(self) -> None:
        self._agents: set[str] = set()
        self._counts: dict[str, int] = {}
        self._total = 0
        self._told: set[str] = set()

    def judge(
        self, trace: Trace, place: str, agents: Sequence[str], limit: int = LIMIT, *, channel: bool = False
    ) -> Refusal | None:
        """Why one more message may not pass at `place` between `agents`; None: it may.

        In a `channel` many who talk at the same time are no loop: there its members count, as over all places.
        """
        present = self._agents.union(agents)
        most = limit * max(1, len(present) - 2)
        if channel:
            limit = most
        if trace.hops > 0 and (
            trace.hops + 1 >= limit or self._counts.get(place, 0) + 1 >= limit or self._total + 1 >= most
        ):
            return refuse(
                "quota_exceeded",
                "agents answer each other here by themselves, without a new topic; that is stopped. What is sent later "
                f"than {SOON_S:g} s after the last receipt or refusal, and names none, begins anew",
                reason="loop",
                hops=trace.hops,
                limit=limit,
            )
        return None

    def passed(self, place: str, agents: Sequence[str]) -> None:
        """One more has passed."""
        self._agents.update(agents)
        self._counts[place] = self._counts.get(place, 0) + 1
        self._total += 1

    def tell(self, place: str) -> bool:
        """Whether the place is to be told now that the chain was stopped there: once."""
        if place in self._told:
            return False
        self._told.add(place)
        return True
