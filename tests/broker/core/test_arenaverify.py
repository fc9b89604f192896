"""Whether an artifact holds: what was played does; each kind of damage is named, with its event."""

import hashlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.actors.artifacts import read_artifact
from broker.config import Arena
from broker.core.arena import artifact_of
from broker.core.arenaverify import NEVER, PERSISTENT, Report, verify
from broker.core.chance import Secret, commit_of
from broker.core.games import hilo, rfq
from broker.core.games.game import MAX_ACTIONS, Game
from broker.core.games.table import Table, load
from broker.wire.canonical import encode
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.arena import open_session, submit
from tests.support.broker import Bench
from tests.support.games import AGENT, SECRET, plain, played

GAMES = load(Arena().games)
Damage = Callable[[Any], None]


def made(game: Game = rfq, **parts: Any) -> bytes:
    return artifact_of(played(game, **parts))


def damaged(content: bytes, damage: Damage) -> bytes:
    value = msgspec.json.decode(content)
    damage(value)
    return encode(value)


def put(*path: Any, to: Any) -> Damage:
    """Put a value where this path leads."""

    def damage(value: Any) -> None:
        for name in path[:-1]:
            value = value[name]
        if to is ...:
            del value[path[-1]]
        else:
            value[path[-1]] = to(value[path[-1]]) if callable(to) else to

    return damage


def at(n: int, *path: Any, to: Any) -> Damage:
    return put("events", n, *path, to=to)


def events(change: Callable[[list[Any]], Any]) -> Damage:
    return lambda value: change(value["events"])


def both(*damages: Damage) -> Damage:
    def damage(value: Any) -> None:
        for each in damages:
            each(value)

    return damage


def plus(points: int) -> Callable[[int], int]:
    return lambda value: value + points


WHOLE = made()
SHORT = made(actions=6)  # event 7 is the stop
KEPT = made(actions=6, reveal="never")
KEPT_SHOE = made(hilo, actions=6, reveal="never")
OTHER = "ab" * 32
_CHANGE = msgspec.json.decode(WHOLE)["events"][1]["entries"][1][1]


@pytest.mark.requirement("games.verify")
@pytest.mark.parametrize("game", [hilo, rfq])
@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"actions": 0},
        {"actions": 0, "closed": True},
        {"actions": 9},
        {"actions": 9, "closed": True, "client_seed": "mine ♠"},
        {"mode": "persistent", "actions": 4},
        {"commit": commit_of(SECRET, AGENT, 3)},
        {"points": 40},
    ],
)
def test_what_was_played_holds(game: Game, parts: dict[str, Any]) -> None:
    content = made(game, **parts)
    found = verify(content, GAMES, hashlib.sha256(content).hexdigest())
    assert found.fault is None
    result = msgspec.json.decode(content)["result"]
    assert (found.over, found.net, found.balance) == (result["over"], result["net"], result["balance"])
    assert found.events == len(msgspec.json.decode(content)["events"])
    assert found.unchecked == ((PERSISTENT,) if "mode" in parts else ())
    assert (found.ok, found.game, found.agent_id) == (True, game.NAME, AGENT)


@pytest.mark.requirement("games.verify")
@pytest.mark.parametrize("game", [hilo, rfq])
@pytest.mark.parametrize("closed", [True, False])
def test_where_the_secret_is_kept_it_says_what_nobody_can_check(game: Game, closed: bool) -> None:
    found = verify(made(game, reveal="never", actions=5, closed=closed), GAMES)
    assert (found.fault, found.unchecked, found.events) == (None, (NEVER,), 7)


DAMAGES: dict[str, tuple[bytes, Damage, str, int | None]] = {
    "kind": (WHOLE, put("kind", to="turret.arena.game"), "kind", None),
    "format": (WHOLE, put("format", to=2), "kind", None),
    "member": (WHOLE, put("more", to=1), "kind", None),
    "no events": (WHOLE, put("events", to=[]), "order", 0),
    "event type": (WHOLE, at(4, "type", to="acting"), "event", 4),
    "event member": (WHOLE, at(4, "more", to=1), "event", 4),
    "not an int": (WHOLE, at(4, "balance", to="1"), "event", 4),
    "not opened": (WHOLE, events(lambda each: each.pop(0)), "order", 0),
    "opened twice": (WHOLE, events(lambda each: each.insert(3, each[0])), "order", 3),
    "unknown game": (WHOLE, at(0, "game", to="poker"), "game", 0),
    "unknown version": (WHOLE, at(0, "game_version", to=2), "game", 0),
    "other game": (WHOLE, at(0, "game", to="hilo"), "config", 0),
    "config member": (WHOLE, at(0, "config", "more", to=1), "config", 0),
    "config bounds": (WHOLE, at(0, "config", "steps", to=251), "config", 0),
    "config default": (WHOLE, at(0, "config", "steps", to=...), "config", 0),
    "config points": (WHOLE, at(0, "config", "points", to=0), "config", 0),
    "config client seed": (WHOLE, at(0, "config", "client_seed", to="mine"), "config", 0),
    "config commit": (WHOLE, at(0, "config", "commit", to=OTHER), "config", 0),
    "kept: no commit": (KEPT, at(0, "commit", to="no sha256"), "commit", 0),
    "kept: no card": (KEPT_SHOE, at(0, "facts", "card", to="2CC"), "deal", 0),
    "kept: no suit": (KEPT_SHOE, at(1, "facts", "card", to="2"), "facts", 1),
    "default client seed": (WHOLE, at(0, "client_seed", to="mine"), "config", 0),
    "other config": (WHOLE, at(0, "config", "inventory_limit", to=5), "action", 2),
    "longer tape": (WHOLE, at(0, "config", "steps", to=60), "facts", 50),
    "agent": (WHOLE, at(0, "agent_id", to="ag_other"), "commit", 0),
    "number": (WHOLE, at(0, "games", to=4), "commit", 0),
    "number below": (WHOLE, at(0, "games", to=-1), "commit", 0),
    "commit": (WHOLE, at(0, "commit", to=OTHER), "commit", 0),
    "seed": (WHOLE, at(-1, "ended", "seed", to=OTHER), "commit", 0),
    "salt": (WHOLE, at(-1, "ended", "salt", to=OTHER), "commit", 0),
    "no salt": (WHOLE, at(-1, "ended", "salt", to=...), "reveal", 50),
    "no hex": (WHOLE, at(-1, "ended", "seed", to="x"), "reveal", 50),
    "client seed": (WHOLE, at(0, "client_seed", to="cd" * 32), "deal", 0),
    "deal": (WHOLE, at(0, "facts", "size", to=lambda size: size % 5 + 1), "deal", 0),
    "opening": (WHOLE, at(0, "balance", to=900), "points", 0),
    "opening points": (
        WHOLE,
        both(at(0, "balance", to=900), at(0, "entries", to=[["mint", -900], ["player", 900]])),
        "points",
        0,
    ),
    "mint": (WHOLE, at(0, "entries", 0, 1, to=-999), "points", 0),
    "illegal": (WHOLE, at(3, "action", "bid", to=1), "action", 3),
    "no action": (WHOLE, at(3, "action", to={"type": "dance"}), "action", 3),
    "action written otherwise": (WHOLE, at(3, "action", to=lambda each: {**each, "x": 1}), "action", 3),
    "another action": (WHOLE, at(1, "action", to={"type": "stop"}), "facts", 1),
    "facts": (WHOLE, at(5, "facts", "reference", to=plus(1)), "facts", 5),
    "entries": (WHOLE, at(1, "entries", 0, 1, to=plus(1)), "points", 1),
    "entry to the mint": (WHOLE, at(1, "entries", 0, 0, to="mint"), "points", 1),
    "no entries": (WHOLE, at(1, "entries", to=...), "points", 1),
    "points": (
        WHOLE,
        both(
            at(1, "balance", to=plus(1)),
            at(1, "entries", to=[["house", -_CHANGE - 1], ["player", _CHANGE + 1]]),
        ),
        "points",
        1,
    ),
    "balance": (WHOLE, at(2, "balance", to=plus(5)), "points", 2),
    "below 0": (WHOLE, at(2, "balance", to=-5), "points", 2),
    "left out": (WHOLE, events(lambda each: each.pop(5)), "points", 5),
    "cut": (WHOLE, events(lambda each: each.pop()), "end", 49),
    "ended twice": (WHOLE, events(lambda each: each[7].update(ended=each[-1]["ended"])), "end", 7),
    "goes on": (
        SHORT,
        events(lambda each: each.append({"type": "closed", "ended": each[-1]["ended"]})),
        "order",
        8,
    ),
    "over": (WHOLE, at(-1, "ended", "over", to="bust"), "end", 50),
    "never stopped": (SHORT, at(-1, "ended", "over", to="tape_over"), "end", 7),
    "another end": (made(actions=2, closed=True), at(-1, "ended", "over", to="stopped"), "end", 3),
    "result": (WHOLE, put("result", "net", to=plus(1)), "result", None),
    "result's actions": (WHOLE, put("result", "actions", to=plus(1)), "result", None),
    "result's member": (WHOLE, put("result", "more", to=1), "result", None),
    "kept, but shown": (KEPT, at(-1, "ended", "seed", to=OTHER), "reveal", 7),
    "kept, facts": (KEPT, at(3, "facts", to={}), "facts", 3),
    "kept, no facts": (KEPT, at(3, "facts", to=...), "facts", 3),
    "kept, action": (KEPT, at(3, "action", "bid", to="1"), "action", 3),
    "kept, first facts": (KEPT, at(0, "facts", to={"card": "2C"}), "deal", 0),
    "kept, stop with points": (
        KEPT,
        both(at(-1, "entries", to=[["house", -1], ["player", 1]]), at(-1, "balance", to=plus(1))),
        "end",
        7,
    ),
    "kept, entries": (KEPT, at(1, "entries", 0, 1, to=plus(1)), "points", 1),
    "kept, entry to the mint": (KEPT, at(1, "entries", 0, 0, to="mint"), "points", 1),
    "kept, balance": (KEPT, at(3, "balance", to=plus(1)), "points", 3),
    "kept, beyond JSON": (
        KEPT,
        both(
            at(0, "mode", to="persistent"),
            *(
                damage
                for n in (1, 2, 3)
                for damage in (
                    at(n, "entries", to=[["house", 1 - (1 << 53)], ["player", (1 << 53) - 1]]),
                    at(n, "balance", to=(1 << 53) - 1),
                )
            ),
        ),
        "result",
        None,
    ),
}


@pytest.mark.requirement("games.verify")
@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_is_named_with_its_event(name: str) -> None:
    content, damage, what, event = DAMAGES[name]
    assert verify(content, GAMES).ok
    found = verify(damaged(content, damage), GAMES)
    assert found.fault is not None
    assert (found.fault.what, found.fault.event) == (what, event), found.fault
    assert found.ok is False
    assert (found.over, found.net) == (None, None)
    if event is not None and what not in ("event", "reveal") and name != "cut":
        assert found.events == event


def longer(game: Game, many: int) -> bytes:
    """A session whose secret is kept, with the same action over and over before its end."""

    def repeat(value: Any) -> None:
        opened, acted, *_, last = value["events"]
        made = [
            {**acted, "balance": opened["balance"] + n, "entries": [["house", -1], ["player", 1]]}
            for n in range(1, many + 1)
        ]
        value["events"] = [opened, *made, {**last, "balance": opened["balance"] + many}]
        value["result"] |= {"actions": many + 1, "net": many, "balance": opened["balance"] + many}

    return damaged(made(game, actions=1, reveal="never"), repeat)


@pytest.mark.requirement("games.verify")
@pytest.mark.parametrize(("game", "most"), [(hilo, 4), (rfq, 50)])
def test_no_kept_secret_hides_cards_that_the_shoe_has_not_nor_a_longer_tape(game: Game, most: int) -> None:
    assert verify(longer(game, most), GAMES).fault is None
    found = verify(longer(game, most + 1), GAMES)
    assert found.fault is not None
    assert (found.fault.what, found.fault.event) == ("facts", most + 1)


@pytest.mark.requirement("games.verify")
def test_no_kept_secret_hides_more_actions_than_a_session_has() -> None:
    endless = SimpleNamespace(**{**vars(rfq), "fold": lambda state, facts: state})
    games = Table([endless])
    assert verify(longer(rfq, MAX_ACTIONS - 1), games).fault is None
    found = verify(longer(rfq, MAX_ACTIONS), games)
    assert found.fault is not None
    assert (found.fault.what, found.fault.event) == ("end", MAX_ACTIONS)


@pytest.mark.requirement("games.verify")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"junk",
        b"\xff",
        b"[]",
        b"null",
        WHOLE + b"\n",
        WHOLE.replace(b":1000,", b":1e3,", 1),
        WHOLE.replace(b'{"events"', b'{"events":1,"events"', 1),
        b"[" * 50 + b"]" * 50,
    ],
)
def test_bytes_that_are_no_canonical_artifact_are_said_to_be_none(content: bytes) -> None:
    found = verify(content, GAMES)
    assert found.fault is not None
    assert found.fault.what in ("form", "kind")
    assert found.ref == hashlib.sha256(content).hexdigest()


@pytest.mark.requirement("games.verify")
def test_another_ref_is_said_first() -> None:
    found = verify(b"junk", GAMES, OTHER)
    assert found.fault is not None
    assert found.fault.what == "ref"
    assert isinstance(verify(WHOLE, GAMES, OTHER), Report)


@pytest.mark.requirement("games.verify")
def test_who_names_a_secret_of_its_own_must_name_what_it_deals() -> None:
    """An artifact that is whole, of another seed under its own commit, is another session: only the commit that
    the player saw before tells them apart."""
    other = Secret("33" * 32, "44" * 32)
    assert verify(made(secret=other), GAMES).ok
    found = verify(
        damaged(
            WHOLE,
            both(
                at(-1, "ended", "seed", to=other.seed),
                at(-1, "ended", "salt", to=other.salt),
                at(0, "commit", to=commit_of(other, AGENT, 3)),
            ),
        ),
        GAMES,
    )
    assert found.fault is not None
    assert found.fault.what in ("deal", "facts")


@pytest.mark.requirement("games.verify")
def test_a_game_that_is_not_known_is_no_crash() -> None:
    found = verify(WHOLE, Table([]))
    assert found.fault is not None
    assert (found.fault.what, found.game) == ("game", "rfq")


@pytest.mark.requirement("games.verify")
async def test_sessions_with_one_persistent_account_hold_each_by_itself(bench: Bench) -> None:
    """What the other one won and lost between two events is no fault of this one."""
    ann = await make_agent(bench, "Ann")
    sessions = [await open_session(bench, ann, name, mode="persistent") for name in ("hilo", "rfq", "hilo")]
    for n in range(12):
        for at, session in enumerate(sessions):
            action = {"type": "stop"} if n == 11 else plain(session["legal_actions"])
            done = await submit(bench, ann, session, action)
            assert not isinstance(done, Refusal), done
            sessions[at] = done["session"]
    store = bench.broker._services.store
    found = []
    for session in sessions:
        content = await read_artifact(store, session["artifact"]["ref"])
        assert content is not None
        found.append(verify(content, GAMES, session["artifact"]["ref"]))
    assert [each.fault for each in found] == [None] * 3
    assert {each.unchecked for each in found} == {(PERSISTENT,)}
    assert sum(each.net or 0 for each in found) == sessions[-1]["account"]["balance"] - 10_000


_values = st.none() | st.booleans() | st.integers(-(1 << 53) + 1, (1 << 53) - 1) | st.text(max_size=5)
_trees = st.recursive(
    _values,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each, max_size=3),
    max_leaves=6,
)


@pytest.mark.requirement("games.verify")
@given(
    st.sampled_from([SHORT, KEPT, made(hilo, actions=6), made(hilo, actions=6, reveal="never")]), st.data()
)
def test_whatever_stands_anywhere_the_answer_is_a_report(content: bytes, data: st.DataObject) -> None:
    """One value, anywhere in it, is another: that is a fault, whatever it is."""
    value = msgspec.json.decode(content)
    parent: Any = None
    place: Any = value
    while isinstance(place, dict | list) and (parent is None or data.draw(st.integers(0, 4))):
        if not place:
            break
        name = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        parent, place = place, place[name]
    parent[name] = data.draw(_trees.filter(lambda tree: encode(tree) != encode(place)))
    found = verify(encode(value), GAMES)
    if found.ok:  # only what nothing binds, where the secret is kept
        assert found.unchecked == (NEVER,)
