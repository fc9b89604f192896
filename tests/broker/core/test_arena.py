"""A session's core: what an action leads to, what its events make, and what is published of them."""

import json
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from broker.core import arena as core
from broker.core.arena import AccountRow, Acted, Closed, Ended, Live, Opened
from broker.core.chance import Secret, commit_of
from broker.core.games import hilo
from broker.core.games.game import MAX_ACTIONS, Step
from broker.wire.canonical import encode
from broker.wire.refusals import Refusal

SECRET = Secret("11" * 32, "22" * 32)
AGENT = "ag_01JZABCDEFGHJKMNPQRSTVWXYZ"


def opened(balance: int = 100, opening: int = 100, **config: Any) -> Opened:
    return core.open_session(
        hilo,
        hilo.Config(**config),
        "simulation",
        secret=SECRET,
        agent_id=AGENT,
        number=3,
        client_seed="mine",
        balance=balance,
        opening=opening,
    )


def begun(**params: Any) -> Live:
    return core.replay(hilo, [opened(**params)])


def act(
    live: Live, action: dict[str, Any], expected: int | None = None, points: int = 100
) -> Acted | Refusal:
    hidden = core.deal_again(hilo, live.opened, live.config, SECRET.seed)
    return core.act(
        hilo, live, hidden, SECRET, live.version if expected is None else expected, action, points
    )


def acted(live: Live, action: dict[str, Any], points: int = 100) -> Acted:
    event = act(live, action, points=points)
    assert isinstance(event, Acted), event
    return event


def refused(live: Live, action: dict[str, Any], expected: int | None = None, points: int = 100) -> Refusal:
    answer = act(live, action, expected, points)
    assert isinstance(answer, Refusal), answer
    return answer


CALL = {"type": "call", "stake": 5, "guess": "higher"}
STOP = {"type": "stop"}


def test_a_session_opens_with_all_that_it_is_made_of_but_the_secret() -> None:
    event = opened(points=100)
    assert event.commit == commit_of(SECRET, AGENT, 3)
    assert event.entries == (("mint", -100), ("player", 100))
    text = encode(json.loads(msgspec.json.encode(event)))
    assert SECRET.seed.encode() not in text
    assert SECRET.salt.encode() not in text


def test_an_account_that_was_there_gets_nothing_at_the_opening() -> None:
    assert opened(balance=40, opening=0).entries == ()


@pytest.mark.requirement("arena.version")
def test_each_accepted_action_raises_the_version_by_one() -> None:
    live = begun()
    for version in (1, 2, 3):
        live = core.fold(hilo, live, acted(live, CALL))
        assert live.version == version


@pytest.mark.requirement("arena.conflict")
@pytest.mark.parametrize("expected", [0, 2, 9])
def test_an_action_on_another_version_is_a_conflict_that_names_the_present_one(expected: int) -> None:
    live = core.fold(hilo, begun(), acted(begun(), CALL))
    answer = refused(live, CALL, expected)
    assert (answer.code, answer.retryable, answer.detail["version"]) == ("CONFLICT", True, 1)


@pytest.mark.requirement("arena.illegal")
@pytest.mark.parametrize(
    "action",
    [
        {},
        {"type": "fold"},
        {"type": "call"},
        {**CALL, "stake": 0},
        {**CALL, "stake": 1.5},
        {**CALL, "stake": "5"},
        {**CALL, "stake": True},
        {**CALL, "guess": "HIGHER"},
        {**CALL, "more": 1},
        {**STOP, "more": 1},
        {"type": ["stop"]},
    ],
)
def test_what_may_not_be_done_is_refused_with_what_may(action: dict[str, Any]) -> None:
    live = begun()
    answer = refused(live, action)
    assert answer.code == "ILLEGAL_ACTION"
    assert not answer.retryable
    assert answer.detail["legal_actions"] == core.legal_actions(hilo, live, 100)
    assert answer.detail["legal_actions"][-1] == STOP


@pytest.mark.requirement("arena.points-short")
def test_a_stake_beyond_the_account_is_refused_with_both_numbers() -> None:
    answer = refused(begun(), {**CALL, "stake": 101})
    assert (answer.code, answer.detail["balance"], answer.detail["needed"]) == (
        "INSUFFICIENT_POINTS",
        100,
        101,
    )


@pytest.mark.requirement("arena.stop")
def test_a_player_may_stop_and_is_shown_the_secret() -> None:
    live = begun()
    event = acted(live, STOP)
    assert event.ended == Ended("stopped", SECRET.seed, SECRET.salt)
    assert event.entries == ()
    after = core.fold(hilo, live, event)
    assert core.legal_actions(hilo, after, 100) == []


@pytest.mark.requirement("arena.session-over")
@pytest.mark.parametrize("expected", [0, 1])
def test_after_the_end_nothing_is_done_whatever_the_version(expected: int) -> None:
    live = core.fold(hilo, begun(), acted(begun(), STOP))
    answer = refused(live, CALL, expected)
    assert (answer.code, answer.retryable) == ("SESSION_OVER", False)


@pytest.mark.requirement("arena.reveal-never")
def test_who_wants_no_reveal_gets_none() -> None:
    event = acted(begun(reveal="never"), STOP)
    assert event.ended == Ended("stopped")


@pytest.mark.requirement("arena.most-actions")
def test_a_session_has_so_many_actions_at_most() -> None:
    live = replace(begun(), version=MAX_ACTIONS - 2)
    assert acted(live, CALL).ended is None
    last = acted(replace(live, version=MAX_ACTIONS - 1), CALL)
    assert last.ended is not None
    assert last.ended.over == "actions"


@pytest.mark.requirement("arena.balanced")
def test_what_the_player_wins_or_loses_is_the_houses() -> None:
    live = begun()
    changes = set()
    for guess in ("higher", "lower"):
        event = acted(live, {**CALL, "guess": guess})
        assert sum(points for _, points in event.entries) == 0
        change = dict(event.entries)["player"]
        assert event.balance == 100 + change
        changes.add(change)
    assert min(changes) == -5


@pytest.mark.requirement("arena.balanced")
def test_a_loss_is_never_more_than_the_account() -> None:
    step = Step(hilo.Facts("2C"), -1_000)
    loser: Any = SimpleNamespace(Action=dict[str, Any], apply=lambda *_: step)
    event = core.act(loser, begun(), None, SECRET, 0, {"type": "x"}, 30)
    assert isinstance(event, Acted)
    assert event.balance == 0
    assert event.entries == (("house", 30), ("player", -30))


@pytest.mark.requirement("arena.balanced")
@pytest.mark.parametrize(
    "entries", [[("player", 1)], [("house", -1), ("player", 2)], [("house", 11), ("player", -11)]]
)
def test_an_account_takes_no_entries_that_are_not_balanced_or_that_it_has_not(entries: Any) -> None:
    with pytest.raises(ValueError, match="sum to 0"):
        core.posted(AccountRow(10, 0, -10), entries)


def test_an_account_keeps_its_share_of_the_house() -> None:
    after = core.posted(AccountRow(10, 0, -10), [("house", 4), ("player", -4)])
    assert after == AccountRow(6, 4, -10)
    assert core.posted(after, [("player", -6), ("house", 6)]) == AccountRow(0, 10, -10)


@pytest.mark.requirement("arena.replay")
def test_the_events_alone_make_the_state() -> None:
    live = begun()
    events: list[core.Event] = [live.opened]
    for _ in range(5):
        event = acted(live, CALL, live.balance)
        events.append(event)
        live = core.fold(hilo, live, event)
    text = msgspec.json.encode(events)
    again = msgspec.json.decode(text, type=list[core.Event])
    assert core.replay(hilo, again) == live


@pytest.mark.parametrize(
    "events",
    [
        [],
        [Closed(Ended("expired"))],
        [opened(), opened()],
        [opened(), Closed(Ended("expired")), Closed(Ended("expired"))],
        [opened(), Closed(Ended("expired")), Acted(CALL, 1)],
    ],
)
def test_what_is_no_session_is_not_replayed(events: list[core.Event]) -> None:
    with pytest.raises(ValueError, match="session"):
        core.replay(hilo, events)


@pytest.mark.requirement("arena.artifact")
def test_what_is_published_has_the_events_and_the_result() -> None:
    live = begun()
    first = acted(live, CALL)
    live = core.fold(hilo, live, first)
    events = [live.opened, first, acted(live, STOP, live.balance)]
    content = core.artifact_of(events)
    read = json.loads(content)
    assert encode(read) == content
    assert read["events"] == json.loads(msgspec.json.encode(events))
    assert read["result"] == {"over": "stopped", "actions": 2, "net": live.net, "balance": 100 + live.net}


def test_what_was_closed_without_an_action_has_the_balance_that_it_opened_with() -> None:
    read = json.loads(core.artifact_of([opened(), Closed(Ended("expired"))]))
    assert read["result"] == {"over": "expired", "actions": 0, "net": 0, "balance": 100}


def test_a_session_is_found_while_it_is_open_and_by_its_agent_for_ever() -> None:
    row = core.SessionRow("as_1", AGENT, "hilo", 1, "simulation", "", 1, 0, 1, 1, due=7)
    assert core.index_of(row) == (("agent", AGENT), ("open", AGENT), ("due", 7))
    over = replace(row, over="stopped", due=None)
    assert core.index_of(over) == (("agent", AGENT),)
