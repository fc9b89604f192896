"""The loop guard: what is an answer, and when a chain ends."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import pytest

from broker.core.loops import LIMIT, Chain, Receipt, Trace, follow
from broker.core.machine import Now
from broker.wire.refusals import Refusal

WALL = 1_782_345_678_000


def at(seconds: float) -> Now:
    return Now(WALL + round(seconds * 1000), seconds)


def receipt(sender: str, seconds: float = 0, hops: int = 0, via: str | None = None) -> Receipt:
    return Receipt(sender, seconds, Trace("root", WALL, hops, via))


def traced(seconds: float, *heard: Receipt, to: str = "b", replied: Receipt | None = None) -> Trace:
    return follow("new", "a", to, at(seconds), heard, replied)


@pytest.mark.requirement("loop.hops")
def test_a_message_out_of_nothing_begins_a_chain() -> None:
    assert traced(0) == Trace("new", WALL)
    assert traced(40, receipt("b", 5)) == Trace("new", WALL + 40_000)


@pytest.mark.requirement("loop.hops")
def test_what_names_a_message_is_one_hop_further_within_the_hour_of_its_chain() -> None:
    replied = receipt("b", hops=6)
    assert traced(600, replied=replied) == Trace("root", WALL, 7, "b")
    assert traced(3600, replied=replied).hops == 0
    assert traced(3599.999, replied=replied).hops == 7


@pytest.mark.requirement("loop.at-once")
@pytest.mark.parametrize(
    ("seconds", "to", "hops"),
    [(0, "z", 4), (2, "z", 4), (2.01, "z", 0), (3, "b", 4), (30, "b", 4), (30.1, "b", 0), (3, "c", 4)],
)
def test_what_follows_a_receipt_at_once_or_goes_back_soon_is_an_answer(
    seconds: float, to: str, hops: int
) -> None:
    trace = traced(seconds, receipt("b", 0, hops=3, via="c"), to=to)
    assert trace.hops == hops
    assert trace.root == ("root" if hops else "new")
    assert trace.via == ("b" if seconds <= 30 else None)


@pytest.mark.requirement("loop.relay")
def test_topics_that_wait_are_answered_first_and_once_each() -> None:
    one, two = Receipt("x", 0, Trace("one", WALL)), Receipt("x", 0.1, Trace("two", WALL))
    noise = Receipt("b", 0.2, Trace("zero", WALL, 9))
    roots = [traced(0.3, one, two, noise) for _ in range(3)]
    assert [(each.root, each.hops) for each in roots] == [("one", 1), ("two", 1), ("zero", 10)]


def test_of_several_that_are_no_topics_the_last_one_is_answered() -> None:
    assert traced(1, receipt("c", 0, hops=5), receipt("b", 0.5, hops=2)).hops == 3
    assert traced(9, receipt("b", 0, hops=5), receipt("q", 1, hops=2)).hops == 0  # that was not the last


@pytest.mark.requirement("loop.stopped")
def test_a_chain_ends_before_its_fiftieth_message() -> None:
    fresh = Chain()
    assert fresh.judge(Trace("root", WALL, 48), "ab", "ab") is None
    refused = fresh.judge(Trace("root", WALL, 49), "ab", "ab")
    assert refused is not None
    assert (refused.code, refused.detail) == (
        "quota_exceeded",
        {"reason": "loop", "hops": 49, "limit": LIMIT},
    )


def goes(chain: Chain, hops: int, place: str, agents: Sequence[str]) -> bool:
    """Whether one more message passes; where it may, it does."""
    if chain.judge(Trace("root", WALL, hops), place, agents) is not None:
        return False
    chain.passed(place, agents)
    return True


@pytest.mark.requirement("loop.stopped")
def test_what_is_judged_has_not_passed_yet() -> None:
    chain = Chain()
    assert all(chain.judge(Trace("root", WALL, 1), "ab", "ab") is None for _ in range(60))


@pytest.mark.requirement("loop.stopped")
def test_fifty_messages_of_one_chain_do_not_pass_in_one_place_however_they_branch() -> None:
    chain = Chain()
    for peer in range(9):  # a round that many take part in
        assert goes(chain, 0, f"a{peer}", ("a", str(peer)))
    passed = [goes(chain, 1, "a0", ("a", "0")) for _ in range(60)]
    assert passed.count(True) == 48
    assert passed.index(False) == 48
    assert goes(chain, 1, "a1", ("a", "1"))  # the others go on


@pytest.mark.requirement("loop.stopped")
def test_few_agents_have_no_more_than_one_pair_has() -> None:
    chain = Chain()
    pairs = ["ab", "bc", "ca"]
    passed = sum(goes(chain, 1, pairs[n % 3], pairs[n % 3]) for n in range(90))
    assert passed == 49


def test_one_who_asks_many_and_hears_of_all_is_no_loop() -> None:
    chain = Chain()
    for hops in (1, 2):
        for worker in range(60):
            assert goes(chain, hops, f"h{worker}", ("h", f"w{worker}"))


def test_a_message_that_begins_a_chain_is_never_a_loop() -> None:
    assert Chain().judge(Trace("root", WALL), "ab", "ab", limit=1) is None


@pytest.mark.requirement("loop.told")
def test_a_place_is_told_once() -> None:
    chain = Chain()
    assert [chain.tell("ab"), chain.tell("ab"), chain.tell("cd")] == [True, False, True]


Post = Callable[[str, str], bool]


def network(delay: float) -> tuple[Post, list[tuple[str, str]]]:
    """post(sender, to): whether it passes; each message arrives `delay` seconds before the next is sent."""
    heard: dict[str, list[Receipt]] = defaultdict(list)
    chains: dict[str, Chain] = defaultdict(Chain)
    passed: list[tuple[str, str]] = []

    def post(sender: str, to: str) -> bool:
        now = at(len(passed) * delay)
        trace = follow(str(len(passed)), sender, to, now, heard[sender], None)
        place = "".join(sorted((sender, to)))
        refused = chains[trace.root].judge(trace, place, (sender, to))
        if not isinstance(refused, Refusal):
            chains[trace.root].passed(place, (sender, to))
            heard[to].append(Receipt(sender, now.mono, trace))
            passed.append((sender, to))
        return refused is None

    return post, passed


@pytest.mark.requirement("loop.stopped")
@pytest.mark.parametrize("delay", [0, 0.01, 1.9, 3, 29])
@pytest.mark.parametrize("ring", ["ab", "abc"])
def test_bots_that_answer_and_name_nothing_are_stopped(ring: str, delay: float) -> None:
    post, passed = network(delay)
    for n in range(200):
        if not post(ring[n % len(ring)], ring[(n + 1) % len(ring)]):
            break
    assert len(passed) == 49


def relay(acknowledged: bool) -> Iterator[tuple[str, str]]:
    for _ in range(200):
        yield from [("x", "a"), ("a", "b"), ("b", "c")]
        if acknowledged:
            yield from [("c", "b"), ("b", "a")]


@pytest.mark.requirement("loop.relay")
@pytest.mark.parametrize("delay", [0, 0.01, 1, 3])
@pytest.mark.parametrize("acknowledged", [False, True])
def test_a_relay_of_new_topics_is_not_stopped(delay: float, acknowledged: bool) -> None:
    post, _ = network(delay)
    for sender, to in relay(acknowledged):
        assert post(sender, to)
