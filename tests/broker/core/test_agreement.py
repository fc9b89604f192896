"""What two agents may do, as functions of their row."""

from typing import Any

import pytest

from broker.core import agreement as core
from broker.core.agreement import DAY_MS, Agreement, PairRow, Request, Rules
from broker.wire.refusals import Refusal

RULES = Rules(7 * DAY_MS, 3, 30 * DAY_MS)
NOW = 1_782_345_678_000


def request(**members: Any) -> Request:
    made: dict[str, Any] = {
        "request_id": "cr_1",
        "asker": "a",
        "target": "b",
        "purpose": "p",
        "scopes": ("message",),
        "ttl_days": 30,
        "asked_at": NOW,
        "expires_at": NOW + 30 * DAY_MS,
        **members,
    }
    return Request(**made)


def held(**members: Any) -> Agreement:
    made: dict[str, Any] = {
        "agreement_id": "agr_1",
        "one": "a",
        "other": "b",
        "scopes": ("message",),
        "made_at": NOW,
        "expires_at": NOW + 30 * DAY_MS,
        **members,
    }
    return Agreement(**made)


def pair(**members: Any) -> PairRow:
    return PairRow(("a", "b"), **members)


def test_a_pair_has_one_name() -> None:
    assert core.pair_key("b", "a") == core.pair_key("a", "b") == "a:b"


@pytest.mark.requirement("agreement.allows")
@pytest.mark.parametrize(
    ("agreement", "actor", "scope", "now", "allowed"),
    [
        (held(), "a", "message", NOW, True),
        (held(), "b", "message", NOW, True),
        (held(), "a", "task", NOW, False),
        (held(), "a", "message", NOW + 30 * DAY_MS - 1, True),
        (held(), "a", "message", NOW + 30 * DAY_MS, False),
        (held(expires_at=None), "b", "message", NOW * 2, True),
        (held(status="revoked"), "a", "message", NOW, False),
        (held(one_way=True), "a", "message", NOW, True),
        (held(one_way=True), "b", "message", NOW, False),
        (held(scopes=("task", "resource")), "b", "resource", NOW, True),
    ],
)
def test_what_an_agreement_allows(
    agreement: Agreement, actor: str, scope: Any, now: int, allowed: bool
) -> None:
    assert (core.find_agreement(pair(agreements=(agreement,)), actor, scope, now) is not None) is allowed


def test_nothing_is_allowed_where_there_is_nothing() -> None:
    assert core.find_agreement(None, "a", "message", NOW) is None
    both = pair(agreements=(held(scopes=("task",)), held(agreement_id="agr_2")))
    found = core.find_agreement(both, "a", "message", NOW)
    assert found is not None
    assert found.agreement_id == "agr_2"


def test_scopes_are_named_once_and_in_order() -> None:
    assert core.read_scopes(["task", "message", "task"]) == ("message", "task")
    assert core.read_scopes(None, ("task",)) == ("task",)
    for bad in ([], ["channel"]):
        assert isinstance(core.read_scopes(bad, ("message", "task")), Refusal)  # type: ignore[arg-type]


def test_a_request_that_is_over_is_in_nobodys_way() -> None:
    old = request(request_id="cr_0", expires_at=NOW)
    assert core.judge_request(pair(requests=(old,)), request(), RULES) is None


@pytest.mark.requirement("agreement.one-open")
def test_a_pair_holds_so_many_agreements() -> None:
    many = tuple(held(agreement_id=f"agr_{n}", scopes=("task",)) for n in range(core.MOST_AGREEMENTS))
    refused = core.judge_request(pair(agreements=many), request(), RULES)
    assert refused is not None
    assert refused.code == "already_exists"
    assert core.judge_request(pair(agreements=many[1:]), request(), RULES) is None


@pytest.mark.requirement("agreement.cool-down")
@pytest.mark.parametrize(
    ("declines", "days"), [((), None), ((0,), 7), ((0, 8), 15), ((0, 8, 16), 30), ((0, 25, 28), 35)]
)
def test_when_one_may_ask_again(declines: tuple[int, ...], days: int | None) -> None:
    at = tuple(NOW + day * DAY_MS for day in declines)
    assert core.asks_again_at(at, RULES) == (0 if days is None else NOW + days * DAY_MS)


def test_an_operators_grant_is_no_agreement_that_covers() -> None:
    assert core.judge_request(pair(agreements=(held(one_way=True),)), request(), RULES) is None


@pytest.mark.requirement("agreement.cool-down")
def test_a_decline_is_counted_and_an_acceptance_forgets_it() -> None:
    row = core.ask(pair(), request())
    assert core.find_request(row, "cr_1") == request()
    for n in range(5):
        row, ended = core.close(core.ask(row, request()), request(), "declined", NOW + n, RULES)
        assert (ended.status, ended.ended_at) == ("declined", NOW + n)
    assert row.declines == {"a": (NOW + 2, NOW + 3, NOW + 4)}
    assert core.find_request(row, "cr_1") is None
    row, _ = core.close(core.ask(row, request()), request(), "accepted", NOW, RULES)
    assert row.declines == {}


def test_what_is_due_first() -> None:
    assert core.next_due(pair()) is None
    assert core.next_due(pair(agreements=(held(expires_at=None),))) is None
    both = pair(requests=(request(expires_at=9),), agreements=(held(expires_at=7), held()))
    assert core.next_due(both) == 7


def test_an_agreement_is_made_and_ended() -> None:
    made = core.made_of(request(asker_name="Ann"), "agr_9", ("message",), 2, NOW)
    assert (made.one, made.one_name, made.expires_at, made.request_id) == (
        "a",
        "Ann",
        NOW + 2 * DAY_MS,
        "cr_1",
    )
    row, ended = core.end(core.add(pair(), made), made, "revoked", NOW + 1, "b")
    assert row.agreements == ()
    assert (ended.status, ended.ended_at, ended.ended_by) == ("revoked", NOW + 1, "b")


def test_lanes_count_what_is_kept_and_unread() -> None:
    row = core.sent(core.sent(pair(), "b"), "b")
    row = core.sent(core.read(row, "b", 1), "b", dropped=1, dropped_unread=1)
    assert row.lanes == {"b": core.Lane(2, 1)}
