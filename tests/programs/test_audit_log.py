"""Programs of notes, crashes, restarts and damages: the log is what the model says, and each damage is found."""

import copy
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from broker.actors.actor import Crashed
from broker.store.memory import MemoryStore
from tests.broker.actors.test_auditor import DyingHead, Office, kept_in, open_office, put_back, verdict_of
from tests.support.audits import Kept, event, linked

Step = tuple[str, int]
steps = st.lists(
    st.tuples(st.sampled_from(["note", "note", "drain", "crash", "restart", "keep"]), st.integers(1, 3)),
    max_size=14,
)
damages = st.tuples(
    st.sampled_from(["change", "remove", "relink", "swap", "cut", "older", "unseal", "nothing"]),
    st.integers(0, 40),
    st.integers(0, 40),
)


class Program:
    """A log as it must be: the kinds of its rows; what somebody kept of it on the way."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.keeper = DyingHead()
        self.rows: list[str] = []
        self.waiting: list[str] = []
        self.kept: list[Kept] = []
        self.count = 0

    async def play(self, plan: list[Step]) -> None:
        """Each restart is an office of its own on the same store."""
        at = 0
        while at < len(plan):
            async with open_office(self.store, self.keeper) as office:
                while at < len(plan):
                    at += 1
                    if not await self._step(office, *plan[at - 1]):
                        break

    async def _step(self, office: Office, do: str, many: int) -> bool:
        match do:
            case "note":
                for _ in range(many):
                    self.count += 1
                    self.waiting.append(f"kind{self.count}")
                    await office.note(self.waiting[-1])
            case "drain":
                await office.drain()
                self._chained()
            case "crash":
                self.keeper.dies = True
                try:
                    await office.drain()
                except Crashed:
                    # It dies where it would write the head: after a commit, or with a head that was behind before.
                    self._chained() if len(kept_in(self.store, self.keeper).rows) > len(self.rows) else None
                self.keeper.dies = False
                return False
            case "restart":
                return False
            case "keep":
                self.kept.append(copy.deepcopy(kept_in(self.store, self.keeper)))
        return True

    def _chained(self) -> None:
        self.rows += self.waiting
        self.waiting = []


def damaged(kept: Kept, program: Program, what: str, one: int, two: int) -> bool:
    """Do it; whether there was something to do it to."""
    count = len(kept.rows)
    if not count or what == "nothing":
        return False
    n, other = 1 + one % count, 1 + two % count
    match what:
        case "change":
            kept.rows[n] = kept.rows[n].replace(b'"operator"', b'"nobody"')
        case "remove":
            del kept.rows[n]
        case "relink":
            linked(kept, n, [event(each, actor="nobody") for each in range(n, count + 1)])
        case "swap":
            kept.rows[n], kept.rows[other] = kept.rows[other], kept.rows[n]
            return n != other
        case "cut":
            kept.rows = {each: text for each, text in kept.rows.items() if each < n}
        case "older":
            if not program.kept:
                return False
            older = program.kept[one % len(program.kept)]
            kept.rows, kept.head = dict(older.rows), older.head
            return len(older.rows) < count
        case "unseal":
            kept.head, kept.beside = None, None
    return True


@pytest.mark.requirement("audit.order", "audit.crash", "audit.heads")
@given(plan=steps, damage=damages, after=steps)
def test_any_program_leaves_the_log_that_it_says_and_any_damage_is_found(
    plan: list[Step], damage: tuple[str, int, int], after: list[Step]
) -> None:
    async def run() -> None:
        program = Program()
        await program.play([*plan, ("drain", 1)])
        kept = kept_in(program.store, program.keeper)
        assert [kind_of(text) for text in kept.rows.values()] == program.rows
        verdict = verdict_of(program.store, program.keeper)
        assert verdict.ok, verdict
        assert not verdict.remarks
        changed = damaged(kept, program, *damage)
        await put_back(kept, program.store, program.keeper)
        assert verdict_of(program.store, program.keeper).ok is not changed
        await program.play(
            [*after, ("note", 1), ("drain", 1)]
        )  # whatever the broker does then, it stays found
        assert verdict_of(program.store, program.keeper).ok is not changed

    trio.run(run, clock=MockClock(autojump_threshold=0))


def kind_of(text: bytes) -> Any:
    return text.split(b'"kind":"')[1].split(b'"')[0].decode()
