"""What is a word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.store.words import LETTERS, MOST, query, words


@pytest.mark.requirement("store.search-words")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Fx-Rates, 2026.csv", ["fx", "rates", "2026", "csv"]),
        ("snake_case", ["snake", "case"]),
        ("Straße CAFÉ Ψῆφος", ["strasse", "cafe", "ψηφοσ"]),
        ("e\u0301t\u00e9 ve\u00adry \u200bso", ["ete", "very", "so"]),
        ("北京 2026年", ["北", "京", "2026", "年"]),
        ("がぎ", ["が", "ぎ"]),
        ("เที่ยว", ["เ", "ที่", "ย", "ว"]),
        ("हिन्दी", ["हिन्दी"]),
        ("\u0301x \u093f", ["x"]),
        ("go🚀now ⚠️", ["go", "🚀", "now", "⚠"]),
        ("x\x00y\ud800z", ["x", "y", "z"]),
        ("", []),
        (" -+*\"'(){}[]:^~\\/\t\n\r", []),
    ],
)
def test_a_text_is_its_words(text: str, found: list[str]) -> None:
    assert words(text) == found


def test_a_word_is_cut_and_a_query_has_an_end() -> None:
    assert words("a" * 100 + " é" + "ü" * 100) == ["a" * LETTERS, "e" + "u" * (LETTERS - 1)]
    many = " ".join(f"w{number}" for number in range(100))
    asked = query(many)
    assert len(asked) == MOST
    assert (asked[0], asked[-1]) == ("w0", "w99")


def test_what_is_asked_twice_stands_once_and_the_last_word_last() -> None:
    assert query("a b a") == ("b", "a")
    assert query("a") == ("a",)
    assert query("?") == ()


@pytest.mark.requirement("store.search-words")
@given(st.text(st.characters(codec=None)))
def test_words_hold_no_sign_that_a_query_language_knows(text: str) -> None:
    for word in words(text):
        assert 1 <= len(word) <= LETTERS
        assert word == word.casefold() or not word.isascii()
        assert all(sign.isalnum() or ord(sign) > 127 for sign in word)
        word.encode()
