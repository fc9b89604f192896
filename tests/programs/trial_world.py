"""Plays steps of a program of trials against a real broker. What must be answered is written a second time here, from
the law (docs/reference/trial.md); what a call does to a position is the pure core's, which has tests of its own."""

from contextlib import AsyncExitStack
from typing import Any, Literal

import msgspec
import trio
from trio.testing import wait_all_tasks_blocked

from broker.actors.artifacts import read_artifact as stored_artifact
from broker.app import Caller
from broker.clock import VirtualClock
from broker.core.plan.read import Checked, read_plan
from broker.core.tapes.synthetic import KINDS, make
from broker.core.trials.script import (
    Advance,
    Call,
    Entry,
    Revise,
    Start,
    Submit,
    Trial,
    artifact_of,
    read_artifact,
    replay,
)
from broker.store.port import Unit
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.programs.flaky import FlakyMemory, Way
from tests.support.agents import caller_of, make_agent
from tests.support.broker import START_MS, Bench, code, open_bench, tuned
from tests.support.rehearsals import DOWN, FADE, QUIET, ask, new_key, whole

IDLE_S = 3_600
OPEN = 3
SETTINGS = tuned(trials={"idle_h": 1.0, "open_sessions": OPEN})
MARKET = make(KINDS["trend"], 1)
ENTRY = Entry(MARKET.ref(), MARKET.about, len(MARKET), "trend", 1)
PLANS = {"fade": FADE, "quiet": QUIET, "down": DOWN}
Verb = Literal["start", "advance", "revise", "submit", "finalize"]
PASSING = ("unavailable", "in_doubt")


class Open(msgspec.Struct, frozen=True):
    """A trial is opened."""

    way: Way | None = None


class Do(msgspec.Struct, frozen=True):
    """A call in the trial of this index, decided on the version that is `behind` the present one."""

    index: int
    verb: Verb
    plan: Literal["fade", "quiet", "down"] = "fade"
    ticks: int = 1
    behind: int = 0
    way: Way | None = None
    crash: bool = False
    """Whether the broker is another one before the request is repeated."""
    patient: bool = True
    """Whether an operation is waited for before the next step."""


class Again(msgspec.Struct, frozen=True):
    """The request of this index is sent once more, byte for byte."""

    index: int


class Wait(msgspec.Struct, frozen=True):
    """Seconds pass."""

    seconds: int


class Restart(msgspec.Struct, frozen=True):
    """The broker ends, with all that is under way, and begins again."""


Step = Open | Do | Again | Wait | Restart


class Tried(msgspec.Struct):
    """What the model knows of a trial."""

    id: str
    trial: Trial
    calls: list[Call] = []
    version: int = 0
    fills: int = 0
    over: str | None = None
    operation: str | None = None


def read(plan: str) -> Any:
    checked = read_plan(PLANS[plan])
    assert isinstance(checked, Checked)
    return checked.plan


def keyed(unit: Unit) -> bool:
    return unit.append is not None and unit.remember is not None


class World:
    """One agent, on one store."""

    def __init__(self) -> None:
        self.clock = VirtualClock(START_MS)
        self.key = SigningKey.from_seed("07" * 32)
        self.store = FlakyMemory()
        self.trials: list[Tried] = []
        self.asked: list[tuple[str, dict[str, Any], Any]] = []
        """Requests with what is answered for good."""
        self.bench: Bench
        self.ann: Caller | None = None
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        self._stack = AsyncExitStack()
        opening = open_bench(SETTINGS, self.store, self.clock, self.key)
        self.bench = await self._stack.enter_async_context(opening)
        if self.ann is None:
            self.ann = await make_agent(self.bench, "Ann")
        await self.bench.broker._services.tapes.tape(ENTRY)  # made in a thread, over which no clock may jump

    async def stop(self) -> None:
        await self._stack.aclose()

    async def play(self, step: Step) -> None:
        match step:
            case Open(way):
                await self._open(way)
            case Do(index):
                if self.trials:
                    await self._do(self.trials[index % len(self.trials)], step)
            case Again(index):
                if self.asked:
                    name, params, answer = self.asked[index % len(self.asked)]
                    assert await self._ask(name, params) == answer, "the first answer, whatever came after it"
            case Wait(seconds):
                await self._settle()
                await trio.sleep(seconds)
                await wait_all_tasks_blocked()
                for tried in self.trials if seconds > IDLE_S else ():
                    if tried.over is None:
                        tried.over, tried.version = "expired", tried.version + 1
            case Restart():
                await self._restart()

    async def finish(self) -> None:
        """All that is open is ended; each trial is as the model says, and its artifact is what its calls come to."""
        await self._settle()
        for tried in self.trials:
            shown = await self._ask("session.resume", {"session_id": tried.id})
            assert (shown["version"], shown.get("ended")) == (tried.version, tried.over)
            assert (shown["fills_count"], shown["observation"]["tick"]) == (
                tried.fills,
                tried.trial.place.tick - 1,
            )
            if tried.over is None:
                await self._do(tried, Do(0, "finalize"))
            shown = await self._ask("session.resume", {"session_id": tried.id})
            content = await stored_artifact(self.store, shown["artifact"]["ref"])
            assert content == artifact_of(ENTRY, tried.calls, replay(MARKET, tried.calls))
            assert tried.trial.place == replay(MARKET, tried.calls).trial.place

    async def _restart(self) -> None:
        await self.stop()
        self.store.lose()
        await self.start()

    async def _ask(self, name: str, params: dict[str, Any]) -> Any:
        assert self.ann is not None
        answer = await ask(self.bench, caller_of(self.bench, str(self.ann.agent)), name, **params)
        return answer if isinstance(answer, Refusal) else msgspec.json.decode(msgspec.json.encode(answer))

    async def _send(self, name: str, params: dict[str, Any], way: Way | None, *, crash: bool = False) -> Any:
        """The answer for good: what fails is asked again."""
        params["idempotency_key"] = new_key()
        self.store.fail(way, keyed)
        answer = await self._ask(name, params)
        self.store.fail(None)
        if code(answer) in PASSING:
            assert way is not None
            if crash:
                await self._restart()
            answer = await self._ask(name, params)
        return answer

    async def _open(self, way: Way | None) -> None:
        params: dict[str, Any] = {"entry": "trend"}
        answer = await self._send("session.open", params, way)
        if sum(each.over is None for each in self.trials) >= OPEN:
            assert code(answer) == "LIMIT_EXCEEDED"
            return
        self.asked.append(("session.open", params, answer))
        self.trials.append(Tried(answer["session_id"], Trial(MARKET)))

    async def _do(self, tried: Tried, step: Do) -> None:
        params: dict[str, Any] = {
            "session_id": tried.id,
            "expected_version": max(0, tried.version - step.behind),
        }
        call: Call | None = None
        match step.verb:
            case "start":
                call, params["plan"] = Start(read(step.plan)), PLANS[step.plan]
            case "revise":
                call, params["plan"] = Revise(read(step.plan)), PLANS[step.plan]
            case "advance":
                call, params["ticks"] = Advance(step.ticks), step.ticks
            case "submit":
                call = Submit("buy", step.ticks)
                params["order"] = {"side": "buy", "size": step.ticks}
        answer = await self._send(f"session.{step.verb}", params, step.way, crash=step.crash)
        if tried.operation is not None:
            if isinstance(answer, Refusal) and "operation_id" in answer.detail:
                assert (answer.code, answer.detail["operation_id"]) == ("CONFLICT", tried.operation)
                return
            if call is None and params["expected_version"] == tried.version:
                await self._cut(tried, answer)
            else:
                self._ended(tried)  # it was over before this call came
        expect = self._expect(tried, call, params["expected_version"])
        assert code(answer) == expect, (step, answer)
        if expect != "CONFLICT":
            self.asked.append((f"session.{step.verb}", params, answer))
        if expect == "accepted":
            await self._accepted(tried, call, answer)
            if step.patient:
                await self._settle()

    def _expect(self, tried: Tried, call: Call | None, expected: int) -> str:
        place = tried.trial.place
        if tried.over is not None:
            return "SESSION_OVER"
        if expected != tried.version:
            return "CONFLICT"
        if call is None:
            return "accepted"
        if isinstance(call, Start) is tried.trial.started:
            return "ILLEGAL_ACTION"
        if place.over is not None or (place.closing is not None and not isinstance(call, Advance)):
            return "ILLEGAL_ACTION"
        return "accepted"

    async def _accepted(self, tried: Tried, call: Call | None, answer: dict[str, Any]) -> None:
        if call is None:
            tried.over, tried.version = "finalized", tried.version + 1
            assert answer["version"] == tried.version
            return
        before = tried.trial.place.tick
        fills = tried.trial.do(call)
        tried.calls.append(Advance(tried.trial.place.tick - before) if isinstance(call, Advance) else call)
        first, tried.fills = tried.fills, tried.fills + len(fills)
        if "operation" in answer:
            tried.operation = answer["operation"]["operation_id"]
            assert answer["version"] == tried.version
            return
        tried.version += 1
        assert (answer["version"], answer["observation"]["tick"]) == (
            tried.version,
            tried.trial.place.tick - 1,
        )
        assert answer["observation"]["position"] == tried.trial.place.account.position
        if isinstance(call, Advance):
            assert (answer["ran"], answer["fills_from"]) == (tried.trial.place.tick - before, first)
            assert answer["fills"] == msgspec.to_builtins(fills[:100])

    async def _cut(self, tried: Tried, answer: dict[str, Any]) -> None:
        """An advance ended where it was, with its trial: the artifact says where."""
        content = await stored_artifact(self.store, answer["ref"])
        assert content is not None
        whole, calls = tried.calls, list(read_artifact(content).calls)
        cut, last = calls[-1], whole[-1]
        assert calls[:-1] == whole[:-1]
        assert isinstance(cut, Advance)
        assert isinstance(last, Advance)
        assert cut.ticks <= last.ticks
        done = replay(MARKET, calls)
        tried.calls, tried.trial, tried.fills, tried.operation = calls, done.trial, len(done.fills), None

    def _ended(self, tried: Tried) -> None:
        tried.operation, tried.version = None, tried.version + 1

    async def _settle(self) -> None:
        """What goes on by itself comes to its end."""
        assert self.ann is not None
        for tried in self.trials:
            if tried.operation is not None:
                ann = caller_of(self.bench, str(self.ann.agent))
                begun: dict[str, Any] = {"operation": {"operation_id": tried.operation}}
                done = await whole(self.bench, ann, begun)
                self._ended(tried)
                assert (done["version"], done["fills_count"]) == (tried.version, tried.fills)
                assert done["observation"]["tick"] == tried.trial.place.tick - 1
