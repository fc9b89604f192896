"""Sessions of the arena's games without a broker: dealt from a given secret, played by a given strategy."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from broker.core import arena
from broker.core.arena import Acted, Event, Live, Mode
from broker.core.chance import Draws, Secret
from broker.core.games.game import Game

SECRET = Secret("11" * 32, "22" * 32)
AGENT = "ag_0123456789abcdef"
Choose = Callable[[list[dict[str, Any]]], dict[str, Any]]


class Given(Draws):
    """Draws whose values are given; `below` hands out the next one, and says where it is none below n."""

    def __init__(self, values: Iterator[int]) -> None:
        super().__init__("00", b"", "")
        self._values = values
        self.asked: list[int] = []

    def below(self, n: int) -> int:
        value = next(self._values)
        assert 0 <= value < n
        self.asked.append(n)
        return value


class Words(Draws):
    """Draws whose words are given."""

    def __init__(self, words: Iterator[int]) -> None:
        super().__init__("00", b"", "")
        self._words = words

    def word(self) -> int:
        self.count += 1
        return next(self._words)


def plain(legal: list[dict[str, Any]]) -> dict[str, Any]:
    """An action of Hi-Lo's or RFQ's that is legal: the least stake, or quotes near the reference."""
    first = legal[0]
    if first["type"] == "call":
        return {"type": "call", "guess": first["guess"], "stake": first["stake"]["min"]}
    if first["type"] == "quote":
        bid = {"bid": first["bid"]["min"] + 8} if "bid" in first else {}
        ask = {"ask": first["ask"]["max"] - 8} if "ask" in first else {}
        return {"type": "quote", **bid, **ask}
    return first


def played(
    game: Game,
    choose: Choose = plain,
    *,
    secret: Secret = SECRET,
    mode: Mode = "simulation",
    actions: int = 10_000,
    closed: bool = False,
    **config: Any,
) -> list[Event]:
    """The events of a whole session; after so many actions the player stops, or (`closed`) its time is over."""
    read = msgspec.convert(config, game.Config)
    opened = arena.open_session(
        game,
        read,
        mode,
        secret=secret,
        agent_id=AGENT,
        number=3,
        client_seed=read.client_seed or "ab" * 32,
        balance=read.points,
        opening=read.points,
    )
    live = arena.replay(game, [opened])
    hidden = arena.deal_again(game, opened, read, secret.seed)
    events: list[Event] = [opened]
    while live.ended is None:
        event: Event
        if live.version == actions and closed:
            event = arena.Closed(arena.ended(live, secret, "expired"))
        else:
            legal = arena.legal_actions(game, live, live.balance)
            action = {"type": "stop"} if live.version == actions else choose(legal)
            event = accepted(game, live, hidden, action, secret)
        events.append(event)
        live = arena.fold(game, live, event)
    return events


def accepted(game: Game, live: Live, hidden: Any, action: dict[str, Any], secret: Secret = SECRET) -> Acted:
    """The event of an action that is accepted."""
    event = arena.act(game, live, hidden, secret, live.version, action, live.balance)
    assert isinstance(event, Acted), event
    return event
