"""Artifacts of sessions for the verify page: good ones of each game, and ones damaged in each way that we thought of,
and in many that nobody did."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from broker.core import arena
from broker.core.arena import Acted, Closed, Event
from broker.core.chance import Secret
from broker.core.games import hilo, rfq
from broker.core.games.game import Game
from broker.core.games.table import Table
from broker.wire.canonical import encode

TABLE = Table([hilo, rfq])
AGENT = "ag_01KBCDEFGHJKMNPQRSTVWXYZ01"
SECRET = Secret("5e" * 32, "a1" * 32)
STOP = {"type": "stop"}
Player = Callable[[dict[str, Any], int], dict[str, Any]]


def play(
    game: Game,
    player: Player,
    *,
    actions: int = 9_999,
    expires: bool = False,
    mode: arena.Mode = "simulation",
    gains: int = 0,
    secret: Secret = SECRET,
    opening: bool = True,
    **members: Any,
) -> bytes:
    """A whole session: played until it is over or after so many actions stopped, or left to expire. `gains`: points
    that come to the persistent account from elsewhere before each action."""
    config = game.Config(**members)
    client_seed = config.client_seed or "c5" * 32
    points = config.points
    opened = arena.open_session(
        game,
        config,
        mode,
        secret=secret,
        agent_id=AGENT,
        number=7,
        client_seed=client_seed,
        balance=points,
        opening=points if opening else 0,
    )
    live, hidden = arena.replay(game, [opened]), arena.deal_again(game, opened, config, secret.seed)
    events: list[Event] = [opened]
    while live.ended is None:
        points = live.balance + gains
        event: Any
        if live.version == actions and expires:
            event = Closed(arena.ended(live, secret, "expired"))
        else:
            legal = arena.legal_actions(game, live, points)[0]
            action = STOP if live.version == actions or legal == STOP else player(legal, live.version)
            event = arena.act(game, live, hidden, secret, live.version, action, points)
        assert isinstance(event, Acted | Closed), event
        events.append(event)
        live = arena.fold(game, live, event)
    return arena.artifact_of(events)


def guesser(stake: int, which: int = 0) -> Player:
    """Calls of Hi-Lo's: the first guess that can be made, with a stake of so many points where the account has them."""

    def call(legal: dict[str, Any], n: int) -> dict[str, Any]:
        return {"type": "call", "guess": legal["guess"], "stake": min(stake, legal["stake"]["max"])}

    return call


def quoter(legal: dict[str, Any], n: int) -> dict[str, Any]:
    """Quotes of RFQ's: both sides a little around the reference, one of them, or none, in turn."""
    wanted = {0: ("bid", "ask"), 1: ("bid",), 2: ("ask",), 3: ()}[n % 4]
    sides = [side for side in wanted if side in legal and legal[side]["min"] <= legal[side]["max"]]
    if not sides:
        return {"type": "pass"}
    middle = {side: (legal[side]["min"] + legal[side]["max"]) // 2 for side in sides}
    around = {"bid": -1 - n % 3, "ask": 1 + n % 5}
    prices = {
        side: min(max(at + around[side], legal[side]["min"]), legal[side]["max"])
        for side, at in middle.items()
    }
    if len(prices) == 2 and prices["bid"] >= prices["ask"]:
        del prices["ask"]
    return {"type": "quote", **prices}


def good() -> dict[str, bytes]:
    """Sessions that hold, by name."""
    return {
        "shoe": play(hilo, guesser(1), points=1_000_000, client_seed="mine"),
        "eight decks": play(hilo, guesser(7), decks=8, points=100_000, actions=300),
        "bust": play(hilo, guesser(1_000), points=1_000, client_seed="ü\U0001f0a1 \u2028"),
        "stopped": play(hilo, guesser(25), actions=6),
        "at once": play(hilo, guesser(1), actions=0),
        "expired": play(hilo, guesser(3), actions=4, expires=True),
        "kept": play(hilo, guesser(10), actions=8, reveal="never"),
        "kept and expired": play(hilo, guesser(10), actions=2, expires=True, reveal="never"),
        "persistent": play(
            hilo, guesser(40), actions=10, mode="persistent", gains=17, points=500, opening=False
        ),
        "first": play(hilo, guesser(40), actions=3, mode="persistent", points=10_000),
        "kept and persistent": play(
            hilo, guesser(5), actions=5, mode="persistent", gains=-3, opening=False, reveal="never"
        ),
        "tape": play(rfq, quoter, points=10_000),
        "long tape": play(rfq, quoter, steps=250, volatility=3, inventory_limit=50, points=1_000_000),
        "poor dealer": play(rfq, quoter, points=60, volatility=20),
        "kept tape": play(rfq, quoter, steps=12, points=5_000, reveal="never"),
        "tape of the agent's": play(rfq, quoter, steps=9, mode="persistent", gains=5, opening=False),
    }


Change = Callable[[dict[str, Any]], object]


def event(n: int, **members: Any) -> Change:
    """Change members of an event; None takes one away."""

    def change(made: dict[str, Any]) -> None:
        for name, value in members.items():
            made["events"][n].pop(name, None)
            if value is not None:
                made["events"][n][name] = value

    return change


def within(n: int, part: str, **members: Any) -> Change:
    """Change members of a part of an event."""
    return lambda made: made["events"][n][part].update(members)


def shift(made: dict[str, Any]) -> None:
    """Points that nobody lost, with entries and all balances that agree."""
    events = made["events"]
    change = events[2]["entries"][1][1] + 5 if events[2].get("entries") else 5
    events[2]["entries"] = [["house", -change], ["player", change]]
    for each in events[2:]:
        if "balance" in each:
            each["balance"] += 5
    made["result"]["balance"] += 5
    made["result"]["net"] += 5


CHANGES: dict[str, Change] = {
    "kind": lambda made: made.update(kind="turret.trial"),
    "format": lambda made: made.update(format=2),
    "more members": lambda made: made.update(note=""),
    "no kind": lambda made: made.pop("kind"),
    "events are none": lambda made: made.update(events={}),
    "no events": lambda made: made.update(events=[]),
    "not opened": lambda made: made["events"].pop(0),
    "only opened": lambda made: made.update(events=made["events"][:1]),
    "no end": lambda made: made["events"].pop(),
    "a type": event(1, type="constructor"),
    "no type": event(1, type=None),
    "an event is a text": lambda made: made["events"].__setitem__(1, "acted"),
    "an event knows more": event(1, at=1),
    "null facts": lambda made: made["events"][1].update(facts=None),
    "empty entries": event(1, entries=[]),
    "a half entry": event(1, entries=[["player"]]),
    "another's entry": event(1, entries=[["other", 1]]),
    "a true balance": event(1, balance=True),
    "a broken balance": event(1, balance=1.5),
    "mode": event(0, mode="persistent"),
    "no mode": event(0, mode="real"),
    "game": event(0, game="chess"),
    "game of every object": event(0, game="__proto__"),
    "game version": event(0, game_version=2),
    "commit": event(0, commit="00" * 32),
    "agent": event(0, agent_id="ag_01KBCDEFGHJKMNPQRSTVWXYZ02"),
    "number": event(0, games=8),
    "number below 0": event(0, games=-1),
    "client seed": event(0, client_seed="c6" * 32),
    "no client seed": event(0, client_seed="c6"),
    "config's client seed": within(0, "config", client_seed="d5" * 32),
    "empty client seed": within(0, "config", client_seed=""),
    "long client seed": lambda made: (
        within(0, "config", client_seed="\U0001f0a1" * 65)(made),
        event(0, client_seed="\U0001f0a1" * 65)(made),
    ),
    "config's commit": within(0, "config", commit="00" * 32),
    "config's points": within(0, "config", points=999),
    "too many points": within(0, "config", points=1_000_001),
    "config knows more": within(0, "config", toString=1),
    "config knows less": lambda made: made["events"][0]["config"].pop("reveal"),
    "decks": within(0, "config", decks=9),
    "steps": within(0, "config", steps=251),
    "a lower limit": within(0, "config", inventory_limit=5),
    "another limit": within(0, "config", inventory_limit=21),
    "fewer steps": within(0, "config", steps=1),
    "reveal": within(0, "config", reveal="never"),
    "reveal at the end": within(0, "config", reveal="on_end"),
    "opening facts": within(0, "facts", card="2C", reference=9_999),
    "no opening facts": event(0, facts={}),
    "no card": event(0, facts={"card": ""}),
    "opened by the house": event(0, entries=[["house", -1000], ["player", 1000]]),
    "opened with nothing": event(0, entries=[], balance=1000),
    "opening balance": event(0, balance=1001),
    "no balance": event(0, balance=0, entries=[]),
    "balance": event(2, balance=3),
    "points beyond numbers": event(
        2, balance=2**53 - 1, entries=[["house", 2**53 - 1], ["player", 1 - 2**53]]
    ),
    "balance beyond numbers": event(2, balance=2**53 - 1),
    "balance below 0": event(2, balance=-1),
    "entries that do not sum to 0": event(2, entries=[["house", -5], ["player", 6]]),
    "entries of the mint": event(2, entries=[["mint", -5], ["player", 5]]),
    "entries the other way round": lambda made: made["events"][2].get("entries", []).reverse(),
    "no entries": event(2, entries=None),
    "points for nothing": shift,
    "facts": within(1, "facts", card="AS", reference=10_001),
    "facts know more": within(1, "facts", next="2C"),
    "facts of nothing": within(1, "facts", returned=0, size=0),
    "no facts": event(1, facts=None),
    "facts are a list": event(1, facts=[]),
    "stake": within(1, "action", stake=2),
    "stake beyond the limit": within(1, "action", stake=1_001),
    "stake beyond the account": within(1, "action", stake=1_000),
    "guess": within(1, "action", guess="same"),
    "no such guess": within(1, "action", guess="red"),
    "a bid": within(1, "action", bid=1),
    "no bid": within(1, "action", bid=None),
    "an ask": within(1, "action", ask=1_000_001),
    "an action knows more": within(1, "action", note="hello"),
    "crossed": event(1, action={"type": "quote", "bid": 10_001, "ask": 10_001}),
    "quoted too wide": event(1, action={"type": "quote", "bid": 9_000}),
    "quoted to lose": lambda made: event(
        1, action={"type": "quote", "bid": 10_000 + 2 * made["events"][0]["config"]["volatility"]}
    )(made),
    "another action": event(1, action={"type": "pass"}),
    "an action without a type": event(1, action={}),
    "stopped before": event(1, action=STOP),
    "stopped with facts": lambda made: made["events"][-1].update(action=STOP),
    "dropped": lambda made: made["events"].pop(1),
    "twice": lambda made: made["events"].insert(1, copy.deepcopy(made["events"][1])),
    "swapped": lambda made: made["events"].insert(1, made["events"].pop(2)),
    "opened again": lambda made: made["events"].insert(2, copy.deepcopy(made["events"][0])),
    "closed after the end": lambda made: made["events"].append(
        {"type": "closed", "ended": {"over": "expired"}}
    ),
    "ended before": lambda made: made["events"][1].update(ended=made["events"][-1].get("ended")),
    "ended for nothing": lambda made: made["events"][-1].update(ended={"over": "bored"}),
    "over": lambda made: made["events"][-1]["ended"].update(over="won"),
    "seed": lambda made: made["events"][-1]["ended"].update(seed="5f" * 32),
    "salt": lambda made: made["events"][-1]["ended"].update(salt="a0" * 32),
    "seed in capitals": lambda made: made["events"][-1]["ended"].update(seed="5E" * 32),
    "a short seed": lambda made: made["events"][-1]["ended"].update(seed="5e" * 31),
    "no seed": lambda made: made["events"][-1]["ended"].pop("seed", None),
    "a null seed": lambda made: made["events"][-1]["ended"].update(seed=None),
    "result's net": lambda made: made["result"].update(net=made["result"]["net"] + 1),
    "result's over": lambda made: made["result"].update(over="stopt"),
    "result's balance": lambda made: made["result"].pop("balance"),
    "result knows more": lambda made: made["result"].update(rank=1),
    "result is a text": lambda made: made.update(result="won"),
}
"""Ways to damage an artifact that leave it canonical JSON."""
BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "a line end": lambda text: text + b"\n",
    "indented": lambda text: json.dumps(json.loads(text), indent=1).encode(),
    "in another order": lambda text: b'{"result"' + text[text.index(b'"result"') + 8 : -1] + b",}",
    "cut": lambda text: text[:-10],
    "nothing": lambda text: b"",
    "a list": lambda text: b"[]",
    "a text": lambda text: b'"turret"',
    "not UTF-8": lambda text: text.replace(b"opened", b"\xff", 1),
    "with a mark": lambda text: b"\xef\xbb\xbf" + text,
    "a name twice": lambda text: text.replace(b'"format":1', b'"format":1,"format":1', 1),
    "a long number": lambda text: text.replace(b'"format":1', b'"format":10000000000000000', 1),
    "a number with a point": lambda text: text.replace(b'"format":1', b'"format":1.0', 1),
    "an escape": lambda text: text.replace(b"opened", b"\\u006fpened", 1),
    "deep": lambda text: text.replace(b'"format":1', b'"format":' + b"[" * 40 + b"]" * 40, 1),
    "a lone surrogate": lambda text: text.replace(b"simulation", b"\\ud800", 1),
}
"""Ways to damage its bytes."""
ODD = (
    None,
    True,
    0,
    1,
    -1,
    2**53 - 1,
    1 - 2**53,
    0.5,
    1e-7,
    "",
    "stop",
    "TD",
    "é",
    [],
    {},
    [[]],
    {"type": "stop"},
)


def damaged(session: bytes) -> Iterator[tuple[str, bytes]]:
    """Each change that can be made to a session; some change nothing that matters."""
    for name, change in CHANGES.items():
        made = msgspec.json.decode(session)
        try:
            change(made)
        except (KeyError, IndexError, AttributeError, TypeError):  # it has no such part
            continue
        yield name, encode(made)
    for name, spoil in BROKEN.items():
        yield name, spoil(session)


def mutated(session: bytes, count: int, seed: int) -> Iterator[bytes]:
    """A session with one value, taken by chance, that is another, is gone or stands twice."""
    chance = random.Random(seed)
    for _ in range(count):
        made = msgspec.json.decode(session)
        places = [*_places(made)]
        holder, key = chance.choice(places)
        match chance.randrange(4):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 0:
                holder.insert(key, copy.deepcopy(holder[key]))
            case 1 if isinstance(holder[key], int) and not isinstance(holder[key], bool):
                holder[key] += chance.choice((-1, 1))
            case 2:
                holder[key] = copy.deepcopy(chance.choice(places)[0])
            case _:
                holder[key] = copy.deepcopy(chance.choice(ODD))
        yield encode(made)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Everything in a value, by what holds it and where."""
    keys = range(len(value)) if isinstance(value, list) else [*value] if isinstance(value, dict) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
