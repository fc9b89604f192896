"""The arena's rules for sessions and points, written a second time: what must be answered, and what is left.

What a game makes of an action is its own; the model takes the change from the answer, and adds up. Written from the law
(docs/reference/arena.md), not from the broker.
"""

from typing import Any, Literal

import msgspec

AGENTS = 3
DAY_MS = 86_400_000


class Limits(msgspec.Struct, frozen=True):
    """Small ones, so that a short program reaches them."""

    points: int = 900
    open_sessions: int = 4
    sessions_per_day: int = 9
    idle_h: float = 1.0
    simulated: int = 700
    """What a simulation's account opens with."""


LIMITS = Limits()
FINAL = ("bust", "shoe_empty", "tape_over", "actions")
"""How a game may end by an action."""


class Request(msgspec.Struct):
    """What was sent under a key, by whom, and what is remembered of it."""

    tool: Literal["open_session", "submit_action"]
    by: Literal["agent", "owner", "other"]
    agent: int
    params: dict[str, Any]
    what: str = "plain"
    needs: int = 0
    """Points without which it is refused."""
    past: bool = False
    """Whether it names a commit that never was the next one."""
    games: int = 0
    """How many sessions the agent had opened when the commit was read."""
    began: int = 0
    """When it was in doubt, where it may land later; what it was decided on stands in the two after it."""
    stamp: tuple[int, ...] = ()
    points: int = 0
    landed: bool = False
    """Whether it is in the store, though nobody has seen the answer."""
    kept: bytes | None = None
    """The answer that is remembered."""


class Played(msgspec.Struct):
    """A session."""

    id: str
    agent: int
    persistent: bool
    balance: int
    changed: int
    version: int = 0
    net: int = 0
    over: str | None = None
    rejected: int = 0


class Model:
    """All sessions of all agents. Times are wall milliseconds."""

    def __init__(self) -> None:
        self.sessions: list[Played] = []
        self.accounts: dict[int, int] = {}
        """Persistent accounts that are open."""
        self.opened: dict[tuple[int, int], int] = {}
        """By agent and day."""
        self.moved = [0] * AGENTS
        """How often points of a persistent account were."""

    def games(self, agent: int) -> int:
        return sum(each.agent == agent for each in self.sessions)

    def points(self, played: Played) -> int:
        """What its account has now."""
        return self.accounts[played.agent] if played.persistent else played.balance

    def expect(self, request: Request, now: int) -> str:
        """The code of the answer to a request that nothing is remembered of."""
        if request.tool == "open_session":
            return self._opening(request, now)
        played = self._session(request)
        if not self._may(request):
            return "NOT_FOUND"
        if played.over is not None:
            return "SESSION_OVER"
        if request.params["expected_version"] != played.version:
            return "CONFLICT"
        if request.params["action"] == {"type": "stop"}:
            return "accepted"
        if request.what == "bad":
            return "ILLEGAL_ACTION"
        return "INSUFFICIENT_POINTS" if request.needs > self.points(played) else "accepted"

    def _opening(self, request: Request, now: int) -> str:
        agent = request.agent
        if not self._may(request):
            return "FORBIDDEN"
        mine = [each for each in self.sessions if each.agent == agent]
        full = self.opened.get((agent, now // DAY_MS), 0) >= LIMITS.sessions_per_day
        if full or sum(each.over is None for each in mine) >= LIMITS.open_sessions:
            return "LIMIT_EXCEEDED"
        if request.past or self._past(request):
            return "CONFLICT"
        if request.params["mode"] == "persistent" and self.accounts.get(agent) == 0:
            return "INSUFFICIENT_POINTS"
        return "accepted"

    def _past(self, request: Request) -> bool:
        """Whether sessions were opened since the commit was read."""
        return "commit" in request.params["config"] and self.games(request.agent) != request.games

    def _may(self, request: Request) -> bool:
        return request.by == "agent" or (request.by == "owner" and request.agent < AGENTS - 1)

    def accepted(self, request: Request, answer: dict[str, Any], now: int) -> None:
        """It was done: the answer says what chance made of it, and all the rest is known."""
        if request.tool == "open_session":
            self._opened(request, answer, request.began or now)
            return
        played, shown, change = self._session(request), answer["session"], answer["change"]
        balance = (request.points if request.began else self.points(played)) + change
        assert balance >= 0
        played.version += 1
        played.net += change
        played.changed = request.began or now
        played.balance = balance
        if played.persistent and change:
            self.accounts[played.agent] = balance
            self.moved[played.agent] += 1
        assert (shown["version"], shown["net"]) == (played.version, played.net)
        account = {
            "kind": "persistent" if played.persistent else "simulation",
            "balance": balance,
        }
        assert {name: shown["account"][name] for name in account} == account
        played.over = shown.get("over")
        if request.params["action"] == {"type": "stop"}:
            assert (played.over, change) == ("stopped", 0)
        else:
            assert played.over is None or played.over in FINAL
            assert played.over == "bust" or balance > 0

    def _opened(self, request: Request, answer: dict[str, Any], now: int) -> None:
        agent, persistent = request.agent, request.params["mode"] == "persistent"
        balance = self.accounts.setdefault(agent, LIMITS.points) if persistent else LIMITS.simulated
        assert (answer["version"], answer["net"], answer["games"]) == (0, 0, self.games(agent))
        assert answer["account"]["balance"] == balance
        self.sessions.append(Played(answer["session_id"], agent, persistent, balance, now))
        day = (agent, now // DAY_MS)
        self.opened[day] = self.opened.get(day, 0) + 1

    def rejected(self, request: Request, expect: str) -> None:
        """An attempt that reached the session and was not accepted is kept beside it."""
        if request.tool == "submit_action" and expect not in ("accepted", "NOT_FOUND"):
            self._session(request).rejected += 1

    def begun(self, request: Request, now: int) -> None:
        """It is in doubt, and may land later as what it is now."""
        request.began, request.stamp = now, self._stamp(request)
        if request.tool == "submit_action":
            request.points = self.points(self._session(request))

    def lands(self, request: Request) -> bool | None:
        """Whether it still can; None: only if it moves no points, which nobody has been told."""
        now = self._stamp(request)
        if request.kept is not None or now[0] != request.stamp[0]:
            return False
        return True if now == request.stamp else None

    def _stamp(self, request: Request) -> tuple[int, ...]:
        """What must not have changed meanwhile."""
        if request.tool == "open_session":
            return (self.games(request.agent),)
        played = self._session(request)
        return (played.version, self.moved[played.agent] if played.persistent else 0)

    def passed(self, now: int) -> None:
        """What nobody acted in for too long is over."""
        for each in self.sessions:
            if each.over is None and now >= each.changed + LIMITS.idle_h * 3_600_000:
                each.over = "expired"
                each.version += 1

    def _session(self, request: Request) -> Played:
        return next(each for each in self.sessions if each.id == request.params["session_id"])
