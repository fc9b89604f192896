"""The actor of one trial (docs/reference/trial.md, Sessions and Operations).

1. A call that was done is one commit: its event, the document with the place that it has come to, and the answer under
   the request's key; with the last one the artifact.
2. An advance that takes long is begun in one commit, and goes on in others, one a part (Go). Meanwhile whoever asks is
   answered, and nothing else is done.
3. What computes is a working copy of the place. It is thrown away where its commit fails.
"""

from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from broker.actors.artifacts import publish
from broker.actors.calls import agent_stream
from broker.actors.mill import Go, Mill
from broker.actors.once import Once
from broker.actors.played import Rehearsed
from broker.actors.record import Index, Record, Told
from broker.actors.session import Rejected, SessionActor
from broker.actors.tapes import Tapes
from broker.apart import LARGE, apart
from broker.config import Trials
from broker.core.arena import session_log
from broker.core.artifact import address
from broker.core.conversation import Due
from broker.core.plan.limits import cost
from broker.core.tapes.tape import Tape
from broker.core.trials import session as core
from broker.core.trials import views
from broker.core.trials.account import Fill, pnl
from broker.core.trials.run import outcome_of, ready
from broker.core.trials.script import Advance, Call, Revise, Start, Submit, Trial
from broker.core.trials.session import (
    MAX_FILLS,
    NO_OPERATION,
    NO_TRIAL,
    TAPE_GONE,
    Began,
    Closed,
    Done,
    Operation,
    Over,
    Ran,
    TrialRow,
    running,
)
from broker.core.trials.slices import STEPS, advance_slice
from broker.store.port import Append, Put, Store
from broker.store.stored import damaged, stored
from broker.wire.refusals import Refusal

INLINE: Final = 20 * STEPS
"""What an advance may take before it becomes an operation: some 40 ms, and as much for others."""
PART: Final = 80 * STEPS
"""Of an operation between two commits."""
CROWD: Final = 8
"""Where more than so many wait for a turn, an advance becomes an operation after one slice."""
FILLS: Final = 100
"""Fills in one answer."""
MANY: Final = 1_000
"""Fills of an artifact that is written beside the loop."""
ROWS: Final = 50
_EVENT: Final[Any] = core.Event


class Look(msgspec.Struct, frozen=True):
    """Answer: the trial as it is now (Shown), with fills from a number on; None: the last ones."""

    fills_from: int | None = None
    limit: int = FILLS


class Ask(msgspec.Struct, frozen=True):
    """Answer: what an operation came to, or how far it is (Advanced)."""

    operation_id: str


class Do(msgspec.Struct, frozen=True):
    """A call that was decided on at a version. Answer: Step or Advanced, or why not."""

    expected_version: int
    call: Call
    by: str
    once: Once | None = None


class Finalize(msgspec.Struct, frozen=True):
    """End it, and publish it. Answer: Finalized, or why not."""

    expected_version: int
    by: str
    once: Once | None = None


class Filled(msgspec.Struct):
    """Of an event: what was filled by it. The plans that it may hold are not made for that."""

    fills: list[Fill] = []


async def read_events(store: Store, session_id: str) -> list[core.Event]:
    """All events of a trial. Raises Unavailable."""
    events: list[core.Event] = []
    while rows := await store.entries(session_log(session_id), len(events) - 1, ROWS):
        events += [stored(_EVENT, row.data, "trial", session_id) for row in rows]
    return events


class TrialActor(SessionActor[TrialRow]):
    """One trial; the key is its session's id."""

    kind = "trial"
    type = TrialRow

    def __init__(
        self,
        key: str,
        *,
        settings: Trials,
        tapes: Tapes,
        mill: Mill,
        rehearsed: Rehearsed,
        new_id: Callable[[str], str],
        **parts: Any,
    ) -> None:
        super().__init__(key, idle_h=settings.idle_h, **parts)
        self._tapes = tapes
        self._mill = mill
        self._rehearsed = rehearsed
        self._new_id = new_id
        self._trial: Trial | None = None
        """The working copy: it stands where the document stands."""
        self._cost = 0
        self._curve = array("q")
        """Profit and loss of the ticks that are not committed yet."""

    def index_of(self, row: TrialRow) -> Index:
        return core.index_of(row)

    async def load(self) -> Record[TrialRow]:
        record = await super().load()
        row = record.row
        if row is not None:
            last = await self.store.tail(session_log(self.key), limit=1)
            if not last or last[0].n != row.events - 1:
                raise damaged("trial", self.key, f"it has {row.events} events, and its log others")
            if running(row):
                self._mill.began(row.agent_id, self.key)
        return record

    async def do(self, command: Any) -> Any:
        row = self.row
        if row is None:
            return None if isinstance(command, Due) else False if isinstance(command, Go) else NO_TRIAL
        match command:
            case Look(fills_from, limit):
                await self.confirm()
                first = max(0, row.fills - limit) if fills_from is None else fills_from
                fills = await self._fills(first, limit, row.fills)
                return views.show(row, await self._tape(row), fills, first)
            case Ask(operation_id):
                return await self._ask(row, operation_id)
            case Do():
                return await self._call(row, command)
            case Finalize():
                return await self._finalize(row, command)
            case Go():
                return await self._go_on(row)
            case Due():
                return await self.look_at_time(row)
        raise TypeError(type(command))

    async def _ask(self, row: TrialRow, operation_id: str) -> Any:
        await self.confirm()
        operation = row.operation
        if operation is None or operation.operation_id != operation_id:
            return NO_OPERATION
        first = operation.fills_from
        fills = await self._fills(first, min(FILLS, operation.fills), row.fills) if not running(row) else []
        if running(row):
            self._mill.began(row.agent_id, self.key)
        return views.advanced(row, await self._tape(row), operation.ran, fills, first)

    async def _call(self, row: TrialRow, command: Do) -> Any:
        call, size = command.call, len(msgspec.json.encode(command.call))
        refused = core.judge(row, command.expected_version)
        trial = await self._working(row) if refused is None else None
        if refused is None:
            refused = TAPE_GONE if trial is None else core.judge_call(row, trial, call, size)
        if refused is not None or trial is None:
            return await self._refuse(command, core.read_call(call), refused or TAPE_GONE)
        row = replace(row, size=row.size + size)
        if isinstance(call, Advance):
            return await self._go(row, command, trial, call.ticks)
        sent = trial.place.account.sent
        if isinstance(call, Submit):
            trial.do(call)
        else:
            await self._mill.work(row.agent_id, trial.doing(call))
        after, append = self._after(row, trial, Done(call), version=row.version + 1)
        if isinstance(call, Start | Revise):
            after, self._cost = replace(after, plan=call.plan), cost(call.plan)
        was_sent = trial.place.account.sent > sent if isinstance(call, Submit) else None
        return await self._stands(after, views.step(after, trial.tape, was_sent), append, command.once)

    async def _go(self, row: TrialRow, command: Do, trial: Trial, ticks: int) -> Any:
        steps = INLINE if self._mill.waiting < CROWD else STEPS
        ran, fills, whole = await self._run(row, trial, ticks, steps)
        event: Done | Began
        if whole:
            event = Done(Advance(ran), fills, self._marks(trial))
            after, append = self._after(row, trial, event, version=row.version + 1)
        else:
            id = self._new_id("op_")
            event = Began(id, ticks, ran, fills, self._marks(trial))
            row = replace(row, operation=Operation(id, ticks, ran, row.fills, len(fills)))
            after, append = self._after(row, trial, event, version=row.version)
        shown = fills[:FILLS] if whole else []
        answer = views.advanced(after, trial.tape, ran, shown, after.fills - len(fills))
        answer = await self._stands(after, answer, append, command.once)
        if not whole and not isinstance(answer, Refusal):
            self._mill.began(row.agent_id, self.key)
        return answer

    async def _go_on(self, row: TrialRow) -> Any:
        """One more part of the operation; whether there is more of it."""
        operation = row.operation
        if operation is None or not running(row):
            return False
        trial = await self._working(row)
        if trial is None:
            return await self._give_up(row, operation)
        ran, fills, last = await self._run(row, trial, operation.ticks - operation.ran, PART)
        filled = operation.fills + len(fills)
        now = replace(operation, ran=operation.ran + ran, fills=filled, done=last)
        event = Ran(ran, fills, self._marks(trial), last)
        row = replace(row, operation=now)
        after, append = self._after(row, trial, event, version=row.version + last)
        told = (self._told(after, now),) if last else ()
        answer = await self._stands(after, not last, append, None, told)
        self._mill.moved(self.key)
        return answer

    async def _give_up(self, row: TrialRow, operation: Operation) -> Any:
        """Its tape is gone: the operation ends where it is."""
        now, operation = self.clock.now_ms(), replace(operation, done=True)
        after = replace(
            row,
            version=row.version + 1,
            events=row.events + 1,
            operation=operation,
            changed_at=now,
            due=self.later(row, now),
        )
        append = Append(session_log(self.key), row.events, msgspec.json.encode(Ran(0, last=True)), now)
        answer = await self.write(after, False, append=append, events=(self._told(after, operation),))
        self._mill.moved(self.key)
        return answer

    async def _run(self, row: TrialRow, trial: Trial, ticks: int, steps: int) -> tuple[int, list[Fill], bool]:
        """Run ticks in slices, until so many steps were taken: those that were run, what was filled, and whether it was
        all that there is to run."""
        ran, fills, room = 0, list[Fill](), MAX_FILLS - row.fills
        while (whole := ran >= ticks or trial.place.over is not None or len(fills) >= room) is False:
            if steps <= 0:
                break
            async with self._mill.turn(row.agent_id):
                more, spent, filled = advance_slice(
                    trial, ticks - ran, room - len(fills), self._cost, min(steps, STEPS)
                )
            ran, steps, fills = ran + more, steps - spent, fills + filled
        self._rehearsed.ticks += ran
        return ran, fills, whole

    async def _finalize(self, row: TrialRow, command: Finalize) -> Any:
        refused = core.judge(row, command.expected_version, ending=True)
        if refused is not None:
            return await self._refuse(command, {"type": "finalize"}, refused)
        ref, puts = await self._publish(row)
        answer = views.Finalized(self.key, row.version + 1, outcome_of(row.place), ref, address(ref))
        return await self._end(row, "finalized", ref, answer, puts, command.once)

    async def close(self, row: TrialRow) -> Any:
        """Its time is over: what was run of it is published."""
        ref, puts = await self._publish(row)
        return await self._end(row, "expired", ref, None, puts, None)

    async def _publish(self, row: TrialRow) -> tuple[str, tuple[Put, ...]]:
        """The ref of its artifact, and what stores it."""
        kept, result = core.fold(await read_events(self.store, self.key)), core.result(row)
        write, large = core.artifact, row.fills > MANY or row.size > LARGE
        content = await apart(write, kept, result) if large else write(kept, result)
        return await publish(self.store, content)

    async def _end(
        self, row: TrialRow, over: Over, ref: str, answer: Any, puts: Sequence[Put], once: Once | None
    ) -> Any:
        """Commit that it is over; so is an operation that is under way."""
        now, version = self.clock.now_ms(), row.version + 1
        append = Append(session_log(self.key), row.events, msgspec.json.encode(Closed(over)), now)
        after = replace(
            row, version=version, events=row.events + 1, over=over, ref=ref, due=None, changed_at=now
        )
        events = (self._told(after, row.operation if running(row) else None),)
        told = await self.write(after, answer, once=once, puts=puts, append=append, events=events)
        if not isinstance(told, Refusal):
            self._rehearsed.ended(over)
            self._mill.moved(self.key)
        return told

    def _told(self, row: TrialRow, ended: Operation | None) -> Told:
        return Told(agent_stream(row.agent_id), "trial", views.news(row, ended))

    def rejected(self, code: str) -> None:
        self._rehearsed.rejected[code] += 1

    def _after(
        self, row: TrialRow, trial: Trial, event: Done | Began | Ran, *, version: int
    ) -> tuple[TrialRow, Append]:
        """The document after an event that was worked out, and the event for its log."""
        now, place = self.clock.now_ms(), core.copied(trial.place)
        after = replace(
            row,
            version=version,
            events=row.events + 1,
            fills=row.fills + len(event.fills),
            place=place,
            pnl=pnl(place.account, trial.tape, place.tick - 1) if place.tick else 0,
            changed_at=now,
            due=self.later(row, now),
        )
        return after, Append(session_log(self.key), row.events, msgspec.json.encode(event), now)

    async def _stands(
        self,
        row: TrialRow,
        answer: Any,
        append: Append,
        once: Once | None,
        events: Sequence[Told] = (),
    ) -> Any:
        """Commit what was worked out. The working copy stays only if it was."""
        trial, self._trial = self._trial, None
        told = await self.write(row, answer, once=once, append=append, events=events)
        if not isinstance(told, Refusal):
            self._trial = trial
            self._rehearsed.accepted += once is not None
        return told

    async def _refuse(self, command: Do | Finalize, action: dict[str, Any], refusal: Refusal) -> Refusal:
        attempt = Rejected(refusal.code, refusal.message, command.expected_version, action, command.by)
        return await self.reject(attempt, refusal, command.once)

    def _marks(self, trial: Trial) -> list[core.Mark]:
        """Of the ticks that were run since the last commit those whose profit and loss is kept."""
        marks = core.marked(self._curve, trial.place.tick)
        del self._curve[:]
        return marks

    async def _working(self, row: TrialRow) -> Trial | None:
        """The working copy; None: there is no tape to run."""
        if self._trial is None:
            tape = await self._tape(row)
            if tape is None:
                return None
            self._curve = array("q")
            self._cost = 0 if row.plan is None else cost(row.plan)
            program = None
            if row.plan is not None:
                program = await self._mill.work(row.agent_id, ready(row.plan, tape, row.place.tick))
            self._trial = Trial(tape, row.plan, core.copied(row.place), self._curve, program)
        return self._trial

    async def _tape(self, row: TrialRow) -> Tape | None:
        if self._trial is not None:
            return self._trial.tape
        return None if await self._tapes.is_gone(row.entry) else await self._tapes.tape(row.entry)

    async def _fills(self, first: int, limit: int, most: int) -> list[Fill]:
        """Fills from a number on, of a trial that has `most`."""
        fills: list[Fill] = []
        n, count = -1, 0
        while len(fills) < limit and first + len(fills) < most:
            rows = await self.store.entries(session_log(self.key), n, ROWS)
            if not rows:
                break
            n = rows[-1].n
            for row in rows:
                filled = stored(Filled, row.data, "trial", self.key).fills
                fills += filled[max(0, first - count) :]
                count += len(filled)
        return fills[:limit]
