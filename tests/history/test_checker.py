"""The judge of histories: what fits passes, what was spoilt fails for its reason."""

from pathlib import Path
from random import Random

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.history.checker import REASONS, check
from tests.history.made import SPOILT, good
from tests.history.model import History, Ok, Reading, Refused, Seen, Send, read

pytestmark = pytest.mark.requirement("faults.history")
randoms = st.randoms(use_true_random=False)


@hypothesis.given(randoms)
def test_a_history_that_could_have_been_fits(chance: Random) -> None:
    assert check(good(chance)) == []


@pytest.mark.parametrize("name", SPOILT)
@hypothesis.given(chance=randoms)
def test_a_spoilt_history_is_refused_for_its_reason(name: str, chance: Random) -> None:
    spoil, reason = SPOILT[name]
    history = good(chance)
    hypothesis.assume(history.seen)
    hypothesis.assume(len({seen.position for seen in history.seen}) > 1)
    hypothesis.assume(spoil(history, chance))
    assert reason in {fault.reason for fault in check(history)}


def test_every_reason_has_a_history_that_shows_it() -> None:
    assert {reason for _, reason in SPOILT.values()} == set(REASONS)


def send(n: int, began: float, ended: float | None, answer: Ok | Refused | None, sig: str = "") -> Send:
    return Send("c", n, sig or f"s{n}", "ann", "bob", began, ended, answer)


def test_a_request_without_an_answer_may_have_been_written_or_not() -> None:
    lost = send(0, 0.0, None, None)
    assert check(History([lost])) == []
    assert check(History([lost], readings=[Reading("c", 5.0, 6.0, ())])) == []
    assert (
        check(History([lost], readings=[Reading("c", 5.0, 6.0, ()), Reading("c", 7.0, 8.0, ("s0",))])) == []
    )


def test_a_row_that_came_and_went_is_lost() -> None:
    readings = [Reading("c", 5.0, 6.0, ("s0",)), Reading("c", 7.0, 8.0, ())]
    assert [fault.reason for fault in check(History([send(0, 0.0, None, None)], readings=readings))] == [
        "lost"
    ]


@pytest.mark.parametrize(("code", "reasons"), [("in_doubt", []), ("unavailable", ["refused-but-written"])])
def test_a_refusal_that_leaves_the_outcome_open_may_have_written(code: str, reasons: list[str]) -> None:
    history = History([send(0, 0.0, 1.0, Refused(code))], readings=[Reading("c", 2.0, 3.0, ("s0",))])
    assert [fault.reason for fault in check(history)] == reasons


def test_two_conversations_that_two_readers_saw_in_two_orders_do_not_fit() -> None:
    sends = [Send(conv, 0, conv, "ann", "bob", 0.0) for conv in ("c", "d")]
    seen = [
        Seen(stream, "r", "e", position, conv, 0, conv, 9.0)
        for stream, convs in (("ann", "cd"), ("bob", "dc"))
        for position, conv in enumerate(convs, 1)
    ]
    [fault] = check(History(sends, seen))
    assert fault.reason == "order"
    assert "c/0" in fault.what
    assert "d/0" in fault.what


def test_an_order_that_only_three_readers_together_contradict_does_not_fit() -> None:
    sends = [Send(conv, 0, conv, "ann", "bob", 0.0) for conv in "abc"]
    seen = [
        Seen(stream, "r", "e", position, conv, 0, conv, 9.0)
        for stream, convs in (("1", "ab"), ("2", "bc"), ("3", "ca"))
        for position, conv in enumerate(convs, 1)
    ]
    assert [fault.reason for fault in check(History(sends, seen))] == ["order"]


def test_real_time_binds_conversations_that_share_a_stream() -> None:
    first = Send("c", 0, "c", "ann", "bob", 0.0, 1.0, Ok("x", 0))
    second = Send("d", 0, "d", "ann", "bob", 2.0, 3.0, Ok("y", 0))
    seen = [Seen("ann", "r", "e", 1, "d", 0, "d", 9.0), Seen("ann", "r", "e", 2, "c", 0, "c", 9.0)]
    assert [fault.reason for fault in check(History([first, second], seen))] == ["time"]


def test_a_history_is_kept_and_read_again(tmp_path: Path) -> None:
    history = good(Random(1))
    history.write(tmp_path / "history.json")
    assert read(tmp_path / "history.json") == history
