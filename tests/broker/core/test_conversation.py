"""The conversation's core as tables and products: place, turn, window, due times."""

import string
from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.conversation import (
    Accepted,
    Conversation,
    Hangup,
    Later,
    Rules,
    Send,
    _place,
    clock_skew,
    decide_call,
    decide_due,
    decide_send,
    fold,
    is_usual,
)
from broker.core.machine import Now
from broker.wire.call import Phase
from broker.wire.envelope import Envelope, bootstrap
from broker.wire.ids import Pk, Sig
from broker.wire.limits import wait_ms
from broker.wire.refusals import Refusal

A, B, C = Pk("a" * 64), Pk("b" * 64), Pk("c" * 64)
CONV = "a1b2c3d4e5f6a7b8"
RULES = Rules(envelopes=30, window_s=10.0, skew_s=300, ring_s=30.0, idle_s=3600.0)
NOW = Now(wall_ms=1_782_345_678_000, mono=1000.0)
TS = NOW.wall_ms // 1000


def sig(n: int) -> Sig:
    return Sig(f"{n:0128x}")


def envelope(n: int, type: str, sender: Pk, **changes: Any) -> Envelope:
    members: dict[str, Any] = {
        "conv": CONV,
        "n": n,
        "type": type,
        "sender": sender,
        "to": B if sender == A else A,
        "ts": TS,
        "prev_sig": sig(n - 1) if n else bootstrap(CONV),
        "body": {},
        "canonical": b"{}",
    }
    return Envelope(**{**members, **changes})


def state(phase: Phase, n: int, last: Pk, **changes: Any) -> Conversation:
    members: dict[str, Any] = {
        "conv": CONV,
        "caller": A,
        "callee": B,
        "code_from": "ALFA",
        "code_to": "BRAV",
        "wire": C,
        "phase": phase,
        "n": n,
        "sig": sig(n),
        "chain": bytes(32),
        "last_from": last,
        "last_at": NOW.wall_ms,
        "last_mono": NOW.mono,
        "spent": deque(),
        "end": {"reason": "bye"} if phase is Phase.ENDED else None,
    }
    return Conversation(**{**members, **changes})


def verdict(state: Conversation, envelope: Envelope, now: Now = NOW) -> str:
    decided = decide_send(state, Send(envelope, sig(envelope.n)), now, RULES)
    return decided.code if isinstance(decided, Refusal) else "accepted"


OPEN = {"phase": Phase.OPEN, "n": 3, "last": B}


@pytest.mark.requirement("order.place")
@pytest.mark.parametrize(
    ("where", "what", "expect"),
    [
        (OPEN, envelope(4, "HIT", A), "accepted"),
        (OPEN, envelope(4, "END", A), "accepted"),
        (OPEN, envelope(4, "END", B), "accepted"),
        (OPEN, envelope(4, "HIT", B), "out_of_turn"),
        (OPEN, envelope(3, "HIT", B), "conflict"),
        (OPEN, envelope(5, "HIT", B), "conflict"),
        (OPEN, envelope(4, "CALL", A), "bad_envelope"),
        (OPEN, envelope(4, "PICKUP", A), "bad_envelope"),
        (OPEN, envelope(4, "HIT", A, to=C), "bad_envelope"),
        (OPEN, envelope(4, "HIT", A, prev_sig=sig(2)), "bad_prev_sig"),
        (OPEN, envelope(4, "HIT", A, ts=TS + 301), "clock_skew"),
        ({"phase": Phase.RINGING, "n": 0, "last": A}, envelope(1, "PICKUP", B), "accepted"),
        ({"phase": Phase.RINGING, "n": 0, "last": A}, envelope(1, "END", A), "accepted"),
        ({"phase": Phase.RINGING, "n": 0, "last": A}, envelope(1, "RFQ", B), "bad_envelope"),
        ({"phase": Phase.RINGING, "n": 0, "last": A}, envelope(1, "PICKUP", A), "out_of_turn"),
        ({"phase": Phase.ENDED, "n": 3, "last": B}, envelope(4, "HIT", A), "conv_ended"),
        ({"phase": Phase.ENDED, "n": 3, "last": B}, envelope(9, "HIT", A), "conv_ended"),
    ],
)
def test_where_an_envelope_stands_decides(where: dict[str, Any], what: Envelope, expect: str) -> None:
    assert verdict(state(**where), what) == expect


@pytest.mark.requirement("order.place")
def test_the_first_failure_of_the_order_answers() -> None:
    here = state(**OPEN, spent=deque([NOW.mono] * 30))
    all_wrong = {"prev_sig": sig(1), "ts": TS + 999, "to": C}
    assert verdict(state(Phase.ENDED, 3, B), envelope(9, "CALL", B, **all_wrong)) == "conv_ended"
    assert verdict(here, envelope(9, "CALL", B, **all_wrong)) == "conflict"
    assert verdict(here, envelope(4, "CALL", B, **all_wrong)) == "out_of_turn"
    assert verdict(here, envelope(4, "CALL", A, **all_wrong)) == "bad_envelope"
    assert verdict(here, envelope(4, "HIT", A, prev_sig=sig(1), ts=TS + 999)) == "bad_prev_sig"
    assert verdict(here, envelope(4, "HIT", A, ts=TS + 999)) == "clock_skew"
    assert verdict(here, envelope(4, "HIT", A)) == "rate_limited"
    assert verdict(here, envelope(4, "END", A)) == "accepted"


@given(
    phase=st.sampled_from([Phase.RINGING, Phase.OPEN, Phase.ENDED]),
    n=st.integers(0, 6),
    type=st.sampled_from(["CALL", "PICKUP", "END", "RFQ"])
    | st.text(string.ascii_uppercase, min_size=1, max_size=9),
    sender=st.sampled_from([A, B]),
)
def test_every_state_and_input_is_a_legal_next_state_or_a_refusal_that_changes_nothing(
    phase: Phase, n: int, type: str, sender: Pk
) -> None:
    here = state(phase, 0 if phase is Phase.RINGING else 3, A if phase is Phase.RINGING else B)
    before = here.head(), here.phase
    decided = decide_send(here, Send(envelope(n, type, sender), sig(n)), NOW, RULES)
    assert (here.head(), here.phase) == before
    if isinstance(decided, Accepted):
        assert n == here.n + 1
        assert phase is not Phase.ENDED
        fold(here, decided, RULES.envelopes)
        assert here.n == n
        assert here.phase is (Phase.ENDED if type == "END" else Phase.OPEN)


@pytest.mark.requirement("limits.thirty-in-ten-seconds")
@given(st.lists(st.floats(0.0, 12.0), min_size=1, max_size=150))
def test_no_window_of_ten_seconds_ever_holds_more_than_thirty(gaps: list[float]) -> None:
    here, mono, accepted = state(**OPEN), 1000.0, []
    for gap in gaps:
        mono += gap / 20
        n = here.n + 1
        now = Now(NOW.wall_ms, mono)
        decided = decide_send(here, Send(envelope(n, "CHAT", B if n % 2 else A), sig(n)), now, RULES)
        if isinstance(decided, Refusal):
            wait = decided.detail["retry_after_ms"]
            assert 1 <= wait <= 10_000
            assert wait_ms(here.spent, mono + wait / 1000, RULES.envelopes, RULES.window_s) == 0, (
                "waiting that long is enough"
            )
            continue
        fold(here, decided, RULES.envelopes)
        accepted.append(mono)
    for i, at in enumerate(accepted):
        assert sum(1 for other in accepted[i:] if other < at + 10.0 - 1e-6) <= 30


@pytest.mark.requirement("limits.accepted-at-never-decreases")
def test_accepted_at_never_decreases_when_the_wall_is_set_back() -> None:
    here = state(**OPEN, last_at=NOW.wall_ms + 5000)
    decided = decide_send(here, Send(envelope(4, "HIT", A), sig(4)), NOW, RULES)
    assert isinstance(decided, Accepted)
    assert decided.at == NOW.wall_ms + 5000


@pytest.mark.requirement("call.no-answer", "call.idle")
def test_due_means_no_answer_while_ringing_idle_later_and_nothing_after_end() -> None:
    late = Now(NOW.wall_ms, NOW.mono + 30.0)
    assert decide_due(state(Phase.RINGING, 0, A), late, RULES, ready=0.0) == Hangup("no_answer")
    assert isinstance(decide_due(state(**OPEN), late, RULES, ready=0.0), Later)
    hour = Now(NOW.wall_ms, NOW.mono + 3600.0)
    assert decide_due(state(**OPEN), hour, RULES, ready=0.0) == Hangup("idle")
    assert decide_due(state(Phase.ENDED, 3, B), hour, RULES, ready=0.0) is None


@pytest.mark.requirement("call.restart-ends-nothing")
def test_a_due_time_counts_from_when_the_wire_was_ready() -> None:
    now = Now(NOW.wall_ms, NOW.mono + 50.0)
    verdict = decide_due(state(Phase.RINGING, 0, A), now, RULES, ready=NOW.mono + 40.0)
    assert verdict == Later(NOW.wall_ms + 20_000)


@pytest.mark.requirement("order.clock")
def test_skew_is_told_with_a_hint_for_milliseconds() -> None:
    assert clock_skew(TS + 300, NOW, RULES) is None
    refused = clock_skew(TS * 1000, NOW, RULES)
    assert refused is not None
    assert "milliseconds" in refused.detail["hint"]
    plain = clock_skew(TS - 600, NOW, RULES)
    assert plain is not None
    assert (plain.detail["skew"], "hint" in plain.detail) == (-600, False)


@pytest.mark.requirement("envelope.first-prev-sig")
def test_a_call_names_its_own_bootstrap() -> None:
    assert isinstance(decide_call(envelope(0, "CALL", A), sig(0), NOW, RULES), Accepted)
    refused = decide_call(envelope(0, "CALL", A, prev_sig="0" * 64), sig(0), NOW, RULES)
    assert isinstance(refused, Refusal)
    assert refused.code == "bad_prev_sig"


def test_the_wires_end_is_addressed_to_the_party_that_did_not_write_last() -> None:
    assert state(**OPEN).other() == A
    assert state(Phase.RINGING, 0, A).other() == B


@given(
    st.sampled_from(Phase),
    st.integers(0, 4),
    st.integers(0, 5),
    st.sampled_from(["CALL", "PICKUP", "END", "QUOTE"]),
    st.sampled_from([A, B, C]),
    st.sampled_from([A, B, C]),
    st.integers(0, 4),
)
def test_what_is_taken_at_one_glance_is_what_all_the_steps_take(
    phase: Phase, head: int, n: int, type: str, sender: Pk, to: Pk, prev: int
) -> None:
    sent = envelope(n, type, sender, to=to, prev_sig=sig(prev))
    call = state(phase, head, A)
    judged = decide_send(call, Send(sent, sig(99)), NOW, RULES)
    if is_usual(call, sent):
        call.phase = Phase.OPEN
        assert isinstance(judged, Accepted)
        assert _place(call, sent) is None
    elif phase is Phase.OPEN and isinstance(judged, Accepted):
        assert type == "END"
