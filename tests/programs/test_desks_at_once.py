"""Many at once at desks: the units of the store, read in the order of their commits, must explain every answer.

Statements: a refusal was right at some moment while the task waited; what was accepted is in one unit. Calls: after no
unit does a key hold more places than its limit, and whoever is evicted is older than all that stay.
"""

from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from broker.actors.calls import ConvRow
from broker.core.desk import CodeRow, DeskRow
from broker.store.port import Put, Unit
from broker.wire.canonical import encode
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.programs.desk_model import RECOVERY, Desk, Limits, Model
from tests.programs.flaky import FlakyMemory
from tests.support.broker import Bench, Line, Party, code, open_bench, tuned

LIMITS = Limits(conversations=3, rings=64, rings_known=0)
KEYS = [SigningKey.from_seed(f"{i + 1:064x}") for i in range(RECOVERY + 1)]
NUMBER: dict[str, int] = {key.pk: number for number, key in enumerate(KEYS)}
CODES = ("ALFA", "BRAV", "CHAR")


class Recording(FlakyMemory):
    """Keeps the units in the order of their commits."""

    def __init__(self) -> None:
        super().__init__()
        self.units: list[Unit] = []

    def _apply(self, unit: Unit) -> Any:
        self.units.append(unit)
        return super()._apply(unit)


class Statement(msgspec.Struct, frozen=True):
    """A statement of one task; `to` is who the desk moves to."""

    do: str
    key: int
    code: str
    to: int
    pause: int
    copies: int


class Told(msgspec.Struct, frozen=True):
    """A statement, its answer, and how many units there were before and after."""

    statement: Statement
    nonce: str
    answer: Any
    before: int
    after: int


def model_of(units: list[Unit]) -> Model:
    """Who holds what after these units."""
    model = Model(LIMITS)
    desks: dict[str, DeskRow | None] = {}
    for put in (put for unit in units for put in unit.puts):
        if put.kind == "desk":
            desks[put.id] = None if put.doc is None else msgspec.json.decode(put.doc, type=DeskRow)
        elif put.kind == "code" and put.doc is not None:
            row = msgspec.json.decode(put.doc, type=CodeRow)
            model.codes[put.id] = (NUMBER[row.pk], row.closed_at)
    for pk, desk in desks.items():
        if desk is not None:
            moving = (
                (desk.moving.effective_at, 0, NUMBER[desk.moving.new_pk]) if desk.moving is not None else None
            )
            model.desks[NUMBER[pk]] = Desk(desk.code, desk.used_at, desk.recovery_pk is not None, moving)
    return model


def judge(model: Model, statement: Statement, now: int) -> str:
    match statement.do:
        case "open_desk":
            return model.open_desk(statement.key, statement.code, True, now)
        case "move_desk":
            return model.move_desk(statement.key, statement.code, statement.to, now)
        case "close_desk":
            return model.close_desk(statement.key, statement.code, now)
    return model.cancel_move(statement.key, statement.code, now)


def explain(told: Told, units: list[Unit], now: int) -> None:
    """Assert that the units explain an answer."""
    written = [
        place
        for place, unit in enumerate(units)
        if unit.remember is not None and unit.remember.key == told.nonce
    ]
    assert len(written) <= 1, "done once"
    if not isinstance(told.answer, Refusal) and (written or told.answer.get("replayed")):
        (place,) = written
        assert place < told.after
        assert judge(model_of(units[:place]), told.statement, now) == "accepted"
        return
    expect = told.answer.code if isinstance(told.answer, Refusal) else "row"
    # A copy of a statement may be refused before the other one is done.
    last = min([told.after, *written])
    assert any(
        judge(model_of(units[:length]), told.statement, now) == expect
        for length in range(told.before, last + 1)
    ), (told, expect)


statements = st.builds(
    Statement,
    st.sampled_from(["open_desk", "open_desk", "move_desk", "move_desk", "close_desk", "cancel_move"]),
    st.sampled_from([0, 1, 2, 3, RECOVERY]),
    st.sampled_from(CODES),
    st.integers(0, 3),
    st.integers(0, 6),
    st.sampled_from([1, 1, 1, 2]),
)
scripts = st.lists(st.lists(statements, min_size=1, max_size=5), min_size=2, max_size=5)


class Race:
    """Several tasks that make statements."""

    def __init__(self, bench: Bench, store: Recording) -> None:
        self.bench = bench
        self.store = store
        self.history: list[Told] = []
        self._nonces = 0

    async def run(self, script: list[Statement]) -> None:
        for statement in script:
            for _ in range(statement.pause):
                await trio.lowlevel.checkpoint()
            self._nonces += 1
            nonce = f"{self._nonces:032x}"
            async with trio.open_nursery() as nursery:
                for _ in range(statement.copies):
                    nursery.start_soon(self._ask, statement, nonce)

    async def _ask(self, statement: Statement, nonce: str) -> None:
        members: dict[str, Any] = {"code": statement.code}
        if statement.do == "move_desk":
            members["new_pk"] = KEYS[statement.to].pk
        if statement.do == "open_desk":
            members["recovery_pk"] = KEYS[RECOVERY].pk
        party = Party("ZULU", KEYS[statement.key])
        params = party.statement(statement.do, self.bench.broker.pk, self.bench.ts, nonce, **members)
        if statement.do == "move_desk":
            params["new_sig"] = KEYS[statement.to].sign(encode(params["statement"]))
        before = len(self.store.units)
        answer = await self.bench.call(statement.do, **params)
        self.history.append(Told(statement, nonce, answer, before, len(self.store.units)))


@pytest.mark.requirement("desk.explained-by-the-log", "statements.replay")
@given(scripts)
async def test_what_statements_are_answered_is_explained_by_the_units(race: list[list[Statement]]) -> None:
    store = Recording()
    async with open_bench(store=store) as bench:
        tasks = Race(bench, store)
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                for script in race:
                    nursery.start_soon(tasks.run, script)
        for told in tasks.history:
            explain(told, store.units, bench.clock.now_ms())
        for length in range(len(store.units) + 1):
            one_code_one_key(model_of(store.units[:length]))


def one_code_one_key(model: Model) -> None:
    held = [desk.code for desk in model.desks.values()]
    assert len(set(held)) == len(held)
    for key, desk in model.desks.items():
        assert model.codes[desk.code] == (key, None)


class Talk(msgspec.Struct, frozen=True):
    """A call of one task: between whom, whether it is picked up, and whether it is ended."""

    caller: int
    callee: int
    answer: bool
    end: bool
    pause: int


talks = st.builds(
    Talk,
    st.integers(0, 2),
    st.integers(0, 2),
    st.sampled_from([True, True, False]),
    st.booleans(),
    st.integers(0, 5),
)


@pytest.mark.requirement("limits.never-more-than-eight", "limits.no-deadlock")
@given(st.lists(st.lists(talks, min_size=1, max_size=5), min_size=2, max_size=6))
async def test_calls_dialled_across_at_once_neither_deadlock_nor_exceed_the_limit(
    race: list[list[Talk]],
) -> None:
    store = Recording()
    async with open_bench(tuned(limits={"conversations": LIMITS.conversations}), store) as bench:
        parties = [await bench.open(name) for name in CODES]

        async def run(script: list[Talk]) -> None:
            for talk in script:
                await speak(bench, parties, talk)

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                for script in race:
                    nursery.start_soon(run, script)
        judge_places(store.units, [party.pk for party in parties])


async def speak(bench: Bench, parties: list[Party], talk: Talk) -> None:
    """Dial, pick up and end; whatever is refused on the way is not this test's matter."""
    caller, callee = parties[talk.caller], parties[talk.callee]
    if caller is callee:
        return
    params = bench.calling(caller, callee)
    if code(await bench.call("send_call", **params)) != "accepted":
        return
    line = Line(bench, params["envelope"]["conv"], caller, callee, params["sig"])
    for _ in range(talk.pause):
        await trio.lowlevel.checkpoint()
    if talk.answer:
        await line.send("PICKUP")
    if talk.end:
        await line.send("END")


def judge_places(units: list[Unit], pks: list[str]) -> None:
    """After each unit: places within the limit. At the end: no one older than an evicted call is still there."""
    opened: dict[str, list[str]] = {pk: [] for pk in pks}
    ended: set[str] = set()
    evicted: list[tuple[str, str]] = []
    for put in (put for unit in units for put in unit.puts if put.kind == "conv"):
        row = _row(put)
        if row.phase == "ended":
            ended.add(row.conv)
            if row.end is not None and row.end.get("reason") == "evicted":
                evicted.append((row.end["by"], row.conv))
        else:
            pk = row.caller if row.answered_at is None else row.callee
            opened[pk].append(row.conv)
        for convs in opened.values():
            assert len([conv for conv in convs if conv not in ended]) <= LIMITS.conversations
    for by, conv in evicted:
        convs = opened[by]
        assert set(convs[: convs.index(conv)]) <= ended


def _row(put: Put) -> ConvRow:
    assert put.doc is not None
    return msgspec.json.decode(put.doc, type=ConvRow)
