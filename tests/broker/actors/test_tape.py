"""The operators' tape: each envelope once, the newest kept, the others counted, and nothing while nobody watches."""

import pytest
import trio

from broker.actors.reader import Ended
from broker.actors.tape import COALESCE_S, ROWS, WATCHERS, Tape, TapeWatch
from broker.app import Caller
from broker.store.port import Event
from broker.wire.refusals import Refusal, refuse
from tests.support.broker import Bench

OPERATOR = Caller(operator=True)
TEXT = b'{"conv":"%016x","n":%d,"sig":"s","envelope":{"from":"a","to":"b","type":"CHAT","body":{}}}'


def events(n: int) -> list[Event]:
    """An envelope's events as a commit tells them: both parties' streams, and an agent's."""
    text = TEXT % (7, n)
    return [
        Event(stream, n, "env", stream == "pk:a", text, 1000 + n) for stream in ("pk:a", "pk:b", "agent:x")
    ]


def watch(tape: Tape) -> TapeWatch:
    made = tape.watch()
    assert isinstance(made, TapeWatch)
    return made


@pytest.mark.requirement("console.tape")
async def test_each_accepted_envelope_stands_on_the_tape_once_the_wires_own_too(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    watching = await bench.broker.tape(OPERATOR)
    assert isinstance(watching, TapeWatch)
    with watching:
        line = await bench.connect(alfa, brav)
        await line.send("RFQ", {"q": 1})
        glance = await watching.take()
        assert [(each.n, each.type, each.sender, each.to) for each in glance.rows] == [
            (0, "CALL", alfa.pk, brav.pk),
            (1, "PICKUP", brav.pk, alfa.pk),
            (2, "RFQ", alfa.pk, brav.pk),
        ]
        assert {each.conv for each in glance.rows} == {line.conv}
        assert all(each.at >= bench.clock.now_ms() - 1000 for each in glance.rows)
        await line.send("RFQ", by=alfa)  # out of turn: refused, and not on the tape
        await bench.call("end_call", OPERATOR, conv=line.conv)
        assert [(each.type, each.sender) for each in (await watching.take()).rows] == [
            ("END", bench.broker.pk)
        ]


@pytest.mark.requirement("console.tape")
async def test_a_watch_keeps_the_newest_counts_all_and_answers_apart(
    autojump_clock: trio.testing.MockClock,
) -> None:
    tape = Tape()
    with watch(tape) as watching:
        for n in range(500):
            tape.committed(events(n))
        glance = await watching.take()
        assert (glance.count, len(glance.rows), glance.rows[-1].n) == (500, ROWS, 499)
        began = trio.current_time()
        tape.committed([*events(500), *events(501)])
        glance = await watching.take()
        assert [each.n for each in glance.rows] == [500, 501]
        assert trio.current_time() - began == pytest.approx(COALESCE_S)
        with trio.move_on_after(5) as scope:
            await watching.take()
        assert scope.cancelled_caught
        tape.committed(events(502))
        assert (await watching.take()).count == 1


@pytest.mark.requirement("console.tape-free")
def test_nobody_watches_nothing_is_read() -> None:
    tape = Tape()
    watching = watch(tape)
    watching.close()
    watching.close()
    assert not tape.watches
    with watch(tape):
        tape.committed([Event("pk:a", 1, "message", False, b"no row", 1)])
    assert not tape.watches


@pytest.mark.requirement("console.tape")
async def test_it_is_for_operators_and_ends_with_the_broker(bench: Bench) -> None:
    refused = await bench.broker.tape(Caller())
    assert isinstance(refused, Refusal)
    assert refused.code == "insufficient_scope"
    watching = await bench.broker.tape(OPERATOR)
    assert isinstance(watching, TapeWatch)
    bench.broker.end_streams(refuse("unavailable", "the broker stops"))
    with pytest.raises(Ended) as ended:
        await watching.take()
    assert ended.value.refusal.code == "unavailable"


def test_a_few_operators_watch_at_once_and_no_more() -> None:
    tape = Tape()
    watches = [watch(tape) for _ in range(WATCHERS)]
    refused = tape.watch()
    assert isinstance(refused, Refusal)
    assert refused.code == "overloaded"
    watches[0].close()
    watch(tape)
