"""Receipts: what an agent or a channel heard lately, kept in bounds."""

import pytest

from broker.actors.receipts import KEPT, Receipts, Stopped
from broker.core.loops import Receipt, Trace
from broker.core.machine import Now

WALL = 1_782_345_678_000
NOW = Now(WALL, 0.0)


def judged(
    receipts: Receipts, name: str, sender: str, to: str, now: Now = NOW, replied: Receipt | None = None
) -> Trace | Stopped:
    trace = receipts.judge(
        name, sender=sender, to=to, place="p", now=now, replied=replied, agents=(sender, to)
    )
    if isinstance(trace, Trace):
        receipts.heard(to, sender, trace, now, place="p", agents=(sender, to))
    return trace


@pytest.mark.requirement("loop.at-once")
def test_what_was_heard_is_answered() -> None:
    receipts = Receipts(50)
    assert judged(receipts, "1", "a", "b") == Trace("1", WALL)
    assert judged(receipts, "2", "b", "a") == Trace("1", WALL, 1, "a")
    assert judged(receipts, "3", "a", "b", Now(WALL, 31.0)) == Trace("3", WALL)


@pytest.mark.requirement("loop.told")
def test_a_loop_is_stopped_and_told_of_once() -> None:
    receipts = Receipts(4)
    answers = [judged(receipts, str(n), *("ab" if n % 2 == 0 else "ba")) for n in range(5)]
    assert [each.tell if isinstance(each, Stopped) else None for each in answers] == [
        None,
        None,
        None,
        True,
        False,
    ]


@pytest.mark.requirement("loop.stopped")
def test_what_was_not_written_has_not_passed() -> None:
    receipts = Receipts(4)
    replied = Receipt("b", 0.0, Trace("0", WALL))
    for n in range(9):
        trace = receipts.judge(
            str(n), sender="a", to="b", place="p", now=NOW, replied=replied, agents=("a", "b")
        )
        assert isinstance(trace, Trace)


def test_a_reply_needs_no_receipt() -> None:
    replied = Receipt("b", 0.0, Trace("0", WALL, 7))
    assert judged(Receipts(50), "1", "a", "b", replied=replied) == Trace("0", WALL, 8, "b")


def test_who_posts_in_a_channel_has_heard_what_others_said_there() -> None:
    receipts = Receipts(50)

    def post(name: str, sender: str) -> Trace | Stopped:
        trace = receipts.judge(name, sender=sender, to="ch", place="ch", now=NOW)
        assert isinstance(trace, Trace)
        receipts.heard("ch", sender, trace, NOW)
        return trace

    assert post("1", "a") == Trace("1", WALL)
    assert post("2", "a") == Trace("2", WALL)  # one does not answer oneself
    assert post("3", "b") == Trace("1", WALL, 1, "a")
    assert post("4", "a") == Trace("1", WALL, 2, "b")


@pytest.mark.requirement("loop.stopped")
@pytest.mark.parametrize(("members", "passed"), [(2, 49), (3, 49), (6, 199)])
def test_few_that_answer_each_other_in_a_channel_are_stopped_many_that_talk_there_are_not(
    members: int, passed: int
) -> None:
    receipts = Receipts(50)
    for n in range(300):
        sender = f"a{n % members}"
        trace = receipts.judge(str(n), sender=sender, to="ch", place="ch", now=NOW)
        if isinstance(trace, Stopped):
            break
        receipts.heard("ch", sender, trace, NOW)
    assert n == passed


def test_memory_is_bounded() -> None:
    receipts = Receipts(50, agents=3, chains=3)
    for n in range(100):
        judged(receipts, str(n), "a", f"b{n % 10}")
    for n in range(2 * KEPT):
        judged(receipts, f"x{n}", "a", "b")
    assert len(receipts) == 3
    assert len(receipts._chains) == 3
    assert len(receipts._heard["b"]) == KEPT


def test_what_nobody_can_answer_by_its_time_any_more_is_forgotten() -> None:
    receipts = Receipts(50)
    trace = Trace("root", 0)
    for second in range(100):
        receipts.heard("b", "a", trace, Now(0, second))
        receipts.heard(f"c{second}", "a", trace, Now(0, second))
    assert len(receipts._heard["b"]) == 31
    assert len(receipts) == 1 + 31


@pytest.mark.requirement("loop.relay")
def test_two_hundred_that_came_at_once_are_passed_on_at_once() -> None:
    receipts = Receipts(50)
    for n in range(200):
        assert isinstance(judged(receipts, f"news {n}", "source", "relay"), Trace)
    for n in range(200):
        trace = judged(receipts, f"passed on {n}", "relay", "reader")
        assert isinstance(trace, Trace)
        assert (trace.root, trace.hops) == (f"news {n}", 1)


@pytest.mark.requirement("loop.stopped")
def test_who_tries_again_and_again_is_not_quiet_and_may_talk_to_others() -> None:
    receipts = Receipts(4)
    passed = [isinstance(judged(receipts, str(n), *("ab" if n % 2 == 0 else "ba")), Trace) for n in range(4)]
    assert passed == [True, True, True, False]
    for second in range(1, 61):
        again = judged(receipts, f"again {second}", "b", "a", Now(WALL, second))
        assert isinstance(again, Stopped)
        assert again.refusal.detail["hops"] == 3
        if second > 2:  # the last receipt is over, for all others
            trace = receipts.judge(
                "x", sender="b", to="d", place="bd", now=Now(WALL, second), agents=("b", "d")
            )
            assert isinstance(trace, Trace)
            assert trace.hops == 0
    assert isinstance(judged(receipts, "after a rest", "b", "a", Now(WALL, 60 + 31)), Trace)


@pytest.mark.requirement("loop.stopped")
def test_nor_is_it_in_a_channel_where_what_others_begin_may_be_answered() -> None:
    receipts = Receipts(4)

    def post(name: str, sender: str, second: float) -> Trace | Stopped:
        now = Now(WALL, second)
        answer = receipts.judge(name, sender=sender, to="ch", place="ch", now=now)
        if isinstance(answer, Trace):
            receipts.heard("ch", sender, answer, now)
        return answer

    passed = [isinstance(post(str(n), "ab"[n % 2], n), Trace) for n in range(4)]
    assert passed == [True, True, True, False]
    for second in range(4, 60):
        assert isinstance(post("again", "b", second), Stopped)
    assert isinstance(post("a topic", "c", 60), Trace)
    assert isinstance(post("its answer", "b", 61), Trace)
