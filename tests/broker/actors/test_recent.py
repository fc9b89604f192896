"""States kept for a while: of ended actors only, each until a newer one of the same call takes its place."""

from collections import deque

from broker.actors.recent import KEEP_S, Recent
from broker.core.conversation import Conversation
from broker.wire.call import Phase
from broker.wire.ids import Pk, Sig


def state(conv: str) -> Conversation:
    return Conversation(
        conv=conv,
        caller=Pk("a" * 64),
        callee=Pk("b" * 64),
        code_from="ALFA",
        code_to="BRAV",
        wire=Pk("c" * 64),
        phase=Phase.RINGING,
        n=0,
        sig=Sig("0" * 128),
        chain=bytes(32),
        last_from=Pk("a" * 64),
        last_at=0,
        last_mono=0.0,
        spent=deque(),
    )


def test_what_left_at_rest_is_forgotten() -> None:
    recent, one = Recent(), state("1")
    recent.keep(one)
    assert recent.get("1") is one
    recent.forget(one)
    assert recent.get("1") is None
    recent.forget(one)


def test_what_ended_in_doubt_is_kept_for_a_while() -> None:
    recent = Recent()
    for i in range(130):
        each = state(str(i))
        recent.keep(each)
        recent.ended(each, float(i))
    assert len(recent) == KEEP_S
    assert recent.get("39") is None
    assert recent.get("40") is not None


def test_a_newer_state_of_the_same_call_is_not_forgotten_for_the_older_one() -> None:
    recent, old, new = Recent(), state("1"), state("1")
    recent.keep(old)
    recent.ended(old, 0.0)
    recent.keep(new)
    recent.forget(old)
    recent.ended(state("2"), KEEP_S)
    assert recent.get("1") is new
