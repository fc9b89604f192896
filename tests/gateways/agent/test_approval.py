"""Asking before signing: for one deed, once, of those who can be asked."""

from typing import Any

import msgspec
import pytest

from broker.app import Caller
from gateways.agent.approval import KEY, Approvals, Deed
from gateways.agent.rails import Blocked
from gateways.mcp.revisions import BARE, LEGACY, MODERN
from gateways.mcp.sessions import Session
from gateways.mcp.surface import Ask, Needs

DEED = Deed("HIT", '{"px":"1.08"}', "b2" * 32, "BRAV", "c0" * 8, 4, ("QUOTE", '{"bid":"1.08"}'))


def asked(answers: dict[str, Any] | None = None, state: str | None = None, **kind: Any) -> Ask:
    given: dict[str, Any] = {
        "caller": Caller(),
        "revision": MODERN,
        "meta": {},
        "capabilities": {"elicitation": {}},
    }
    return Ask(**{**given, "answers": answers or {}, "state": state, **kind})


def question(approvals: Approvals, deed: Deed = DEED) -> Needs:
    needs = approvals.judge(asked(), deed)
    assert isinstance(needs, Needs)
    return needs


ACCEPT = {KEY: {"action": "accept", "content": {}}}


@pytest.mark.requirement("agent.ask-before")
def test_the_user_sees_the_whole_envelope_and_what_it_answers() -> None:
    asking = question(Approvals()).questions[KEY]
    assert asking.method == "elicitation/create"
    assert asking.params["message"].splitlines() == [
        f"Sign HIT to BRAV (key {'b2' * 8}…, call {'c0' * 8}, n = 4)?",
        'Body that will be signed: {"px":"1.08"}',
        'It answers their QUOTE, in their words: {"bid":"1.08"}',
    ]
    assert asking.params["requestedSchema"] == {"type": "object", "properties": {}, "required": []}


@pytest.mark.requirement("agent.ask-before", "agent.untrusted")
def test_no_body_can_pass_for_our_words() -> None:
    evil = Deed("HIT", '{"a":"\u202eb"}', "b2" * 32, "", "c0" * 8, 4, ("QUOTE", '{"x":"\u2028Sign: yes"}'))
    message = question(Approvals(), evil).questions[KEY].params["message"]
    assert len(message.splitlines()) == 3
    assert "\\u202e" in message
    assert "to a desk" in message


def test_a_call_is_asked_for_without_a_place() -> None:
    message = question(Approvals(), Deed("CALL", "{}", "b2" * 32, "BRAV")).questions[KEY].params["message"]
    assert message.splitlines()[0] == f"Sign CALL to BRAV (key {'b2' * 8}…)?"


@pytest.mark.requirement("agent.ask-before")
def test_an_accepted_deed_may_be_done_once() -> None:
    approvals = Approvals()
    state = question(approvals).state
    assert approvals.judge(asked(ACCEPT, state), DEED) is None
    again = approvals.judge(asked(ACCEPT, state), DEED)
    assert isinstance(again, Needs)
    assert again.state != state


@pytest.mark.requirement("agent.ask-before")
@pytest.mark.parametrize(
    "change", [{"n": 6}, {"body": '{"px":"9"}'}, {"pk": "c3" * 32}, {"call": "d0" * 8}, {"type": "ACCEPT"}]
)
def test_an_approval_is_for_no_other_deed(change: dict[str, Any]) -> None:
    approvals = Approvals()
    state = question(approvals).state
    other = msgspec.structs.replace(DEED, **change)
    assert isinstance(approvals.judge(asked(ACCEPT, state), other), Needs)


@pytest.mark.requirement("agent.ask-before")
@pytest.mark.parametrize("state", [None, "made up"])
def test_an_answer_to_no_question_approves_nothing(state: str | None) -> None:
    assert isinstance(Approvals().judge(asked(ACCEPT, state), DEED), Needs)


@pytest.mark.requirement("agent.ask-before", "agent.guard-rail")
@pytest.mark.parametrize(("action", "answer"), [("decline", "declined"), ("cancel", "dismissed")])
def test_who_declines_is_not_asked_again_for_this_request(action: str, answer: str) -> None:
    approvals = Approvals()
    state = question(approvals).state
    blocked = approvals.judge(asked({KEY: {"action": action}}, state), DEED)
    assert isinstance(blocked, Blocked)
    assert (blocked.rule, blocked.detail["answer"]) == ("ask_before", answer)


def test_a_question_without_its_answer_is_asked_again() -> None:
    approvals = Approvals()
    state = question(approvals).state
    assert isinstance(approvals.judge(asked({"other": {"action": "accept"}}, state), DEED), Needs)


@pytest.mark.requirement("agent.ask-before", "agent.guard-rail")
@pytest.mark.parametrize(
    "kind",
    [
        {"capabilities": {}},
        {"capabilities": {"elicitation": {"url": {}}}},
        {"revision": LEGACY[0]},
        {"revision": BARE, "session": Session("s", None, BARE, {}), "notify": lambda message: None},
    ],
    ids=["not declared", "urls alone", "no session", "a revision without questions"],
)
def test_who_cant_be_asked_is_refused(kind: dict[str, Any]) -> None:
    blocked = Approvals().judge(asked(**kind), DEED)
    assert isinstance(blocked, Blocked)
    assert (blocked.rule, blocked.detail["answer"]) == ("ask_before", "cannot_ask")


def test_questions_that_are_never_answered_are_forgotten() -> None:
    approvals = Approvals()
    first = question(approvals).state
    for n in range(100):
        question(approvals, msgspec.structs.replace(DEED, n=n + 10))
    assert len(approvals._open) == 64
    assert isinstance(approvals.judge(asked(ACCEPT, first), DEED), Needs)
