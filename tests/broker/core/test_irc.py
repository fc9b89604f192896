"""The names of IRC."""

import re

import pytest

from broker.core.irc import NICK, account_key, fold


@pytest.mark.requirement("moderation.irc")
def test_a_nick_is_the_same_in_all_its_letters() -> None:
    assert fold("Alice[Away]~\\") == "alice{away}^|" == fold("aLICE{aWAY}^|")
    assert fold("\u00c4") == "\u00c4"  # there are no letters but ASCII's
    assert account_key("Libera.Chat", "[A]") == account_key("libera.chat", "{a}")
    assert account_key("libera.chat", "a") != account_key("libera", "a")


@pytest.mark.requirement("moderation.irc")
def test_what_is_no_nick_is_none() -> None:
    for good in ("a", "[x]", "A-1", "_", "`\\^{|}"):
        assert re.fullmatch(NICK, good), good
    for bad in ("", "1a", "-a", "a b", "a!", "a@b", "\u00e4", "a" * 65, "#a", "a:b"):
        assert not re.fullmatch(NICK, bad), bad
