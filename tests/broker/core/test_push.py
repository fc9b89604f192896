"""The rules of a push: what follows from an answer, and when it is tried again."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from broker.core.push import (
    DELAYS_S,
    GIVE_UP_MS,
    LEAST,
    LONGEST_S,
    OLD_SECRET_MS,
    Failing,
    Outcome,
    PushRow,
    Secret,
    after,
    again,
    delay_ms,
    live_secrets,
    renewed,
    skipped,
)

NOW = 1_782_345_678_000
TAKEN, BROKEN = Outcome(204), Outcome(500)


def row(**members: object) -> PushRow:
    made = PushRow(
        push_id="ag_A",
        form="webhook",
        agent_id="ag_A",
        stream="agent:ag_A",
        url="https://a.example/",
        position=4,
        created_at=NOW,
        secrets=(Secret("s1"),),
    )
    return replace(made, **members)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_any_2xx_takes_the_event(status: int) -> None:
    moved = after(row(failing=Failing(NOW, 3, NOW)), 5, Outcome(status), NOW, 0.5)
    assert (moved.position, moved.failing, moved.delivered) == (5, None, 1)


@pytest.mark.parametrize("status", [100, 199, 300, 301, 302, 307, 400, 401, 404, 408, 429, 500, 503])
def test_anything_else_is_tried_again_from_the_same_place(status: int) -> None:
    failed = after(row(), 5, Outcome(status), NOW, 0.5)
    assert (failed.position, failed.failing, failed.disabled) == (4, Failing(NOW, 1, NOW + 5000), None)


@pytest.mark.parametrize("why", ["not_public", "no_answer"])
def test_what_gives_no_answer_is_tried_again(why: str) -> None:
    failed = after(row(), 5, Outcome(None, why), NOW, 0.5)  # type: ignore[arg-type]
    assert failed.failing is not None
    assert failed.last is not None
    assert (failed.last.status, failed.last.why) == (None, why)


@pytest.mark.requirement("webhook.given-up")
@pytest.mark.parametrize(
    ("outcome", "reason"), [(Outcome(410), "gone"), (Outcome(None, "no_secret"), "no_secret")]
)
def test_what_can_never_be_taken_disables_at_once(outcome: Outcome, reason: str) -> None:
    over = after(row(), 5, outcome, NOW, 0.5)
    assert over.disabled is not None
    assert (over.disabled.reason, over.position) == (reason, 4)


@pytest.mark.requirement("webhook.given-up")
def test_delays_grow_and_are_tried_for_24_hours_in_all() -> None:
    now, state, tries = NOW, row(), [NOW]
    while state.disabled is None:
        state = after(state, 5, BROKEN, now, 0.5)
        if state.failing is not None and state.disabled is None:
            now = state.failing.next_at
            tries.append(now)
    gaps = [b - a for a, b in pairwise(tries)]
    assert gaps[:8] == [each * 1000 for each in DELAYS_S]
    assert tries[-1] == NOW + GIVE_UP_MS  # the last try is made at the very end
    assert state.disabled.at == NOW + GIVE_UP_MS
    assert state.disabled.reason == "expired"
    assert 10 <= len(tries) <= 20


@pytest.mark.requirement("webhook.given-up")
def test_time_in_which_nothing_was_tried_does_not_end_a_push() -> None:
    now, state = NOW + 3 * GIVE_UP_MS, row(failing=Failing(NOW, 1, NOW + 5000))
    for _ in range(LEAST - 1):
        state = after(state, 5, BROKEN, now, 0.5)
        assert state.disabled is None
        assert state.failing is not None
        assert state.failing.next_at > now
        now = state.failing.next_at
    assert after(state, 5, BROKEN, now, 0.5).disabled is not None


def test_chance_moves_a_delay_by_a_tenth_each_way() -> None:
    assert (delay_ms(2, None, 0.0), delay_ms(2, None, 1.0)) == (108_000, 132_000)


@pytest.mark.requirement("webhook.retry-after")
def test_what_a_receiver_asks_for_is_kept_within_bounds() -> None:
    assert delay_ms(0, 60.0, 0.5) == 60_000
    assert delay_ms(0, 1.0, 0.5) == 5_000  # never sooner than by the schedule
    assert delay_ms(0, 1e9, 0.5) == LONGEST_S * 1000


@pytest.mark.requirement("webhook.rotation")
def test_a_rotation_keeps_one_old_secret_for_a_day() -> None:
    once = renewed(row(), "s2", NOW)
    twice = renewed(once, "s3", NOW + 1)
    assert [each.sealed for each in live_secrets(twice, NOW + 2)] == ["s3", "s2"]
    assert [each.sealed for each in live_secrets(once, NOW + OLD_SECRET_MS - 1)] == ["s2", "s1"]
    assert [each.sealed for each in live_secrets(once, NOW + OLD_SECRET_MS)] == ["s2"]
    assert once.turn == 2


@pytest.mark.requirement("webhook.tools")
def test_sending_again_enables_and_forgets_the_failure() -> None:
    over = after(row(), 5, Outcome(410), NOW, 0.5)
    assert again(over, None, "e").position == 4
    back = again(over, 1, "e")
    assert (back.position, back.disabled, back.failing, back.turn) == (1, None, None, 2)


def test_what_is_not_sent_is_passed() -> None:
    assert skipped(row(failing=Failing(NOW, 1, NOW)), 5).position == 5
