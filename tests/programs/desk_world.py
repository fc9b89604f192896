"""Plays steps of a desk program against a real broker and compares each answer, and who holds what, with the model."""

from contextlib import AsyncExitStack
from typing import Any, Literal

import msgspec
import trio
from trio.testing import wait_all_tasks_blocked

from broker.actors.calls import stream_name
from broker.app import Caller
from broker.clock import VirtualClock
from broker.core.desk import CodeRow, DeskRow
from broker.store.port import Unit
from broker.wire.canonical import encode
from broker.wire.keys import SigningKey
from tests.programs.desk_model import RECOVERY, RESERVE_S, Limits, Model
from tests.programs.flaky import FlakyMemory, Way
from tests.support.broker import START_MS, Bench, Line, Party, code, open_bench, tuned

LIMITS = Limits()
SETTINGS = tuned(
    limits={name: getattr(LIMITS, name) for name in LIMITS.__struct_fields__},
    calls={"idle_s": 1e9},
    streams={"keep_days": 1e4},
)
CODES = ("ALFA", "BRAV", "CHAR", "WIRE")
OPERATOR = Caller(operator=True)
MODES: tuple[Literal["all", "known", "nobody"], ...] = ("all", "known", "nobody")


class Open(msgspec.Struct, frozen=True):
    """A key opens a code, perhaps naming the recovery key."""

    key: int
    code: str
    recovery: bool = True


class Move(msgspec.Struct, frozen=True):
    """A key (the desk's own, the recovery key, or anybody) moves a code to another key."""

    by: int
    code: str
    to: int


class Change(msgspec.Struct, frozen=True):
    """What a desk's own key alone may ask for."""

    do: Literal["close_desk", "cancel_move"]
    key: int
    code: str


class Screen(msgspec.Struct, frozen=True):
    """A desk says who may ring."""

    key: int
    code: str
    mode: Literal["all", "known", "nobody"]
    deny: int | None = None


class Suspend(msgspec.Struct, frozen=True):
    """The operators suspend a desk, or release it."""

    code: str
    on: bool


class Dial(msgspec.Struct, frozen=True):
    """A key dials another."""

    caller: int
    callee: int
    way: Way | None = None


class PickUp(msgspec.Struct, frozen=True):
    """The call of this index (of those that ring) is picked up."""

    index: int
    way: Way | None = None


class End(msgspec.Struct, frozen=True):
    """The call of this index (of those that have not ended) is ended by one of its parties."""

    index: int
    by_callee: bool
    way: Way | None = None


class Repeat(msgspec.Struct, frozen=True):
    """The last statement that was done, byte for byte."""


class Wait(msgspec.Struct, frozen=True):
    """Seconds pass."""

    seconds: float


class Days(msgspec.Struct, frozen=True):
    """Days pass, and then a minute in which what is due happens."""

    days: float


class Restart(msgspec.Struct, frozen=True):
    """The broker ends and begins again."""


Step = Open | Move | Change | Screen | Suspend | Dial | PickUp | End | Repeat | Wait | Days | Restart


class World:
    """Six keys, three codes and one that is reserved, on one store."""

    def __init__(self) -> None:
        self.clock = VirtualClock(START_MS)
        self.key = SigningKey.from_seed("07" * 32)
        self.keys = [SigningKey.from_seed(f"{i + 1:064x}") for i in range(RECOVERY + 1)]
        self.model = Model(LIMITS)
        self.lines: dict[str, Line] = {}
        self.done: tuple[str, dict[str, Any], Any] | None = None
        self.store = FlakyMemory()
        self.bench: Bench
        self._serial = 0
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        self._stack = AsyncExitStack()
        bench = open_bench(SETTINGS, self.store, self.clock, self.key)
        self.bench = await self._stack.enter_async_context(bench)

    async def stop(self) -> None:
        await self._stack.aclose()

    def party(self, key: int, desk: str = "ZULU") -> Party:
        return Party(desk, self.keys[key])

    @property
    def now(self) -> int:
        return self.clock.now_ms()

    async def play(self, step: Step) -> None:
        match step:
            case Open(key, desk, recovery):
                members: dict[str, Any] = {"recovery_pk": self.keys[RECOVERY].pk} if recovery else {}
                expect = self.model.open_desk(key, desk, recovery, self.now)
                await self._state("open_desk", key, expect, code=desk, **members)
            case Move(by, desk, to):
                expect = self.model.move_desk(by, desk, to, self.now)
                await self._state(
                    "move_desk", by, expect, to=self.keys[to], code=desk, new_pk=self.keys[to].pk
                )
            case Change(do, key, desk):
                expect = getattr(self.model, do)(key, desk, self.now)
                await self._state(do, key, expect, code=desk)
            case Screen():
                await self._screen(step)
            case Suspend(desk, on):
                await self._suspend(desk, on)
            case Dial():
                await self._dial(step)
            case PickUp(index, way):
                await self._pick_up(index, way)
            case End():
                await self._end(step)
            case Repeat():
                await self._repeat()
            case Wait(seconds):
                await self._sleep(seconds)
            case Days(days):
                self.clock.step(round(days * 86_400_000))
                self.done = None
                await self._sleep(61)
                self.model.moves(self.now)
            case Restart():
                await self._restart()
        await self._judge()

    # ── statements ──

    async def _state(
        self, do: str, key: int, expect: str, *, to: SigningKey | None = None, **members: Any
    ) -> None:
        params = self.party(key).statement(do, self.bench.broker.pk, self.bench.ts, **members)
        if to is not None:
            params["new_sig"] = to.sign(encode(params["statement"]))
        answer = await self.bench.call(do, **params)
        assert code(answer) == ("accepted" if expect == "row" else expect), (answer, expect)
        if expect == "accepted":
            self.done = (do, params, answer)

    async def _repeat(self) -> None:
        if self.done is not None:
            do, params, answer = self.done
            assert await self.bench.call(do, **params) == {**answer, "replayed": True}

    async def _screen(self, step: Screen) -> None:
        desk = self.model.own(step.key, step.code, self.now)
        expect = desk if isinstance(desk, str) else "accepted"
        if not isinstance(desk, str):
            desk.mode, desk.deny = step.mode, step.deny
        deny = [] if step.deny is None else [self.keys[step.deny].pk]
        members: dict[str, Any] = {"mode": step.mode, "allow": [], "deny": deny}
        await self._state("screen_desk", step.key, expect, code=step.code, **members)

    async def _suspend(self, desk: str, on: bool) -> None:
        answer = await self.bench.call("suspend_desk" if on else "release_desk", OPERATOR, code=desk)
        holder = self.model.holder(desk, self.now)
        assert code(answer) == ("unknown_desk" if holder is None else "accepted")
        if holder is not None:
            self.model.desks[holder].suspended = on

    # ── calls ──

    async def _dial(self, step: Dial) -> None:
        caller, callee = step.caller, step.callee
        if caller == callee:
            return
        verdict = self.model.dial(caller, callee, self.now, trio.current_time())
        desks = [self.model.live(key, self.now) for key in (caller, callee)]
        one, other = (
            self.party(key, desk.code if desk is not None else "ZULU")
            for key, desk in zip((caller, callee), desks, strict=True)
        )
        self._serial += 1
        params = self.bench.calling(one, other, conv=f"{self._serial:016x}")
        conv = params["envelope"]["conv"]
        self.lines[conv] = Line(self.bench, conv, one, other, params["sig"])
        if not isinstance(verdict, str):
            until = trio.current_time() + RESERVE_S
            self.model.held[caller][conv] = until
            known = frozenset((caller, callee)) in self.model.talked
            self.model.held_rings[callee][conv] = (until, known)
        if await self._write("send_call", params, verdict, step.way):
            self.model.called(conv, caller, callee, self.now, trio.current_time())
        elif isinstance(verdict, str) or step.way == "unavailable":
            self._give_back(conv)

    async def _pick_up(self, index: int, way: Way | None) -> None:
        ringing = [conv for conv, talk in self.model.talks.items() if not talk.answered]
        if not ringing:
            return
        conv = ringing[index % len(ringing)]
        callee = self.model.talks[conv].callee
        desk = self.model.desks.get(callee)
        verdict: str | list[str] = "suspended"
        if desk is None or not desk.suspended:
            verdict = self.model.place(callee, conv, trio.current_time())
        if not isinstance(verdict, str):
            self.model.held[callee][conv] = trio.current_time() + RESERVE_S
        line = self.lines[conv]
        params = line.next("PICKUP", ts=self.bench.ts)
        if await self._write("send_env", params, verdict, way):
            line.n, line.sig = 1, params["sig"]
            self.model.answered(conv, self.now)
        elif isinstance(verdict, str) or way == "unavailable":
            self._give_back(conv)

    async def _end(self, step: End) -> None:
        if not self.model.talks:
            return
        conv = list(self.model.talks)[step.index % len(self.model.talks)]
        line = self.lines[conv]
        by = line.called if step.by_callee else line.caller
        if await self._write("send_env", line.next("END", by=by, ts=self.bench.ts), [], step.way):
            self.model.finished(conv)

    async def _write(
        self, tool: str, params: dict[str, Any], verdict: str | list[str], way: Way | None
    ) -> bool:
        """Send what is judged so; whether it was written."""
        sig = params["sig"].encode()

        def writes(unit: Unit) -> bool:
            return unit.append is not None and sig in unit.append.data

        self.store.fail(way, writes)
        answer = await self.bench.call(tool, **params)
        self.store.fail(None)
        expect = verdict if isinstance(verdict, str) else "accepted" if way is None else "in_doubt"
        if expect == "in_doubt" and way == "unavailable":
            expect = "unavailable"
        assert code(answer) == expect, (answer, expect)
        if isinstance(verdict, str):
            return False
        for conv in verdict:
            await self._judge_evicted(conv, params["from_pk"])
            self.model.finished(conv)
        return way in (None, "applied")

    def _give_back(self, conv: str) -> None:
        for key in self.model.held:
            self.model.held[key].pop(conv, None)
            self.model.held_rings[key].pop(conv, None)

    async def _judge_evicted(self, conv: str, by: str) -> None:
        rows = (await self.bench.call("read_conv", conv=conv))["rows"]
        assert rows[-1]["envelope"]["body"] == {"reason": "evicted", "by": by}

    # ── time ──

    async def _sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)
        await wait_all_tasks_blocked()
        for conv in self.model.unanswered(trio.current_time()):
            self.model.finished(conv)

    async def _restart(self) -> None:
        await wait_all_tasks_blocked()
        await self.stop()
        await self.start()
        self.model.restarted()
        for line in self.lines.values():
            line.bench = self.bench
        for conv in list(self.model.talks):  # timers begin again when the wire is ready
            self.model.talks[conv].at = trio.current_time()
        for key in range(RECOVERY):
            actor = self.bench.broker._services.house.actor("desk", self.keys[key].pk)
            await actor.wait_loaded()
            assert actor.state is not None
            assert list(actor.state.places.open) == self.model.open[key], (
                "places after a restart are those before"
            )
            rings = {conv: ring.known for conv, ring in actor.state.places.rings.items()}
            assert rings == self.model.known_rings[key]

    # ── what is always true ──

    async def _judge(self) -> None:
        for desk in CODES:
            row = await self.bench.call("resolve_code", code=desk)
            holder = self.model.holder(desk, self.now)
            assert (None if holder is None else self.keys[holder].pk) == (
                row["pk"] if isinstance(row, dict) else None
            )
        for key, signing in enumerate(self.keys):
            counted = [each.id for each in await self.store.find("conv", "open", signing.pk)]
            assert counted == self.model.open[key]
            assert len(counted) <= LIMITS.conversations
            ringing = [each.id for each in await self.store.find("conv", "ringing", signing.pk)]
            assert ringing == list(self.model.known_rings[key])
        await self._judge_rows()

    async def _judge_rows(self) -> None:
        """One code for a key, one key for a code, in the store itself."""
        for key, signing in enumerate(self.keys):
            document = await self.store.get("desk", signing.pk)
            desk = self.model.desks.get(key)
            assert (document is None) == (desk is None)
            if document is None or desk is None:
                continue
            row = msgspec.json.decode(document.doc, type=DeskRow)
            assert (row.code, row.pk, row.suspended) == (desk.code, signing.pk, desk.suspended)
            assert (row.moving is None) == (desk.moving is None)
            if self.model.live(key, self.now) is not None:
                names = await self.store.get("code", row.code)
                assert names is not None
                assert msgspec.json.decode(names.doc, type=CodeRow) == CodeRow(signing.pk)

    async def finish(self) -> None:
        """The events of each key's own stream, in order."""
        await self._restart()
        for key, signing in enumerate(self.keys):
            events = await self.store.events(stream_name(signing.pk), 0, 10_000)
            kinds = [event.kind for event in events if event.kind not in ("ring", "env", "end")]
            assert kinds == self.model.events[key]
            assert [event.position for event in events] == list(range(1, len(events) + 1))
