"""Players over one door of one broker, and what a run of theirs costs the broker."""

from collections.abc import Callable, Sequence

import msgspec

from bench.kit.agents import Tokens
from bench.kit.machine import busy_s, cpu_s
from bench.kit.report import Lag, percentile, say
from bench.kit.server import Broker
from bench.players import Player, Players, Result
from bench.seats import SEATS, Over
from broker.core.arena import Mode


class Run(msgspec.Struct, kw_only=True):
    """What one run found."""

    over: str
    loop: str
    actions_per_s: float
    p50_ms: float
    p99_ms: float
    lag_p99_ms: float
    cpu_us_per_action: float
    """CPU of the broker and its threads, sessions that were opened meanwhile included."""
    load_cpu_us_per_action: float
    others_cores: float
    """CPU that neither of them used, in cores: what else the machine did."""
    opened: int
    opened_p99_ms: float
    actions: int
    seconds: float


class Hall:
    """Players on one broker, all over one door."""

    def __init__(
        self, broker: Broker, agents: Sequence[str], over: Over, connections: int, sessions: int, mode: Mode
    ) -> None:
        """Connect: agents have connections in turn, connections have sessions in turn. Raises Lost, Refused."""
        self._broker = broker
        self._over = over
        tokens = Tokens(broker, "arena")
        players = []
        for at in range(connections):
            agent_id = agents[at % len(agents)]
            seat = SEATS[over](broker, tokens.of(agent_id))
            players.append(Player(agent_id, seat, len(range(at, sessions, connections))))
        self.players = Players(players, mode)

    def measure(self, loop: str, drive: Callable[[], Result]) -> Run:
        """Drive the players, and look what the broker and the machine did meanwhile. Raises Lost."""
        lag = Lag()
        scraped, cpu, busy = self._broker.metrics(), cpu_s(self._broker.pid), busy_s()
        found = drive()
        busy, cpu = busy_s() - busy, cpu_s(self._broker.pid) - cpu
        lag.add(scraped, self._broker.metrics())
        count, took = max(1, len(found.latencies)), max(1e-6, found.seconds)
        run = Run(
            over=self._over,
            loop=loop,
            actions_per_s=round(len(found.latencies) / took, 1),
            p50_ms=round(percentile(found.latencies, 0.5), 3),
            p99_ms=round(percentile(found.latencies, 0.99), 3),
            lag_p99_ms=lag.ms(0.99),
            cpu_us_per_action=round(cpu / count * 1e6, 1),
            load_cpu_us_per_action=round(found.own_cpu_s / count * 1e6, 1),
            others_cores=round(max(0.0, busy - cpu - found.own_cpu_s) / took, 2),
            opened=len(found.opened),
            opened_p99_ms=round(percentile(found.opened, 0.99), 3),
            actions=len(found.latencies),
            seconds=round(took, 3),
        )
        say(
            f"{self._over}, {loop}: {run.actions_per_s:,.0f} actions/s, p50 {run.p50_ms:.2f} ms, p99 "
            f"{run.p99_ms:.2f} ms, {run.cpu_us_per_action:.0f} us CPU; {run.opened} opened"
        )
        return run

    def close(self) -> None:
        """Close the connections."""
        for each in self.players.players:
            each.seat.close()
