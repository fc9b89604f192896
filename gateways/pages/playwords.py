"""A session of the arena in words for people: what its agent sees, what it may do, what it did, and what came of it.

Any game can be read: what a name or a word is not known for stands as the game says it. Everything here is text of
others to the templates, which escape it.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

SUITS: Final = {"C": "♣", "D": "♦", "H": "♥", "S": "♠"}
LABELS: Final[dict[str, dict[str, str]]] = {
    "hilo": {
        "current": "Open card",
        "seen": "Cards turned",
        "left": "Cards left",
        "left_by_rank": "Left of each rank",
    },
    "rfq": {
        "reference": "Reference price",
        "size": "Size asked for",
        "inventory": "Held",
        "left": "Requests left",
        "inventory_limit": "Most that may be held",
        "volatility": "Greatest move",
        "widest": "Farthest price from the reference",
    },
}
"""What members of a game's observation are called here."""
OVER: Final = {
    "stopped": "it was stopped",
    "expired": "nobody acted in time",
    "actions": "it had all the actions that a session may have",
    "bust": "too few points were left",
    "shoe_empty": "the shoe is empty",
    "tape_over": "the last request was answered",
}
"""Why a session is over."""
MODES: Final = {"simulation": "simulation", "persistent": "for its own points"}


def observation(game: str, seen: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the agent sees, as (label, text), in the game's order."""
    labels = LABELS.get(game, {})
    return [(labels.get(name, _plain(name)), said(game, value)) for name, value in seen.items()]


def action(game: str, done: Mapping[str, Any]) -> str:
    """An action, or one that may be done: its type, then its members: `call: stake 25, guess higher`."""
    rest = {name: value for name, value in done.items() if name != "type"}
    kind = said(game, done.get("type", "?"))
    return f"{kind}: {_pairs(game, rest)}" if rest else kind


def outcome(game: str, facts: Any) -> str:
    """What an action showed; empty for nothing."""
    return _pairs(game, facts) if isinstance(facts, Mapping) else "" if facts is None else said(game, facts)


def over(reason: str | None) -> str:
    """Why a session is over; empty where it is not."""
    return "" if reason is None else OVER.get(reason, _plain(reason))


def actions(session: Mapping[str, Any]) -> int:
    """How many actions a session has had: each made a version, and so did an end by time, which is none."""
    done: int = session["version"]
    return done - 1 if session.get("over") == "expired" else done


def points(number: int) -> str:
    """A gain or a loss, with its sign."""
    return f"{number:+,}" if number else "0"


def as_sent(value: Any) -> str:
    """What somebody sent, as JSON."""
    return msgspec.json.encode(value).decode()


def said(game: str, value: Any) -> str:
    """A value of JSON on one line."""
    if isinstance(value, Mapping):
        if value.keys() == {"min", "max"}:
            return f"{said(game, value['min'])} to {said(game, value['max'])}"
        return ", ".join(f"{_rank(game, name)}: {said(game, each)}" for name, each in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(said(game, each) for each in value) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, str) and game == "hilo" and len(value) == 2 and value[1] in SUITS:
        return _rank(game, value[0]) + SUITS[value[1]]
    return f"{value:,}" if isinstance(value, int) else str(value)


def _pairs(game: str, members: Mapping[str, Any]) -> str:
    return ", ".join(f"{_plain(name)} {said(game, value)}" for name, value in members.items()) or "none"


def _rank(game: str, name: str) -> str:
    return "10" if game == "hilo" and name == "T" else _plain(name)


def _plain(name: str) -> str:
    return name.replace("_", " ")
