"""The benchmark of the arena, end to end for a moment. No time is asserted."""

import json
from typing import Any

import msgspec
import pytest

from bench import arena, books, players
from bench.kit.websocket import Lost
from bench.players import Play
from bench.seats import Outcome, Session

TINY = ["--seconds", "0.15", "--sessions", "4", "--agents", "2", "--json"]


def run(capsys: pytest.CaptureFixture[str], *given: str, code: int = 0) -> dict[str, Any]:
    assert arena.main([*TINY, *given]) == code
    report: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["ok"] is (code == 0)
    return report


def test_a_tiny_run_has_a_row_for_each_door_and_loop_and_the_books_are_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = run(capsys, "--rate", "30%")
    assert [(row["over"], row["loop"].split(",")[0]) for row in report["rows"]] == [
        ("ws", "closed"), ("ws", "open"), ("mcp", "closed"), ("mcp", "open"),
    ]  # fmt: skip
    assert all(row["actions"] > 0 and row["p99_ms"] >= row["p50_ms"] > 0 for row in report["rows"])
    checked = report["checked"]
    assert checked["sessions"] >= report["asked_again"] == 8
    assert checked["events"] > sum(row["actions"] for row in report["rows"])
    assert (checked["ledger_sum"], report["errors"]) == (0, [])
    assert report["actions_per_s"] == report["medians"][0]["actions_per_s"]


def test_persistent_accounts_have_all_that_was_acknowledged(capsys: pytest.CaptureFixture[str]) -> None:
    report = run(capsys, "--over", "ws", "--mode", "persistent", "--seconds", "0.2")
    assert report["checked"]["sessions"] >= 4


def test_open_sessions_have_time_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    report = run(capsys, "--open", "20", "--connections", "3", "--over", "mcp")
    assert report["open"][0]["sessions"] == report["rows"][0]["actions"] == 20
    assert report["open"][0]["opened_per_s"] > 0
    assert report["checked"]["sessions"] == 20


def test_an_answer_that_does_not_follow_fails_the_benchmark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(players, "STAKES", 1)
    real = Play.choose

    def choose(self: Play, key: bytes) -> bytes:
        text = real(self, key)
        self.stake += 1  # as if the broker had settled another stake
        return text

    monkeypatch.setattr(Play, "choose", choose)
    report = run(capsys, "--over", "ws", code=1)
    assert "led to" in report["errors"][0]


def test_a_store_that_lost_an_action_fails_the_benchmark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = books.read_events

    async def forgetful(store: Any, session_id: str) -> Any:
        return (await real(store, session_id))[:-1]

    monkeypatch.setattr(books, "read_events", forgetful)
    report = run(capsys, "--over", "ws", code=1)
    assert "was acknowledged" in report["errors"][0]
    assert report["checked"]["sessions"] >= 4


LEGAL = {
    "type": "call",
    "guess": "higher",
    "stake": {"min": 1, "max": 9},
    "odds": [1, 2],
    "returns": [49, 25],
}
BEFORE: dict[str, Any] = {
    "session_id": "as_1",
    "status": "open",
    "version": 3,
    "account": {"kind": "simulation", "account_id": "session:as_1", "balance": 100},
    "net": 5,
    "legal_actions": [LEGAL, {"type": "stop"}],
}


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({}, False),
        ({"version": 5}, True),
        ({"net": 5}, True),
        ({"session_id": "as_2"}, True),
        ({"status": "over"}, True),
        ({"account": {**BEFORE["account"], "balance": 100}}, True),
    ],
)
def test_what_must_follow_from_what_a_player_knows(change: dict[str, Any], wrong: bool) -> None:
    play = Play()
    play.session = msgspec.convert(BEFORE, Session)
    assert b'"stake":4,"guess":"higher"' in play.choose(b"k")
    after = {**BEFORE, "version": 4, "net": 8, "account": {**BEFORE["account"], "balance": 103}, **change}
    told = msgspec.convert({"facts": {"card": "2C", "returned": 7}, "change": 3, "session": after}, Outcome)
    if wrong:
        with pytest.raises(Lost):
            play.acted(told)
    else:
        play.acted(told)
        assert play.session == told.session
