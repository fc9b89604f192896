"""The names of IRC: what a network and a nick look like, and when two are the same (RFC 1459, 2.2; RFC 2812, 2.3.1).

A nick's capital letters are none: `[`, `]`, `\\` and `~` are the capitals of `{`, `}`, `|` and `^`.
"""

import re
from typing import Final

NETWORK: Final = r"[A-Za-z0-9][A-Za-z0-9.-]{0,62}"
NICK: Final = r"[A-Za-z\[\]\\`_^{|}~][A-Za-z0-9\[\]\\`_^{|}~-]{0,63}"
_LETTER: Final = re.compile("[A-Z\\[\\]\\\\~]")
_SMALL: Final = {"[": "{", "]": "}", "\\": "|", "~": "^"}


def fold(nick: str) -> str:
    """The one form of a nick."""
    return _LETTER.sub(lambda found: _SMALL.get(found[0], found[0].lower()), nick)


def account_key(network: str, nick: str) -> str:
    """The name of an account: the same for all ways to write it. No network has a space, nor has a nick."""
    return f"{network.lower()} {fold(nick)}"
