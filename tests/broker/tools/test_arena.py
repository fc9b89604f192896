"""The arena's tools: games, sessions, actions, and what is refused. (Who may, and what comes once: tests/arena/.)"""

from typing import Any

import pytest

from broker.core.games.game import MAX_ACTIONS
from broker.tools.arena import MAX_ACTION
from broker.wire.refusals import CODES, Refusal
from tests.support.agents import make_agent
from tests.support.arena import call, ledger_sum, new_key, open_session, submit
from tests.support.broker import Bench, code


async def test_a_session_is_played_to_its_end_and_published(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    profile: Any = await bench.call("get_agent", ann, agent_id=ann.agent)
    commit = profile["arena"]["next_commit"]
    session = await open_session(bench, ann, config={"commit": commit, "client_seed": "mine", "points": 100})
    assert session["commit"] == commit
    assert session["account"]["balance"] == 100
    version = 0
    while session["status"] == "open":
        answer = await submit(bench, ann, session)
        assert not isinstance(answer, Refusal), answer
        session = answer["session"]
        version += 1
        assert session["version"] == version
    assert session["over"] in ("shoe_empty", "bust")
    assert session["seed"]
    assert session["artifact"]["uri"].startswith("kestrel://artifact/")
    over = await submit(bench, ann, session, call("higher"))
    assert over.code == "SESSION_OVER"
    store = bench.broker._services.store
    assert await ledger_sum(store, [session["session_id"]]) == 0


async def test_a_stale_version_is_a_conflict(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann, mode="persistent")
    first = await submit(bench, ann, session)
    assert not isinstance(first, Refusal)
    stale = await submit(bench, ann, session)
    assert (stale.code, stale.retryable, stale.detail["version"]) == ("CONFLICT", True, 1)
    seen: Any = await bench.call(
        "get_session", ann, session_id=session["session_id"], rejected_after=-1, events_after=-1
    )
    assert [each["code"] for each in seen["rejected"]] == ["CONFLICT"]
    assert [each["n"] for each in seen["events"]] == [0, 1]


@pytest.mark.requirement("arena.rules", "arena.errors", "arena.limits")
async def test_the_arena_says_what_is_played_and_by_which_rules(bench: Bench) -> None:
    arena: Any = await bench.call("describe_arena", await make_agent(bench, "Ann"))
    assert [(each["game"], each["version"]) for each in arena["games"]] == [("hilo", 1), ("rfq", 1)]
    assert arena["modes"] == ["simulation", "persistent"]
    assert arena["limits"]["actions_per_session"] == MAX_ACTIONS
    assert arena["unclaimed_limits"]["open_sessions"] == 3
    errors = {each["code"]: each["retryable"] for each in arena["errors"]}
    assert list(errors) == [
        "CONFLICT",
        "IDEMPOTENCY_MISMATCH",
        "NOT_FOUND",
        "FORBIDDEN",
        "ILLEGAL_ACTION",
        "INSUFFICIENT_POINTS",
        "LIMIT_EXCEEDED",
        "SESSION_OVER",
    ]
    assert errors == {name: CODES[name].retryable for name in errors}
    assert [name for name, retryable in errors.items() if retryable] == ["CONFLICT"]


@pytest.mark.requirement("arena.rules")
@pytest.mark.parametrize("game", ["hilo", "rfq"])
async def test_a_games_rules_come_with_the_schemas_of_its_config_and_its_actions(
    bench: Bench, game: str
) -> None:
    ann = await make_agent(bench, "Ann")
    rules: Any = await bench.call("get_game", ann, game=game, version=1)
    assert rules == await bench.call("get_game", ann, game=game)
    assert {"client_seed", "commit", "points", "reveal"} < rules["config_schema"]["properties"].keys()
    for each in rules["config_schema"]["properties"].values():
        assert each.get("description"), "says what it is"
    assert "#/" not in str(rules), "nothing points to what is not there"
    session = await open_session(bench, ann, game)
    assert [each["properties"]["type"]["enum"][0] for each in rules["action_schema"]["anyOf"]] == list(
        dict.fromkeys(each["type"] for each in session["legal_actions"])
    )
    assert code(await bench.call("get_game", ann, game=game, version=2)) == "NOT_FOUND"


async def test_what_is_not_played_here_is_named_with_what_is(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    for name, params in (("get_game", {}), ("open_session", {"idempotency_key": "k"})):
        missing = await bench.call(name, ann, game="chess", **params)
        assert (missing.code, missing.detail["path"]) == ("NOT_FOUND", "game")
        assert "hilo 1, rfq 1" in missing.message
        newer = await bench.call(
            name, ann, game="hilo", version=9, **{**params, "idempotency_key": "n"} if params else {}
        )
        assert (newer.code, newer.detail["path"]) == ("NOT_FOUND", "version")


@pytest.mark.requirement("arena.config")
async def test_a_config_of_another_games_is_told_what_this_one_takes(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    refused = await bench.call(
        "open_session", ann, game="rfq", config={"decks": 2}, idempotency_key=new_key()
    )
    taken = "client_seed, commit, points, reveal, steps, volatility, inventory_limit"
    assert refused.message.endswith(f"unknown field `decks`; it takes: {taken}")


@pytest.mark.requirement("arena.config")
@pytest.mark.parametrize(
    "config",
    [
        {"decks": 0},
        {"decks": 9},
        {"decks": 1.5},
        {"decks": "1"},
        {"decks": None},
        {"more": 1},
        {"points": 0},
        {"points": 1_000_001},
        {"points": -1},
        {"client_seed": ""},
        {"client_seed": "x" * 65},
        {"client_seed": 1},
        {"reveal": "always"},
        {"commit": 7},
    ],
)
async def test_an_odd_config_opens_nothing(bench: Bench, config: dict[str, Any]) -> None:
    ann = await make_agent(bench, "Ann")
    answer = await bench.call("open_session", ann, game="hilo", config=config, idempotency_key="k")
    assert answer.code == "bad_request"
    assert str(answer.detail["path"]).startswith("config")
    assert (await bench.call("get_agent", ann, agent_id=ann.agent))["arena"]["games"] == 0


@pytest.mark.requirement("arena.numbers")
async def test_a_whole_number_may_be_written_in_any_form(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann, config={"decks": 2.0, "points": 1e2})
    assert (session["config"]["decks"], session["account"]["balance"]) == (2, 100)
    answer = await submit(bench, ann, session, {"type": "call", "guess": "same", "stake": 1e1})
    assert abs(answer["change"]) >= 10


@pytest.mark.requirement("arena.action-size", "arena.illegal")
async def test_an_action_has_a_size(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann)
    bare = len('{"type":""}')
    fits, large = ({"type": "x" * (MAX_ACTION - bare + more)} for more in (0, 1))
    assert code(await submit(bench, ann, session, fits)) == "ILLEGAL_ACTION"
    answer = await submit(bench, ann, session, large)
    assert (answer.code, answer.detail["path"]) == ("bad_request", "action")
    assert code(await submit(bench, ann, session, {"type": "\u2663" * (MAX_ACTION // 3)})) == "bad_request"


@pytest.mark.requirement("arena.illegal")
async def test_what_was_sent_is_not_quoted_at_length(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann)
    answer = await submit(bench, ann, session, {**call("same"), "x" * 1_900: 1})
    assert answer.code == "ILLEGAL_ACTION"
    assert len(answer.message) <= 300


@pytest.mark.parametrize(
    "action",
    [
        b'{"type":"call","stake":1e400,"guess":"same"}',
        b'{"type":"call","stake":123456789012345678901234567890,"guess":"same"}',
        b'{"type":"call","stake":-0.0,"guess":"same"}',
        b'{"type":"call","type":"stop"}',
        b'{"type":"\\ud800"}',
        b'{"type":' + b"[" * 64 + b"]" * 64 + b"}",
        b'["stop"]',
        b'"stop"',
        b"null",
        b"NaN",
    ],
)
async def test_a_hostile_action_is_refused_and_does_nothing(bench: Bench, action: bytes) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann)
    params = b'{"session_id":"%b","expected_version":0,"idempotency_key":"k","action":%b}'
    text = params % (session["session_id"].encode(), action)
    answer = await bench.broker.call(ann, "submit_action", text)
    assert isinstance(answer, Refusal)
    assert answer.code in ("bad_request", "ILLEGAL_ACTION")
    seen: Any = await bench.call("get_session", ann, session_id=session["session_id"])
    assert seen["session"]["version"] == 0


@pytest.mark.parametrize("version", [-1, 1_000_001, 0.5, "0", None])
async def test_an_odd_version_is_a_bad_request(bench: Bench, version: Any) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann)
    answer = await submit(bench, ann, session, call("same"), expected_version=version)
    assert (answer.code, answer.detail["path"]) == ("bad_request", "expected_version")


@pytest.mark.requirement("arena.keyed")
@pytest.mark.parametrize("name", ["open_session", "submit_action"])
async def test_what_changes_something_wants_a_key(bench: Bench, name: str) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann)
    params: dict[str, Any] = {"game": "hilo"}
    if name == "submit_action":
        params = {"session_id": session["session_id"], "expected_version": 0, "action": call("same")}
    answer = await bench.call(name, ann, **params)
    assert (answer.code, answer.detail.get("path")) == ("bad_request", "idempotency_key")
    for key in ("", "a b", "x" * 129, None):
        assert code(await bench.call(name, ann, **params, idempotency_key=key)) == "bad_request"


@pytest.mark.requirement("arena.rejected")
async def test_logs_are_read_in_pages(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann, config={"points": 10_000})
    for version in range(5):
        session = (await submit(bench, ann, session))["session"]
        await submit(bench, ann, session, {"type": f"no {version}"})

    async def page(**params: Any) -> Any:
        return await bench.call("get_session", ann, session_id=session["session_id"], **params)

    assert set(await page()) == {"session"}
    found = await page(events_after=1, rejected_after=2, limit=2)
    assert [each["n"] for each in found["events"]] == [2, 3]
    assert [each["n"] for each in found["rejected"]] == [3, 4]
    assert [each["action"]["type"] for each in found["rejected"]] == ["no 3", "no 4"]
    assert (await page(events_after=5))["events"] == []


@pytest.mark.requirement("arena.rejected")
async def test_the_first_rejected_attempts_are_kept_and_later_ones_answered(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.actors.session.REJECTED_KEPT", 3)
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann)
    key = new_key()
    answers = [await submit(bench, ann, session, {"type": f"no {number}"}) for number in range(4)]
    last = [await submit(bench, ann, session, {"type": "no more"}, idempotency_key=key) for _ in range(2)]
    assert {each.code for each in (*answers, *last)} == {"ILLEGAL_ACTION"}
    assert last[0] == last[1]
    assert (
        code(await submit(bench, ann, session, call("same"), idempotency_key=key)) == "IDEMPOTENCY_MISMATCH"
    )
    seen: Any = await bench.call("get_session", ann, session_id=session["session_id"], rejected_after=-1)
    assert [each["action"]["type"] for each in seen["rejected"]] == ["no 0", "no 1", "no 2"]
