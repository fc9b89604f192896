"""The load: every conversation in a closed loop, the same for all peers; each answer is checked.

`python -m bench.peers.load CLIENT URL CHAINS --data DATA --pid PID --seconds N`. Each next envelope is sent when its
predecessor has arrived at the other side. The last line on stdout is one object: counts, latencies, and the server's
CPU in between. A process of its own, sockets and a selector alone, everything signed beforehand. A wrong, missing or
repeated answer or envelope raises, and there is no result. At the end the peer's store is read: `missing` says what it
lacks.
"""

import argparse
import gc
import json
import select
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.kit.machine import busy_s, cpu_s, rss_mib
from bench.kit.report import percentile
from bench.kit.websocket import SILENCE_S
from bench.peers.chains import Chain, read_chains
from bench.peers.clients import CLIENTS, load_client
from bench.peers.side import ACK, Side

WARM_S: Final = 0.5


class Talk:
    """One conversation: both sides, how far it has come, and when each envelope was sent."""

    def __init__(self, chain: Chain, sides: tuple[Side, Side]) -> None:
        self.conv = chain.conv
        self.sides = sides
        self.length = len(chain.texts)
        self.sent_at: list[float] = []
        self.arrived = 0
        self._due = [0, 1]
        """Per party the envelope whose acknowledgement comes next."""

    def send(self) -> None:
        """Send the next envelope from the side whose turn it is."""
        n = len(self.sent_at)
        self.sent_at.append(time.perf_counter())
        self.sides[n % 2].send(n)

    def acknowledged(self, party: int, n: int) -> float:
        """When the envelope was sent that is now acknowledged. Raises RuntimeError for any but the one due."""
        if n != self._due[party] or n >= len(self.sent_at):
            raise RuntimeError(
                f"{self.conv}: envelope {n} is acknowledged to {party}, {self._due[party]} was due"
            )
        self._due[party] += 2
        return self.sent_at[n]

    def arrives(self, party: int, n: int) -> None:
        """Envelope n has come to `party`. Raises RuntimeError where it should not have."""
        if n != self.arrived or n >= len(self.sent_at) or n % 2 == party:
            raise RuntimeError(f"{self.conv}: envelope {n} came to {party}, {self.arrived} was due")
        self.arrived += 1

    @property
    def under_way(self) -> bool:
        """Whether something that was sent is not yet acknowledged, or has not yet arrived."""
        sent = len(self.sent_at)
        return self.arrived < sent or sum(self._due) < 2 * sent + 1


class Load:
    """All conversations, and what is counted between `began` and `ended` (perf_counter)."""

    def __init__(self, talks: Sequence[Talk], seconds: float, pid: int) -> None:
        self.latencies: list[float] = []
        self.began = self.ended = 0.0
        self.cpu_s = self.own_cpu_s = self.all_cpu_s = 0.0
        self.ran_out = False
        """Whether a conversation had nothing left to say before the time was over."""
        self._talks = talks
        self._seconds = seconds
        self._pid = pid
        self._sending = True

    def run(self) -> None:
        """Warm up, count for so long, and let everything finish that is under way."""
        by_fd: dict[int, tuple[Talk, int]] = {}
        with select.epoll() as poller:
            for talk in self._talks:
                for party, side in enumerate(talk.sides):
                    by_fd[side.socket.fileno()] = (talk, party)
                    poller.register(side.socket, select.EPOLLIN)
                    side.socket.settimeout(0)  # with a timeout Python would ask the kernel twice
                talk.send()
            warm_until = time.perf_counter() + WARM_S
            while self._sending or any(talk.under_way for talk in self._talks):
                ready = poller.poll(SILENCE_S)
                if not ready:
                    raise RuntimeError(f"no answer for {SILENCE_S:.0f} s")
                for fd, _ in ready:
                    self._take(*by_fd[fd])
                if self._sending:
                    self._turn(warm_until)

    def _take(self, talk: Talk, party: int) -> None:
        for what, n in talk.sides[party].receive():
            if what == ACK:
                sent_at = talk.acknowledged(party, n)
                if self.began and self._sending:
                    self.latencies.append(time.perf_counter() - sent_at)
                continue
            talk.arrives(party, n)
            if self._sending and n + 1 < talk.length:
                talk.send()
            elif self._sending:
                self.ran_out = True

    def _turn(self, warm_until: float) -> None:
        """Begin to count, or end, when it is time."""
        now = time.perf_counter()
        if not self.began:
            if now >= warm_until:
                self.began = now
                self._cpu(-1)
        elif self.ran_out or now >= self.began + self._seconds:
            self._sending, self.ended = False, now
            self._cpu(1)

    def _cpu(self, sign: int) -> None:
        self.cpu_s += sign * cpu_s(self._pid)
        self.own_cpu_s += sign * time.process_time()
        self.all_cpu_s += sign * busy_s()

    def result(self) -> dict[str, Any]:
        """What was counted. Raises RuntimeError where nothing was."""
        if not self.latencies:
            raise RuntimeError("no envelope was acknowledged: the conversations ended while warming up")
        self.latencies.sort()
        return {
            "acknowledged": len(self.latencies),
            "seconds": self.ended - self.began,
            "p50_ms": 1000 * percentile(self.latencies, 0.5),
            "p99_ms": 1000 * percentile(self.latencies, 0.99),
            "cpu_s": self.cpu_s,
            "load_cpu_s": self.own_cpu_s,
            "others_cpu_s": max(0.0, self.all_cpu_s - self.cpu_s - self.own_cpu_s),
            "rss_mib": rss_mib(self._pid),
            "ran_out": self.ran_out,
            "sent": [len(talk.sent_at) for talk in self._talks],
        }


def main(arguments: list[str]) -> int:
    """The command; exit code 0 when all was right."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.load")
    parser.add_argument("client", choices=CLIENTS)
    parser.add_argument("url")
    parser.add_argument("chains", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="the folder where the server has its store")
    parser.add_argument(
        "--pid", type=int, required=True, help="the server: its CPU and memory, and its children's"
    )
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args(arguments)
    client = load_client(options.client)
    chains = read_chains(options.chains)
    talks = [
        Talk(each, (client.open(options.url, each, 0), client.open(options.url, each, 1))) for each in chains
    ]
    gc.freeze()
    gc.disable()
    load = Load(talks, options.seconds, options.pid)
    load.run()
    found = load.result()
    found["missing"] = client.missing(options.url, options.data, chains, found.pop("sent"))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
