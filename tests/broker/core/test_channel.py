"""The core of a channel: who may do what, as tables and against a model."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core import channel as core
from broker.core.channel import Change, Channel, ChannelRow, decide, fold, settle
from broker.core.machine import Now
from broker.wire.refusals import Refusal

NOW = Now(1_000, 1.0)
AGENTS = "abcd"


def opened(private: bool = False, **roles: str) -> Channel:
    """A channel owned by `a`, with others in other roles."""
    state = Channel()
    do(state, core.Create(ChannelRow("ch", "town", "a", 1, private)))
    for agent, role in roles.items():
        if private:
            do(state, core.Invite("a", agent))
        if role == "member":
            do(state, core.Join(agent))
    return state


def do(state: Channel, command: core.Command) -> Any:
    """Decide, and fold what may be; the answer."""
    change = decide(state, command, NOW)
    if isinstance(change, Refusal):
        return change.code
    fold(state, change, NOW)
    return change.answer


def roles(state: Channel) -> dict[str, str]:
    return {agent: row.role for agent, row in state.members.items()}


@pytest.mark.requirement("channel.roles")
@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize(
    ("command", "public_answers", "private_answers"),
    [
        (core.Join, {"s": "", "m": "", "a": ""}, {"s": "not_found", "i": "", "m": "", "a": ""}),
        (
            core.Leave,
            {"s": "not_a_party", "m": "", "a": "bad_request"},
            {"s": "not_found", "i": "", "m": "", "a": "bad_request"},
        ),
        (
            lambda who: core.Invite(who, "x"),
            {"s": "not_a_party", "m": "not_a_party", "a": "bad_request"},
            {"s": "not_found", "i": "not_a_party", "m": "not_a_party", "a": ""},
        ),
        (
            lambda who: core.Remove(who, "m"),
            {"s": "not_a_party", "m": "not_a_party", "a": ""},
            {"s": "not_found", "i": "not_a_party", "m": "not_a_party", "a": ""},
        ),
        (
            lambda who: core.Transfer(who, "m"),
            {"s": "not_a_party", "m": "not_a_party", "a": ""},
            {"s": "not_found", "i": "not_a_party", "m": "not_a_party", "a": ""},
        ),
        (
            lambda who: core.Send(who, "msg", "n", "hello"),
            {"s": "not_a_party", "m": "", "a": ""},
            {"s": "not_found", "i": "not_a_party", "m": "", "a": ""},
        ),
        (
            lambda who: core.Read(who, 0),
            {"s": "not_a_party", "m": "", "a": ""},
            {"s": "not_found", "i": "not_a_party", "m": "", "a": ""},
        ),
    ],
)
def test_who_may_do_what(
    command: Any, public_answers: dict[str, str], private_answers: dict[str, str], private: bool
) -> None:
    for who, expected in (private_answers if private else public_answers).items():
        state = opened(private, m="member", **({"i": "invited"} if private else {}))
        answer = do(state, command(who))
        assert answer == expected if expected else isinstance(answer, dict), (who, answer)


@pytest.mark.requirement("channel.roles")
def test_what_is_odd_is_refused() -> None:
    state = opened(True, m="member", i="invited")
    assert do(state, core.Create(ChannelRow("ch", "town", "a", 1))) == "already_exists"
    assert do(state, core.Invite("a", "m")) == "already_exists"
    assert do(state, core.Remove("a", "s")) == "not_found"
    assert do(state, core.Remove("a", "a")) == "bad_request"
    assert do(state, core.Transfer("a", "i")) == "not_found"
    assert do(state, core.Transfer("a", "a"))["role"] == "owner"
    before = state.row
    again = decide(state, core.Invite("a", "i"), NOW)
    assert isinstance(again, Change)
    assert (again.row, again.notices) == (None, ())
    assert state.row is before
    assert do(Channel(), core.Join("a")) == "not_found"


@pytest.mark.requirement("channel.roles")
def test_members_and_invitations_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "MAX_MEMBERS", 2)
    monkeypatch.setattr(core, "MAX_INVITED", 1)
    assert [do(opened(m="member"), core.Join(who)) for who in "m"] != ["quota_exceeded"]
    assert do(opened(m="member"), core.Join("x")) == "quota_exceeded"
    assert do(opened(True, i="invited"), core.Invite("a", "x")) == "quota_exceeded"


@given(
    private=st.booleans(),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["join", "leave", "invite", "remove", "transfer", "send"]),
            st.sampled_from(AGENTS),
            st.sampled_from(AGENTS),
        ),
        max_size=60,
    ),
)
@pytest.mark.requirement("channel.roles", "channel.seq")
def test_membership_follows_a_model_of_three_sets(private: bool, steps: list[tuple[str, str, str]]) -> None:
    """The model: the owner, the members (the owner among them), who is invited, and how many messages."""
    state = opened(private)
    owner, members, invited, sent = "a", {"a"}, set[str](), 0
    made = {
        "join": lambda who, _: core.Join(who),
        "leave": lambda who, _: core.Leave(who),
        "invite": core.Invite,
        "remove": core.Remove,
        "transfer": core.Transfer,
        "send": lambda who, _: core.Send(who, "msg", "n", "hello"),
    }
    for what, who, other in steps:
        allowed = isinstance(do(state, made[what](who, other)), dict)
        owns = who == owner
        match what:
            case "join":
                expected = who in members or not private or who in invited
                if expected:
                    members.add(who)
                    invited.discard(who)
            case "leave":
                expected = (who in members or who in invited) and not owns
                if expected:
                    members.discard(who)
                    invited.discard(who)
            case "invite":
                expected = owns and private and other not in members
                if expected:
                    invited.add(other)
            case "remove":
                expected = owns and other != owner and (other in members or other in invited)
                if expected:
                    members.discard(other)
                    invited.discard(other)
            case "transfer":
                expected = owns and other in members
                owner = other if expected else owner
            case _:
                # time stands still here, so that each has 30
                mine = sum(each.agent_id == who for each in state.spent) - allowed
                expected = who in members and mine < 30
                sent += expected
        assert allowed == expected, (what, who, other)
        assert {agent for agent, role in roles(state).items() if role != "invited"} == members
        assert {agent for agent, role in roles(state).items() if role == "invited"} == invited
        assert [agent for agent, role in roles(state).items() if role == "owner"] == [owner]
        assert state.row is not None
        assert (state.row.owner_id, state.row.members, state.row.invited) == (
            owner,
            len(members),
            len(invited),
        )
        assert state.head == sent


@pytest.mark.requirement("channel.seq")
def test_messages_are_numbered_and_dated_in_order() -> None:
    state = opened(m="member")
    for at in (5_000, 4_000, 6_000):
        change = decide(state, core.Send("m", "msg", "n", "x"), Now(at, 1.0))
        assert isinstance(change, Change)
        fold(state, change, NOW)
    assert (state.head, state.last_at) == (3, 6_000)
    change = decide(state, core.Send("m", "msg", "n", "x"), Now(1, 1.0))
    assert isinstance(change, Change)
    assert change.message is not None
    assert (change.message.seq, change.message.at) == (4, 6_000)


@pytest.mark.requirement("channel.unread")
def test_who_has_read_what_it_was_told_of_is_told_again_and_nobody_else() -> None:
    state = opened(m="member", n="member")
    for _ in range(2):
        do(state, core.Send("a", "msg", "n", "x"))
    change = settle(state, {}, ["m", "stranger"])
    assert change.told == (("m", 2),)
    fold(state, change, NOW)
    assert settle(state, {}, ["m"]).told == ()  # it has not read yet
    assert settle(state, {"m": 1}, []).members == ()  # not that far
    do(state, core.Send("a", "msg", "n", "x"))
    assert settle(state, {"m": 2}, []).told == (("m", 3),)  # read, but more has come
    read = settle(state, {"m": 3, "n": 3}, [])
    assert read.told == ()
    assert [(agent, row.unread) for agent, row in read.members if row] == [("m", 0)]
    assert settle(state, {"n": 1}, []).told == (("n", 3),)
