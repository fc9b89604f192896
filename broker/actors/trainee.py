"""The actor of one agent's trials: it opens them, one after the other, within what the agent may have."""

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from broker.actors.agentdocs import present
from broker.actors.once import Once
from broker.actors.played import Rehearsed
from broker.actors.player import NO_AGENT, quota
from broker.actors.record import Index, RecordActor
from broker.actors.tapes import Tapes
from broker.config import Trials
from broker.core.agent import DAY_MS, allowance
from broker.core.arena import session_log
from broker.core.trials import views
from broker.core.trials.script import Entry
from broker.core.trials.session import Opened, TraineeRow, TrialRow, index_of
from broker.store.port import Append, Put
from broker.wire.refusals import Refusal, refuse

TOLD: Final = 10
"""Of the trials that are in the way, so many: nothing else lists them for who has lost their ids."""


class Open(msgspec.Struct, frozen=True):
    """Open a trial. Answer: Opening, or why not."""

    session_id: str
    entry: Entry
    price: dict[str, Any]
    once: Once | None = None


class TraineeActor(RecordActor[TraineeRow]):
    """How many trials an agent has opened; the key is the agent's id."""

    kind = "trainee"
    type = TraineeRow

    def __init__(
        self, key: str, *, settings: Trials, tapes: Tapes, rehearsed: Rehearsed, **parts: Any
    ) -> None:
        super().__init__(key, **parts)
        self._rehearsed = rehearsed
        self._settings = settings
        self._tapes = tapes

    def index_of(self, row: TraineeRow) -> Index:
        return ()

    async def do(self, command: Any) -> Any:
        if not isinstance(command, Open):
            raise TypeError(type(command))
        now = self.clock.now_ms()
        agent = await present(self.store, self.key, now)
        if agent is None:
            return NO_AGENT
        row, today = self.row or TraineeRow(self.key), now // DAY_MS
        if row.day != today:
            row = replace(row, day=today, opened=0)
        refused = await self._judge_limits(row, claimed=allowance(agent).publishes)
        if refused is not None:
            await self.confirm()
            return refused
        return await self._open(command, row, now)

    async def _judge_limits(self, row: TraineeRow, *, claimed: bool) -> Refusal | None:
        most, a_day = quota(self._settings, claimed=claimed)
        whom = "an agent" if claimed else "an agent that no owner has claimed"
        if row.opened >= a_day:
            said = f"{whom} opens {a_day} trials a day (UTC)"
            return refuse("LIMIT_EXCEEDED", said, reason="day", limit=a_day)
        there = await self.store.find("trial", "open", self.key, limit=most)
        if len(there) >= most:
            said = f"{whom} has {most} trials open at once: finalize one of session_ids"
            ids = [each.id for each in there[:TOLD]]
            return refuse("LIMIT_EXCEEDED", said, reason="open", limit=most, session_ids=ids)
        return None

    async def _open(self, command: Open, row: TraineeRow, now: int) -> Any:
        entry = command.entry
        tape = await self._tapes.tape(entry)
        due = now + round(self._settings.idle_h * 3_600_000)
        trial = TrialRow(command.session_id, self.key, entry, now, now, due)
        put = Put("trial", trial.session_id, 0, msgspec.json.encode(trial), index_of(trial))
        event = msgspec.json.encode(Opened(self.key, entry))
        self._nudge(due)
        answer = views.Opening(trial.session_id, 0, views.observe(trial, tape), entry, command.price)
        told = await self.write(
            replace(row, opened=row.opened + 1),
            answer,
            once=command.once,
            puts=(put,),
            append=Append(session_log(trial.session_id), 0, event, now),
        )
        if told is answer:
            self._rehearsed.began()
        return told
