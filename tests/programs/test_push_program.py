"""Any program of events, answers, crashes and changes by hand: what a receiver has taken, and what is tried next."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from broker.core.push import (
    GIVE_UP_MS,
    LEAST,
    LONGEST_DELAY_S,
    LONGEST_S,
    OLD_SECRET_MS,
    Outcome,
    PushRow,
    Secret,
    after,
    again,
    live_secrets,
    renewed,
)

NOW = 1_782_345_678_000
ANSWERS = st.one_of(
    st.builds(Outcome, st.sampled_from((200, 204, 302, 400, 429, 500, 503)), st.just("status"), st.none()),
    st.builds(Outcome, st.sampled_from((429, 503)), st.just("status"), st.floats(0, 1e6)),
    st.builds(Outcome, st.none(), st.sampled_from(("not_public", "no_answer")), st.none()),
)


class Pushes(RuleBasedStateMachine):
    """A push, the stream that it follows, and a receiver that keeps what it has taken."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.newest = 0
        self.taken: list[int] = []
        self.row = self.kept = PushRow(
            push_id="ag_A",
            form="webhook",
            agent_id="ag_A",
            stream="s",
            url="u",
            position=0,
            created_at=NOW,
            secrets=(Secret("0"),),
        )
        self.least = 0
        """From where events must have been taken without a gap: sending from further on is the agent's wish."""
        self.tries: list[int] = []
        """When the event that fails was tried."""

    @rule(count=st.integers(1, 3))
    def events(self, count: int) -> None:
        self.newest += count

    @rule(seconds=st.integers(1, 200_000))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds * 1000

    @precondition(lambda self: self.row.disabled is None and self.row.position < self.newest)
    @rule(outcome=ANSWERS, chance=st.floats(0, 1))
    def attempt(self, outcome: Outcome, chance: float) -> None:
        """The next one, when it is due."""
        if self.row.failing is not None:
            assert self.row.failing.next_at - self.now <= max(LONGEST_DELAY_S, LONGEST_S) * 1000
            self.now = max(self.now, self.row.failing.next_at)
        position = self.row.position + 1
        self.row = after(self.row, position, outcome, self.now, chance)
        if outcome.taken:
            self.taken.append(position)
            self.tries = []
            assert self.row.position == position
            return
        self.tries.append(self.now)
        assert self.row.position == position - 1
        if self.row.disabled is not None:
            assert len(self.tries) > LEAST
            assert self.now - self.tries[0] >= GIVE_UP_MS
        else:
            assert self.row.failing is not None
            assert self.row.failing.next_at > self.now
        self.kept = self.row  # a failure is written at once

    @rule()
    def written(self) -> None:
        self.kept = self.row

    @rule()
    def crash(self) -> None:
        """What was not written is sent again."""
        if self.row.position != self.kept.position:
            self.tries = []
        self.row = self.kept

    @rule(place=st.integers(0, 50))
    def send_again(self, place: int) -> None:
        position = min(place, self.newest)
        if position > self.row.position:
            self.least = max(self.least, position)
        self.row = self.kept = again(self.row, position, "e")
        self.tries = []

    @rule(name=st.integers(1, 9))
    def rotate(self, name: int) -> None:
        signed = [each.sealed for each in live_secrets(self.row, self.now)]
        self.row = self.kept = renewed(self.row, str(name), self.now)
        live = [each.sealed for each in live_secrets(self.row, self.now)]
        assert live == [str(name), signed[0]]
        assert [each.sealed for each in live_secrets(self.row, self.now + OLD_SECRET_MS)] == [str(name)]

    @precondition(lambda self: self.row.disabled is None and self.row.position < self.newest)
    @rule()
    def gone(self) -> None:
        over = after(self.row, self.row.position + 1, Outcome(410), self.now, 0.5)
        assert over.disabled is not None
        assert replace(over, disabled=None, last=self.row.last) == self.row

    @invariant()
    def nothing_before_the_place_is_missing(self) -> None:
        assert set(range(self.least + 1, self.row.position + 1)) <= set(self.taken)

    @invariant()
    def there_is_a_secret_and_two_at_most(self) -> None:
        assert 1 <= len(live_secrets(self.row, self.now)) <= 2


Pushes.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestPushes = pytest.mark.requirement("webhook.order", "webhook.given-up", "webhook.rotation")(Pushes.TestCase)
