"""Many at once: what tasks are answered must be explained by the log, read in its order, while each of them waited.

A refusal is right if it was right at some moment between question and answer; what was accepted stands in the log, and
was written in between. The log is the witness.
"""

from typing import Any, Literal

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from broker.actors.calls import log_name, stream_name
from broker.store.port import Unit
from broker.wire.chain import verify_transcript
from broker.wire.refusals import Refusal
from tests.programs.call_model import Call, Moment, Request
from tests.programs.flaky import FlakyMemory, Way
from tests.support.broker import Bench, Line, Party, code, open_bench, tuned

Sent = Literal["new", "same", "last"]


class Move(msgspec.Struct, frozen=True):
    """One envelope of one task: by whom, of which type, on which head, and how its commit goes."""

    by: Literal["caller", "called", "stranger"]
    type: str | None
    on: Literal["newest", "mine", "beyond"]
    """The newest head that anybody knows, the one that this task last heard of, or one n beyond."""
    repeat: bool
    """Sends the last request of this task again instead."""
    pause: int
    way: Way | None


class Told(msgspec.Struct, frozen=True):
    """A request, its answer, and how many rows the log had before and after."""

    request: Request
    answer: Any
    before: int
    after: int


class Race:
    """Several tasks on one call."""

    def __init__(self, bench: Bench, line: Line, stranger: Party) -> None:
        self.bench = bench
        self.line = line
        self.stranger = stranger
        self.newest = (line.n, line.sig)
        self.history: list[Told] = []
        self._serial = 0

    @property
    def rows(self) -> int:
        store = self.bench.store
        assert isinstance(store, FlakyMemory)
        return len(store._logs[log_name(self.line.conv)])

    async def run(self, moves: list[Move]) -> None:
        mine, last = self.newest, None
        for move in moves:
            for _ in range(move.pause):
                await trio.lowlevel.checkpoint()
            request = last if move.repeat and last is not None else self._request(move, mine)
            last, before = request, self.rows
            answer = await self._send(request, move.way)
            self.history.append(Told(request, answer, before, self.rows))
            mine = self._learn(request, answer) or mine
            self.newest = max(self.newest, mine)

    def _request(self, move: Move, mine: tuple[int, str]) -> Request:
        n, sig = mine if move.on == "mine" else self.newest
        n += 2 if move.on == "beyond" else 1
        caller, called = self.line.caller, self.line.called
        sender = {"caller": caller, "called": called, "stranger": self.stranger}[move.by]
        type = move.type or ("PICKUP" if n == 1 else "CHAT")
        self._serial += 1
        to = caller if sender is called else called
        body = {"x": self._serial}
        return Request(sender.envelope(self.line.conv, n, type, to.pk, self.bench.ts, sig, body), sender)

    async def _send(self, request: Request, way: Way | None) -> Any:
        store, sig = self.bench.store, request.sig.encode()
        assert isinstance(store, FlakyMemory)

        def writes(unit: Unit) -> bool:
            return unit.append is not None and sig in unit.append.data

        if way is not None:
            store.fail(way, writes)
        return await self.bench.call("send_env", **request.params)

    def _learn(self, request: Request, answer: Any) -> tuple[int, str] | None:
        """The head that an answer tells of."""
        if not isinstance(answer, Refusal):
            return (answer["n"], request.sig)
        head = answer.detail.get("head")
        return (head["n"], head["sig"]) if head is not None else None


def explain(told: Told, call: Call, now: Moment) -> None:
    """Assert that the log explains an answer."""
    request, answer = told.request, told.answer
    assert told.before <= told.after
    if not isinstance(answer, Refusal):
        row = call.rows[answer["n"]]
        assert (row.sig, row.chain, row.at) == (request.sig, answer["chain"], answer["accepted_at"])
        assert answer["n"] < told.after
        assert "replayed" in answer or answer["n"] >= told.before, "written between question and answer"
        return
    if answer.code == "in_doubt":
        return
    moments = [
        length
        for length in range(told.before, told.after + 1)
        if call.judge_env(request, now, length)
        == ("accepted" if answer.code == "unavailable" else answer.code)
    ]
    assert moments, (answer, told.before, told.after)
    if answer.code == "conflict":
        assert any(answer.detail["head"] == call.head(length) for length in moments)
    if answer.code == "conv_ended":
        assert answer.detail["reason"] == call.reason


moves = st.builds(
    Move,
    st.sampled_from(["caller", "called", "caller", "called", "stranger"]),
    st.sampled_from([*[None] * 8, "CHAT", "END", "PICKUP"]),
    st.sampled_from(["newest", "newest", "newest", "mine", "beyond"]),
    st.sampled_from([False, False, False, True]),
    st.integers(0, 6),
    st.sampled_from([*[None] * 8, "unavailable", "doubt", "applied"]),
)
races = st.lists(st.lists(moves, min_size=2, max_size=10), min_size=2, max_size=5)


@pytest.mark.requirement("order.explained-by-the-log", "call.two-at-once")
@given(races)
async def test_what_tasks_on_one_call_are_answered_is_explained_by_its_log(race: list[list[Move]]) -> None:
    settings = tuned(limits={"envelopes": 10_000})
    async with open_bench(settings, FlakyMemory()) as bench:
        caller, called = await bench.open("ALFA"), await bench.open("BRAV")
        line = await bench.dial(caller, called)
        tasks = Race(bench, line, await bench.open("CHAR"))
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                for script in race:
                    nursery.start_soon(tasks.run, script)
        rows = (await bench.call("read_conv", conv=line.conv, limit=500))["rows"]
        now = Moment(bench.clock.now_ms(), trio.current_time())
        call = Call(line.conv, caller, called, 10_000)
        for row in rows:
            assert (
                call.take(row["envelope"], row["sig"], Moment(row["accepted_at"], 0.0)).chain == row["chain"]
            )
        for told in tasks.history:
            explain(told, call, now)
        verdict = verify_transcript([msgspec.json.encode(row) for row in rows])
        assert verdict.ok, verdict.broken
        for party in (caller, called):
            events = await bench.store.events(stream_name(party.pk), 0, 1000)
            told_of = [msgspec.json.decode(event.data)["sig"] for event in events]
            assert told_of == [row["sig"] for row in rows]


async def test_the_witness_is_not_satisfied_by_anything() -> None:
    """A wrong answer is found: one for each way in which the log can contradict it."""
    async with open_bench() as bench:
        line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
        call = Call(line.conv, line.caller, line.called, 10_000)
        for row in (await bench.call("read_conv", conv=line.conv))["rows"]:
            call.take(row["envelope"], row["sig"], Moment(row["accepted_at"], 0.0))
        now = Moment(bench.clock.now_ms(), 0.0)
        request = Request(line.next("CHAT"), line.caller)
        answer = await bench.call("send_env", **request.params)
        assert code(answer) == "accepted"
        with pytest.raises((AssertionError, IndexError)):
            explain(Told(request, answer, 2, 3), call, now)
        call.take(request.envelope, request.sig, Moment(answer["accepted_at"], 0.0))
        explain(Told(request, answer, 2, 3), call, now)
        for wrong in (
            Told(request, answer, 3, 3),
            Told(request, Refusal("out_of_turn", ""), 2, 3),
            Told(request, Refusal("conflict", "", {"head": call.head()}), 2, 2),
        ):
            with pytest.raises(AssertionError):
                explain(wrong, call, now)
