"""Plays steps of an arena program against a real broker, and compares answers, store and ledger with the model."""

import json
from contextlib import AsyncExitStack
from typing import Any, Literal

import msgspec
import trio
from trio.testing import wait_all_tasks_blocked

from broker.actors.arena import read_events
from broker.actors.artifacts import read_artifact
from broker.app import Caller
from broker.clock import VirtualClock
from broker.core import arena as core
from broker.core.arena import AccountRow, Acted, Opened, PlayerRow, SessionRow
from broker.core.arenaverify import verify
from broker.core.games.table import load
from broker.store.port import Unit
from broker.wire.keys import SigningKey
from tests.programs.arena_model import AGENTS, LIMITS, Model, Played, Request
from tests.programs.flaky import FlakyMemory, Way
from tests.support.agents import caller_of, make_agent, owner_caller
from tests.support.broker import START_MS, Bench, code, open_bench, tuned
from tests.support.signin import new_owner

SETTINGS = tuned(
    arena={name: getattr(LIMITS, name) for name in ("points", "open_sessions", "sessions_per_day", "idle_h")}
)
GAMES = load(SETTINGS.arena.games)
By = Literal["agent", "owner", "other"]
What = Literal["plain", "big", "all", "bad", "stop"]
LOGS = (core.session_log(""), core.rejected_log(""))


class Open(msgspec.Struct, frozen=True):
    """A session is opened for an agent: with the next commit, with none, or with one that is past."""

    agent: int
    by: By = "agent"
    game: Literal["hilo", "rfq"] = "hilo"
    mode: Literal["simulation", "persistent"] = "persistent"
    commit: Literal["next", "none", "past"] = "none"
    way: Way | None = None


class Act(msgspec.Struct, frozen=True):
    """An action in the session of this index, decided on the version that is `behind` the present one."""

    index: int
    what: What = "plain"
    by: By = "agent"
    behind: int = 0
    way: Way | None = None
    crash: bool = False
    """Whether the broker is another one before the request is repeated."""


class Again(msgspec.Struct, frozen=True):
    """The request of this index is sent once more, byte for byte."""

    index: int


class Clash(msgspec.Struct, frozen=True):
    """The key of the request of this index, for another request."""

    index: int


class Race(msgspec.Struct, frozen=True):
    """Two at once in one session: twice the same request, or two that were decided on the same version."""

    index: int
    same: bool


class Wait(msgspec.Struct, frozen=True):
    """Seconds pass."""

    seconds: int


class Land(msgspec.Struct, frozen=True):
    """What was in doubt reaches the store, if it still can."""


class Restart(msgspec.Struct, frozen=True):
    """The broker ends, with all that is under way, and begins again."""


Step = Open | Act | Again | Clash | Race | Wait | Land | Restart


class World:
    """Three agents, an owner of two of them, on one store."""

    def __init__(self) -> None:
        self.clock = VirtualClock(START_MS)
        self.key = SigningKey.from_seed("07" * 32)
        self.store = FlakyMemory()
        self.store._secret = bytes(32)  # chance comes of it: a program is the same run again
        self.model = Model()
        self.requests: list[Request] = []
        self.late: Request | None = None
        """What is in doubt, and may land yet."""
        self.bench: Bench
        self._ids: list[str] = []
        self._owner = ""
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        self._stack = AsyncExitStack()
        bench = open_bench(SETTINGS, self.store, self.clock, self.key)
        self.bench = await self._stack.enter_async_context(bench)
        self._owner = self._owner or await new_owner(self.bench)
        for number in range(len(self._ids), AGENTS):
            owner = {"owner_id": self._owner} if number < AGENTS - 1 else {}
            id = f"ag_{number:026}"
            await make_agent(self.bench, f"Agent {number}", agent_id=id, **owner)
            self._ids.append(id)

    async def stop(self) -> None:
        await self._stack.aclose()

    async def play(self, step: Step) -> None:
        match step:
            case Open():
                await self._open(step)
            case Act():
                await self._act(step)
            case Again(index):
                if self.requests:
                    await self._send(self.requests[index % len(self.requests)])
            case Clash(index):
                await self._clash(index)
            case Race(index, same):
                await self._race(index, same)
            case Wait(seconds):
                await trio.sleep(seconds)
                await wait_all_tasks_blocked()
                self.model.passed(self.clock.now_ms())
            case Land():
                await self._land()
            case Restart():
                await self._restart()
        await self.judge()

    def caller(self, by: By, agent: int) -> Caller:
        """Whose token it is: the agent's, its owner's, or that of the next agent."""
        if by == "owner":
            return owner_caller(self.bench, self._owner)
        return caller_of(self.bench, self._ids[(agent + (by == "other")) % AGENTS])

    # ── requests ──

    async def _open(self, step: Open) -> None:
        params: dict[str, Any] = {
            "game": step.game,
            "mode": step.mode,
            "config": {"points": LIMITS.simulated},
        }
        if step.by != "agent":
            params["agent_id"] = self._ids[step.agent]
        if step.commit != "none":
            params["config"]["commit"] = await self._commit(step)
        games = self.model.games(step.agent)
        past = step.commit == "past"
        request = Request("open_session", step.by, step.agent, params, past=past, games=games)
        await self._first(request, step.way)

    async def _commit(self, step: Open) -> str:
        if step.commit == "past":
            return "0" * 64
        shown = await self.bench.call(
            "get_agent", self.caller("agent", step.agent), agent_id=self._ids[step.agent]
        )
        return str(shown["arena"]["next_commit"])

    async def _act(self, step: Act) -> None:
        request = await self._action(step.index, step.what, step.by, step.behind)
        if request is not None:
            await self._first(request, step.way, crash=step.crash)

    async def _action(self, index: int, what: What, by: By, behind: int = 0) -> Request | None:
        """What somebody sends who has just looked at the session."""
        if not self.model.sessions:
            return None
        played = self.model.sessions[index % len(self.model.sessions)]
        shown = await self._look(played)
        action, needs = choose(shown, what)
        params = {
            "session_id": played.id,
            "expected_version": max(0, shown["version"] - behind),
            "action": action,
        }
        return Request("submit_action", by, played.agent, params, what=what, needs=needs)

    async def _look(self, played: Played) -> dict[str, Any]:
        answer = await self.bench.call(
            "get_session", self.caller("agent", played.agent), session_id=played.id
        )
        shown: dict[str, Any] = answer["session"]
        points = self.model.points(played)
        assert (shown["version"], shown.get("over"), shown["account"]["balance"]) == (
            played.version,
            played.over,
            points,
        )
        assert ("seed" in shown) == (played.over is not None)
        return shown

    async def _first(self, request: Request, way: Way | None, *, crash: bool = False) -> None:
        """Send a request for the first time, whose commit goes this way; and once more, where it is not known."""
        request.params["idempotency_key"] = f"key-{len(self.requests)}"
        self.requests.append(request)
        if way == "late" and (self.late is not None or self._expect(request) != "accepted"):
            way = None
        if way is None or not self._writes(request):
            await self._send(request)
            return
        self.store.fail(way, appends)
        answer = await self._ask(request)
        self.store.fail(None)
        assert code(answer) == ("unavailable" if way == "unavailable" else "in_doubt"), answer
        if way == "late":
            self.late = request
            self.model.begun(request, self.clock.now_ms())
            return
        if way == "applied":
            self.model.rejected(request, self._expect(request))
            request.landed = self._expect(request) != "CONFLICT"
        if crash:
            await self._restart()
        await self._send(request)

    def _expect(self, request: Request) -> str:
        return self.model.expect(request, self.clock.now_ms())

    def _writes(self, request: Request) -> bool:
        """Whether it leads to a row of a log."""
        expect = self._expect(request)
        if request.tool == "open_session":
            return expect == "accepted"
        return expect != "NOT_FOUND"

    async def _send(self, request: Request) -> None:
        """Send it, hold the answer against the model's, and let the model follow."""
        expect, before = self._expect(request), request.landed
        if request.kept is None:
            request.began = 0  # if it is done, then now
        answer = await self._ask(request)
        self._judge_answer(request, expect, before, answer)

    def _judge_answer(self, request: Request, expect: str, landed: bool, answer: Any) -> None:
        text = msgspec.json.encode(answer)
        if request.kept is not None:
            assert text == request.kept, (request, text)
            return
        assert code(answer) == expect, (request, answer)
        if expect == "accepted":
            self.model.accepted(request, json.loads(text), self.clock.now_ms())
        elif not landed:
            self.model.rejected(request, expect)
        if expect not in ("CONFLICT", "LIMIT_EXCEEDED"):
            request.kept = text

    async def _ask(self, request: Request) -> Any:
        caller = self.caller(request.by, request.agent)
        return await self.bench.broker.call(caller, request.tool, json.dumps(request.params).encode())

    async def _clash(self, index: int) -> None:
        kept = [each for each in self.requests if each.kept is not None]
        if not kept:
            return
        request = kept[index % len(kept)]
        params = {**request.params, **({"version": 1} if request.tool == "open_session" else {"action": {}})}
        answer = await self._ask(Request(request.tool, request.by, request.agent, params))
        assert code(answer) == "IDEMPOTENCY_MISMATCH", answer

    async def _race(self, index: int, same: bool) -> None:
        """Of two that were decided on one version one is done; of two that are the same both are answered with it."""
        first = await self._action(index, "plain", "agent")
        if first is None:
            return
        second = first
        first.params["idempotency_key"] = f"key-{len(self.requests)}"
        self.requests.append(first)
        if not same:
            params = {**first.params, "idempotency_key": f"key-{len(self.requests)}"}
            second = Request("submit_action", "agent", first.agent, params, what="plain", needs=first.needs)
            self.requests.append(second)
        answers: list[Any] = [None, None]

        async def ask(number: int, request: Request) -> None:
            answers[number] = await self._ask(request)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, 0, first)
            nursery.start_soon(ask, 1, second)
        order = [(first, answers[0]), (second, answers[1])]
        if not same and code(answers[1]) == "accepted":
            order.reverse()
        for request, answer in order:
            self._judge_answer(request, self._expect(request), False, answer)

    # ── faults ──

    async def _land(self) -> None:
        request, self.late = self.late, None
        if request is None:
            return
        expect = self.model.lands(request)
        landed = await self.store.land()
        assert expect is None or landed == expect
        if landed:
            self._judge_answer(request, "accepted", False, await self._ask(request))

    async def _restart(self) -> None:
        await wait_all_tasks_blocked()
        await self.stop()
        self.store.lose()
        self.late = None
        await self.start()

    # ── what is always true ──

    async def judge(self) -> None:
        """Documents, logs and ledger are the model's; no point is lost."""
        total = 0
        for played in self.model.sessions:
            row = await self._row(SessionRow, "arena", played.id)
            assert (row.version, row.over) == (played.version, played.over)
            assert (row.net, row.balance) == (played.net, played.balance)
            events = await read_events(self.store, played.id)
            assert len(events) == played.version + 1
            total += sum(
                points for each in events if isinstance(each, Opened | Acted) for _, points in each.entries
            )
            attempts = await self.store.entries(core.rejected_log(played.id), limit=1_000)
            assert len(attempts) == played.rejected
        assert total == 0
        for agent, id in enumerate(self._ids):
            if (points := self.model.accounts.get(agent)) is not None:
                account = await self._row(AccountRow, "account", id)
                assert account.balance == points >= 0
                assert account.balance + account.house + account.mint == 0
            else:
                assert await self.store.get("account", id) is None
            if games := self.model.games(agent):
                assert (await self._row(PlayerRow, "player", id)).games == games

    async def _row(self, type: Any, kind: str, id: str) -> Any:
        document = await self.store.get(kind, id)
        assert document is not None, (kind, id)
        return msgspec.json.decode(document.doc, type=type)

    async def finish(self) -> None:
        """Every answer that was kept is given again by another broker, and every session that is over is published."""
        await self._restart()
        for request in self.requests:
            await self._send(request)
        await self.judge()
        for played in self.model.sessions:
            row = await self._row(SessionRow, "arena", played.id)
            assert (row.ref is None) == (played.over is None)
            if row.ref is not None:
                content = await read_artifact(self.store, row.ref)
                assert content is not None
                assert verify(content, GAMES, row.ref).fault is None


def choose(shown: dict[str, Any], what: What) -> tuple[dict[str, Any], int]:
    """An action for a session as it is shown, and how many points it needs for certain."""
    legal = shown["legal_actions"][0] if shown["legal_actions"] else {"type": "stop"}
    if what == "stop" or (legal["type"] == "stop" and what != "bad"):
        return {"type": "stop"}, 0
    if what == "bad":
        return {"type": "fly"}, 0
    if legal["type"] == "call":
        stake = {"big": 400, "all": legal["stake"]["max"]}.get(what, 1)
        return {"type": "call", "stake": stake, "guess": legal["guess"]}, stake
    if legal["type"] == "quote" and (bid := legal.get("bid")) and bid["min"] <= bid["max"]:
        return {"type": "quote", "bid": bid["max"] if what == "big" else bid["min"]}, 0
    return {"type": "pass"}, 0


def appends(unit: Unit) -> bool:
    """Whether a unit writes a row of a session's."""
    return unit.append is not None and unit.append.log.startswith(LOGS)
