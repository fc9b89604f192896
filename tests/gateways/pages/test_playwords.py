"""A session in words: the games that there are, and any other."""

from typing import Any

import pytest

from gateways.pages import playwords as words


@pytest.mark.requirement("pages.arena-readable")
def test_hilo_is_read_with_its_cards_as_people_write_them() -> None:
    seen = {"current": "TH", "seen": ["2C", "AS"], "left": 49, "left_by_rank": {"2": 3, "T": 3}}
    assert words.observation("hilo", seen) == [
        ("Open card", "10♥"),
        ("Cards turned", "2♣, A♠"),
        ("Cards left", "49"),
        ("Left of each rank", "2: 3, 10: 3"),
    ]
    legal = {"type": "call", "guess": "higher", "stake": {"min": 1, "max": 1000}}
    assert words.action("hilo", legal) == "call: guess higher, stake 1 to 1,000"
    assert words.outcome("hilo", {"card": "QD", "returned": 5}) == "card Q♦, returned 5"


@pytest.mark.requirement("pages.arena-readable")
def test_rfq_is_read_with_words_for_its_numbers() -> None:
    seen = {"reference": 10_000, "inventory": -3}
    assert words.observation("rfq", seen) == [("Reference price", "10,000"), ("Held", "-3")]
    assert words.action("rfq", {"type": "pass"}) == "pass"
    assert words.outcome("rfq", {"reference": 9_990, "client": "buys"}) == "reference 9,990, client buys"


@pytest.mark.requirement("pages.arena-readable")
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "none"),
        ({}, "none"),
        (None, "none"),
        (True, "yes"),
        (False, "no"),
        (-1_500, "-1,500"),
        (1.5, "1.5"),
        ("QD", "QD"),
        ([{"a_b": [1, None]}], "a b: 1, none"),
        ({"min": 1, "max": 2}, "1 to 2"),
        ({"min": 1, "max": 2, "by": 3}, "min: 1, max: 2, by: 3"),
    ],
)
def test_any_other_game_can_be_read(value: Any, said: str) -> None:
    assert words.said("other", value) == said
    assert words.observation("other", {"a_b": value}) == [("a b", said)]


@pytest.mark.requirement("pages.arena-readable")
def test_an_end_by_time_is_no_action() -> None:
    ends = ({}, {"over": "stopped"}, {"over": "expired"})
    assert [words.actions({"version": 3, **end}) for end in ends] == [3, 3, 2]


def test_words_for_ends_points_and_what_was_sent() -> None:
    assert words.over(None) == ""
    assert words.over("bust") == "too few points were left"
    assert words.over("king_captured") == "king captured"
    assert [words.points(each) for each in (1_500, 0, -3)] == ["+1,500", "0", "-3"]
    assert words.as_sent({"type": "<b>"}) == '{"type":"<b>"}'
    assert words.outcome("hilo", None) == ""
    assert words.outcome("other", 7) == "7"
    assert words.action("other", {"stake": 1}) == "?: stake 1"
