"""The table of look-alikes: well formed, and closed."""

import unicodedata

from broker.core.confusables import PROTOTYPES


def test_each_character_leads_to_what_leads_nowhere_further() -> None:
    assert len(PROTOTYPES) == 973
    for code, prototype in PROTOTYPES.items():
        spread = unicodedata.normalize("NFD", prototype)
        assert prototype, chr(code)
        assert spread.translate(PROTOTYPES) == spread, chr(code)


def test_what_a_name_is_folded_to_before_is_not_in_it() -> None:
    for code in PROTOTYPES:
        assert unicodedata.normalize("NFKC", chr(code)) == chr(code)


def test_the_known_ones_are_there() -> None:
    pairs = {"а": "a", "о": "o", "Ι": "l", "0": "O", "1": "l", "I": "l", "|": "l", "m": "rn", "ロ": "口"}
    assert {each: PROTOTYPES[ord(each)] for each in pairs} == pairs
