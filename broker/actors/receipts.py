"""Who received what when, for the loop guard (network.md, Loop guard): in memory, bounded, gone with the process.

A restart forgets what was answered by its time alone; what names the message that it answers is still an answer.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from broker.actors.latest import Latest
from broker.core.loops import SOON_S, Chain, Receipt, Trace, follow
from broker.core.machine import Now
from broker.wire.refusals import Refusal

KEPT: Final = 256
"""The last receipts of one agent, or the last messages of one channel: as many topics that came at once as somebody
may pass on, each for itself."""
AGENTS: Final = 4096
"""Agents and channels of which they are kept; the one that heard nothing for longest is forgotten first."""
CHAINS: Final = 16_384
"""Chains of which is known what passed; the same."""


class Stopped(msgspec.Struct, frozen=True):
    """A message that goes round: why it is refused, and whether those concerned are to be told (once a chain and
    place)."""

    refusal: Refusal
    tell: bool


class Receipts:
    """See the module. One for a broker."""

    def __init__(self, limit: int, *, agents: int = AGENTS, chains: int = CHAINS) -> None:
        self._limit = limit
        self._heard: Latest[str, deque[Receipt]] = Latest(agents)
        self._chains: Latest[str, Chain] = Latest(chains)
        self._stops: Latest[tuple[str, str], Receipt] = Latest(agents)
        """By sender, and to whom or where: what was refused last."""

    def __len__(self) -> int:
        return len(self._heard)

    def judge(
        self,
        message_id: str,
        *,
        sender: str,
        to: str,
        place: str,
        now: Now,
        replied: Receipt | None = None,
        agents: Sequence[str] = (),
    ) -> Trace | Stopped:
        """Where a message stands, or why it may not pass. It has passed once it is `heard`.

        `to`: an agent or a channel; what was said in a channel is heard by whoever posts there. `place`: the pair's or
        the channel's name. `agents`: who takes part beside the sender (a pair: the other one).
        """
        heard = self._lately(sender, now)
        channel = to not in agents
        if channel:
            there = [each for each in self._lately(to, now) if each.sender != sender]
            heard = sorted([*heard, *there], key=lambda each: each.at)
        trace = follow(message_id, sender, to, now, heard, replied)
        stop = self._stops.get((sender, to))
        if trace.hops == 0 and stop is not None and now.mono - stop.at <= SOON_S:
            # Who tries again and again is not quiet: what it sends there still belongs to what was stopped.
            trace = follow(message_id, sender, to, now, heard, stop)
        chain = self._chains.get(trace.root) or Chain()
        refused = chain.judge(trace, place, (sender, *agents), self._limit, channel=channel)
        if refused is None:
            return trace
        answered = msgspec.structs.replace(trace, hops=trace.hops - 1)
        self._stops[sender, to] = Receipt(to, now.mono, answered)
        return Stopped(refused, self._keep(trace.root, chain).tell(place))

    def heard(
        self,
        by: str,
        sender: str,
        trace: Trace,
        now: Now,
        *,
        place: str | None = None,
        agents: Sequence[str] = (),
    ) -> None:
        """`by` (an agent; or a channel, for all its members) has received a message. Called after its commit.

        `place` and `agents` as they were judged; without a place it is where it was heard.
        """
        kept = self._heard[by] = self._heard.get(by) or deque(maxlen=KEPT)
        kept.append(Receipt(sender, now.mono, trace))
        while kept[0].at < now.mono - SOON_S:
            kept.popleft()
        while next(iter(self._heard.values()))[-1].at < now.mono - SOON_S:
            self._heard.popitem(last=False)
        chain = self._keep(trace.root, self._chains.get(trace.root) or Chain())
        chain.passed(place or by, (sender, *agents))

    def _keep(self, root: str, chain: Chain) -> Chain:
        self._chains[root] = chain
        return chain

    def _lately(self, who: str, now: Now) -> list[Receipt]:
        return [each for each in self._heard.get(who, ()) if now.mono - each.at <= SOON_S]
