"""A conversation for people: true to what was said, and harmless to a terminal."""

from typing import Any

import pytest

from broker.wire.envelope import Envelope
from gateways.client.show import Names, clock_time, line, meaning, printable
from tests.gateways.client.test_transcript import DEAL


def envelope(type: str, body: dict[str, Any], n: int = 2) -> Envelope:
    return Envelope("00" * 8, n, type, "aa" * 32, "bb" * 32, 1_782_345_678, "cc" * 64, body, b"")


@pytest.mark.parametrize(
    ("type", "body", "words"),
    [
        ("CALL", {"code_from": "ALFA", "code_to": "BRAV", "wire": "w"}, "calls"),
        ("CALL", {"code_from": "ALFA", "note": "hi"}, 'calls  {"note":"hi"}'),
        ("PICKUP", {}, "picks up"),
        ("RFQ", {"instrument": "EURUSD", "qty": "5"}, "asks a price for 5 EURUSD"),
        ("RFQ", {"qty": "5"}, '{"qty":"5"}'),
        ("QUOTE", {"bid": "1.1", "ask": "1.2", "firm": True}, 'bids 1.1, offers 1.2  {"firm":true}'),
        ("HIT", {"side": "buy", "px": "1.2"}, "buys at 1.2"),
        ("HIT", {"side": "sell", "px": "1.1"}, "sells at 1.1"),
        ("HIT", {"side": "steal", "px": "1.1"}, '{"side":"steal","px":"1.1"}'),
        ("CONFIRM", {"trade_ref": "T-1", "px": "1.1"}, "confirms T-1: 1.1"),
        ("END", {"reason": "idle"}, "hangs up: idle"),
        ("END", {}, "hangs up"),
        ("CHAT", {"text": "hello"}, '{"text":"hello"}'),
    ],
)
def test_a_body_is_told_in_words_where_they_are_known_and_else_as_it_is(
    type: str, body: dict[str, Any], words: str
) -> None:
    assert meaning(envelope(type, body)) == words


def test_a_line_has_time_route_number_type_and_meaning() -> None:
    names = Names()
    call = Envelope(**{**_members(DEAL[0]), "canonical": b""})
    text = line(call, 1_782_345_678_123, names)
    assert text.endswith("ALFA → BRAV    0  CALL      calls")
    assert text[8:12] == ".123"
    answer = Envelope(**{**_members(DEAL[1]), "canonical": b""})
    assert line(answer, None, names).endswith("BRAV → ALFA    1  PICKUP    picks up")


def _members(row: dict[str, Any]) -> dict[str, Any]:
    members = dict(row["envelope"])
    return {**{k: v for k, v in members.items() if k != "from"}, "sender": members["from"]}


def test_a_key_without_a_name_is_shown_by_its_beginning() -> None:
    names = Names({"bb" * 32: "BRAV"})
    assert names.get("aa" * 32) == "aaaaaaaa"
    names.add("aa" * 32, "ME")
    assert (names.get("aa" * 32), names.get("bb" * 32)) == ("ME", "BRAV")


def test_colours_only_where_they_are_asked_for() -> None:
    said = envelope("HIT", {"side": "buy", "px": "1"})
    assert "\x1b[" in line(said, 0, Names(), colour=True)
    assert "\x1b[" not in line(said, 0, Names())


@pytest.mark.requirement("client.terminal")
@pytest.mark.parametrize("evil", ["\x1b[2J", "\x9b31m", "\u202egnp.exe", "a\nb", "\x07", "\u2028"])
def test_what_others_wrote_can_not_steer_a_terminal(evil: str) -> None:
    for body in ({"reason": evil}, {"code_from": evil, evil: evil}):
        for type in ("END", "CALL", "CHAT"):
            assert line(envelope(type, body), 0, Names()).isprintable()
    assert printable(evil).isprintable()


def test_a_long_body_is_cut() -> None:
    assert len(line(envelope("CHAT", {"text": "x" * 8000}), 0, Names())) < 300


def test_a_time_beyond_the_calendar_is_shown_as_a_number() -> None:
    assert clock_time(10**30) == str(10**30)
