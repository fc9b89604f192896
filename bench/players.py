"""Players of Hi-Lo: sessions that are opened and played again and again, each answer checked.

A player sits in a seat (bench.seats) and plays its sessions in turn, one action under way; where one is over it opens
another. Closed loop: the next action leaves when the last one is answered. Open loop: when its time in the schedule has
come, and its latency counts from then, whether or not it could be sent then (no coordinated omission).

What a player knows of a session is what it was told, and each answer must follow from it: the version is one more, the
change is what the odds that were shown pay, and the balance moves by it.
"""

import gc
import secrets
import select
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from bench.kit.websocket import SILENCE_S, Lost
from bench.seats import Outcome, Seat, Session

STAKES: Final = 10
ACTIONS: Final = 51
"""Of a whole session with one deck."""
_SESSION: Final = msgspec.json.Decoder(Session)
_OUTCOME: Final = msgspec.json.Decoder(Outcome)


class Play:
    """A session as its player knows it: after the last answer."""

    __slots__ = ("chosen", "over", "ref", "session", "stake")

    def __init__(self) -> None:
        self.session: Session | None = None
        """None: it is to be opened."""
        self.chosen: dict[str, Any] = {}
        """The legal action that was taken last."""
        self.stake = 0

    def choose(self, key: bytes) -> bytes:
        """The arguments of the next action: the likeliest guess."""
        session = self.session
        assert session is not None
        calls = [each for each in session.legal_actions if each["type"] == "call"]
        self.chosen = chosen = max(calls, key=lambda each: each["odds"][0])
        self.stake = min(1 + session.version % STAKES, chosen["stake"]["max"])
        return (
            b'{"session_id":"%b","expected_version":%d,"idempotency_key":"%b",'
            b'"action":{"type":"call","stake":%d,"guess":"%b"}}'
            % (session.session_id.encode(), session.version, key, self.stake, chosen["guess"].encode())
        )

    def opened(self, session: Session) -> None:
        """Take the answer to the opening. Raises Lost where it is no new session."""
        if (session.version, session.status, session.net) != (0, "open", 0):
            raise Lost(f"opened as {session}")
        self.session = session

    def acted(self, outcome: Outcome) -> None:
        """Take the answer to the last action. Raises Lost where it does not follow from what was known."""
        before, after, facts = self.session, outcome.session, outcome.facts or {}
        assert before is not None
        above, below = self.chosen["returns"]
        won = facts.get("returned", 0)
        due = before.account.balance + outcome.change if before.account.kind == "simulation" else None
        right = (
            after.session_id == before.session_id
            and after.version == before.version + 1
            and won in (0, self.stake * above // below)
            and outcome.change == won - self.stake
            and after.net == before.net + outcome.change
            and due in (None, after.account.balance)
            and after.account.account_id == before.account.account_id
            and (after.status == "open") == (after.artifact is None)
        )
        if not right:
            raise Lost(f"{self.stake} on {self.chosen} after {before} led to {outcome}")
        self.session = after


class Player:
    """An agent in a seat, with its sessions."""

    __slots__ = ("agent_id", "due", "id", "opening", "plays", "seat", "sent_at", "to_act", "waiting")

    def __init__(self, agent_id: str, seat: Seat, plays: int) -> None:
        self.agent_id = agent_id
        self.seat = seat
        self.plays = deque(Play() for _ in range(plays))
        """The first one is played, then the one after it."""
        self.id = 0
        """Of the request under way; 0: there is none."""
        self.opening = self.to_act = False
        """Whether it opens a session, and whether an action follows then."""
        self.sent_at = 0.0
        """When the request left."""
        self.due: float | None = None
        """When the action should have been sent; None: when it was."""
        self.waiting: deque[float] = deque()
        """Times in the schedule for which there was no turn yet."""


class Result:
    """What one run found: `latencies` in ms of the actions that were acknowledged in `seconds`, `opened` of the
    sessions that were opened meanwhile; both sorted."""

    def __init__(self, latencies: list[float], opened: list[float], seconds: float, own_cpu_s: float) -> None:
        self.latencies = sorted(latencies)
        self.opened = sorted(opened)
        self.seconds = seconds
        self.own_cpu_s = own_cpu_s


Turn = Callable[["Player"], None]
"""What a player does that has nothing under way."""


class Players:
    """Players that are driven together, again and again."""

    def __init__(self, players: Sequence[Player], mode: str) -> None:
        self.players = list(players)
        self.known: dict[str, Session] = {}
        """Each session as it was acknowledged last."""
        self.moved: Counter[str] = Counter()
        """Points that each agent's actions have brought."""
        self._by_number = {each.seat.socket.fileno(): each for each in players}
        self._run_id = secrets.token_hex(4).encode()
        self._mode = mode.encode()
        self._id = 0
        self._now = 0.0
        self._turn: Turn = lambda _: None
        self._acted: list[float] = []
        self._opened: list[float] = []

    def open(self) -> Result:
        """Open all sessions, in each seat one after the other. Raises Lost."""

        def turn(player: Player) -> None:
            if player.plays[0].session is None:
                self._open(player)

        return self._run(turn, self._finish)

    def each_once(self) -> Result:
        """One action in each session. Raises Lost."""
        return self._some([len(player.plays) for player in self.players])

    def spread_out(self) -> Result:
        """Let each player be somewhere else in its session, so that they do not all end at once. Raises Lost."""
        count = len(self.players)
        return self._some([ACTIONS * at // count for at in range(count)])

    def _some(self, each: Sequence[int]) -> Result:
        """So many actions of each player."""
        left = {id(player): count for player, count in zip(self.players, each, strict=True)}

        def turn(player: Player) -> None:
            if left[id(player)]:
                left[id(player)] -= 1
                self._begin(player, None)

        return self._run(turn, self._finish)

    def closed_loop(self, seconds: float) -> Result:
        """One action under way in each seat, for so long. Raises Lost."""
        end = time.perf_counter() + seconds

        def turn(player: Player) -> None:
            if self._now < end:
                self._begin(player, None)

        def drive(epoll: select.epoll) -> None:
            while self._now < end:
                self._poll(epoll, SILENCE_S)

        return self._run(turn, drive, whole=False)

    def open_loop(self, rate: float, seconds: float) -> Result:
        """`rate` actions a second, evenly, in turn in the seats; latencies count from the schedule. Raises Lost."""

        def turn(player: Player) -> None:
            if player.waiting:
                self._begin(player, player.waiting.popleft())

        return self._run(turn, lambda epoll: self._scheduled(epoll, rate, seconds))

    def ask_again(self) -> int:
        """Send each seat's last request again: the very same answer must come. How many. Raises Lost."""
        asked = [each.seat for each in self.players if each.seat.sent]
        for seat in asked:
            told = seat.told
            seat.send(seat.sent)
            if (answer := seat.wait()) != told:
                raise Lost(f"asked again, {told!r} became {answer!r}")
        return len(asked)

    def _run(self, turn: Turn, drive: Callable[[select.epoll], None], *, whole: bool = True) -> Result:
        """`whole`: what comes home after `drive` counts too."""
        self._turn, self._acted, self._opened = turn, [], []
        gc.collect()
        gc.disable()
        try:
            with select.epoll() as epoll:
                for number, player in self._by_number.items():
                    epoll.register(number, select.EPOLLIN)
                    player.seat.socket.settimeout(0)  # with a timeout Python would ask the kernel twice
                cpu, began = time.process_time(), time.perf_counter()
                self._now = began
                for player in self.players:
                    turn(player)
                drive(epoll)
                took, counted = self._now - began, len(self._acted)
                self._turn = turn if whole else lambda _: None
                self._finish(epoll)
                cpu = time.process_time() - cpu
        finally:
            gc.enable()
            for player in self.players:
                player.seat.socket.settimeout(SILENCE_S)
        if whole:
            took, counted = self._now - began, len(self._acted)
        return Result(self._acted[:counted], self._opened, took, cpu)

    def _finish(self, epoll: select.epoll) -> None:
        """All that is under way, and what follows from it, comes home."""
        while any(each.id for each in self.players):
            self._poll(epoll, SILENCE_S)

    def _scheduled(self, epoll: select.epoll, rate: float, seconds: float) -> None:
        began, at, watched = time.perf_counter(), 0, [epoll.fileno()]
        due, end = began, began + seconds
        while True:
            now = self._now = time.perf_counter()
            while due <= now and due < end:
                player = self.players[at % len(self.players)]
                player.waiting.append(due)
                if not player.id:
                    self._turn(player)
                at += 1
                due = began + at / rate
            if now >= end:
                return
            # epoll waits in whole milliseconds, select in microseconds; it can wait for an epoll.
            if select.select(watched, [], [], max(0.0, min(due, end) - time.perf_counter()))[0]:
                self._poll(epoll, 0)

    def _poll(self, epoll: select.epoll, timeout_s: float) -> None:
        """Read what is there and act on it. Raises Lost where nothing comes in `timeout_s` (0: asks nothing)."""
        ready = epoll.poll(timeout_s)
        if not ready and timeout_s:
            raise Lost(f"no answer for {timeout_s:.0f} s")
        for number, _ in ready:
            player = self._by_number[number]
            message = player.seat.take()
            self._now = time.perf_counter()
            if message is not None:
                self._answered(player, message)

    def _begin(self, player: Player, due: float | None) -> None:
        """The next action, due then (None: when it leaves); before it a session is opened where there is none."""
        player.due, player.to_act = due, True
        session = player.plays[0].session
        if session is None or session.status == "over":
            self._open(player)
        else:
            self._send(player, "submit_action", player.plays[0].choose(self._key()))

    def _open(self, player: Player) -> None:
        arguments = b'{"game":"hilo","mode":"%b","idempotency_key":"%b"}' % (self._mode, self._key())
        self._send(player, "open_session", arguments)

    def _key(self) -> bytes:
        return b"%b-%d" % (self._run_id, self._id + 1)

    def _send(self, player: Player, tool: str, arguments: bytes) -> None:
        self._id += 1
        player.id = self._id
        player.opening = tool == "open_session"
        player.sent_at = time.perf_counter()
        player.seat.send(player.seat.frame(self._id, tool, arguments))

    def _answered(self, player: Player, message: bytes) -> None:
        seat, play = player.seat, player.plays[0]
        seat.told = message
        id, found = seat.read(message, _SESSION if player.opening else _OUTCOME)
        if id != player.id:
            raise Lost(f"{player.id} was asked, and {id} is answered")
        player.id = 0
        if player.opening:
            self._opened.append((self._now - player.sent_at) * 1000)
            play.opened(found)
            self.known[found.session_id] = found
            if player.to_act:
                self._begin(player, player.due)
                return
        else:
            began = player.sent_at if player.due is None else player.due
            self._acted.append((self._now - began) * 1000)
            player.to_act = False
            play.acted(found)
            self.known[found.session.session_id] = found.session
            self.moved[player.agent_id] += found.change
        player.plays.rotate(-1)
        self._turn(player)
