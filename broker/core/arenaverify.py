"""Whether the artifact of a finished session holds, by its bytes alone (docs/reference/arena.md, Artifacts).

1. What everybody can do again is done again, by the code that played: the commit, the deal, each action, each balance.
2. The first thing that does not hold is named, with the number of its event. What can't be checked is named too.
3. Bytes may come from anywhere: whatever they are, the answer is a report.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

import msgspec

from broker.core.arena import (
    KIND,
    Acted,
    Closed,
    Ended,
    Event,
    Live,
    Opened,
    act,
    artifact_of,
    change_of,
    deal_again,
    ended,
    fold,
    replay,
    transfer,
)
from broker.core.artifact import ref_of
from broker.core.chance import Secret, commit_of
from broker.core.games.game import MAX_ACTIONS, STOP, Common, Game
from broker.core.games.table import Table
from broker.wire.canonical import encode, parse
from broker.wire.ids import MAX_SAFE
from broker.wire.refusals import Refusal

FORMAT: Final = 1
What = Literal[
    "form",
    "ref",
    "kind",
    "event",
    "order",
    "game",
    "config",
    "points",
    "reveal",
    "commit",
    "deal",
    "action",
    "facts",
    "end",
    "result",
]
_HEX: Final = re.compile(r"[0-9a-f]{64}")
NEVER: Final = "the commit, the deal, and what each action led to: seed and salt are kept (reveal: never)"
PERSISTENT: Final = "what else moved the agent's persistent account: only this session is here"


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first thing that does not hold. `event`: its number, from 0; none where it is the whole."""

    what: What
    message: str
    event: int | None = None


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a check came to. `events`: how many hold, one after the other from the first."""

    ok: bool
    ref: str
    """Sha256 of the bytes, hex."""
    events: int = 0
    fault: Fault | None = None
    unchecked: tuple[str, ...] = ()
    """What nobody can check by these bytes."""
    game: str | None = None
    game_version: int | None = None
    agent_id: str | None = None
    mode: str | None = None
    over: str | None = None
    net: int | None = None
    balance: int | None = None


class _Artifact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    format: int
    events: list[Any]
    result: Any


class _Broken(Exception):
    """Something does not hold: raised inside, never out of `verify`."""

    def __init__(self, what: What, message: str, event: int | None = None) -> None:
        self.fault = Fault(what, message, event)


def verify(content: bytes, games: Table, ref: str | None = None) -> Report:
    """Check an artifact; with `ref` also that it is the one of that name."""
    check = _Check(games)
    fault = None
    try:
        check.whole(content, ref)
    except _Broken as broken:
        fault = broken.fault
    shown = Report(fault is None, ref_of(content), check.holding, fault, check.unchecked)
    if (opened := check.opened) is None:
        return shown
    shown = msgspec.structs.replace(
        shown, game=opened.game, game_version=opened.game_version, agent_id=opened.agent_id, mode=opened.mode
    )
    if fault is not None or (live := check.live) is None or live.ended is None:
        return shown
    return msgspec.structs.replace(shown, over=live.ended.over, net=live.net, balance=live.balance)


class _Check:
    """One check, and how far it came."""

    def __init__(self, games: Table) -> None:
        self._games = games
        self.holding = 0
        self.opened: Opened | None = None
        self.live: Live | None = None
        self.unchecked: tuple[str, ...] = ()

    def whole(self, content: bytes, ref: str | None) -> None:
        """Raises _Broken for the first thing that does not hold."""
        if ref is not None and ref_of(content) != ref:
            raise _Broken("ref", f"the hash of these bytes is {ref_of(content)}")
        made = _read(content)
        events: list[Event] = [_written_out("event", each, Event, n) for n, each in enumerate(made.events)]
        if not events or not isinstance(events[0], Opened):
            raise _Broken("order", "the first event is that the session was opened", 0)
        self.opened = opened = events[0]
        game = self._games.find(opened.game, opened.game_version)
        if game is None:
            raise _Broken("game", f"{opened.game} {opened.game_version} is not known here", 0)
        config = _config(game, opened)
        secret = _revealed(config, events)
        self.unchecked = (
            *(() if secret is not None else (NEVER,)),
            *((PERSISTENT,) if opened.mode == "persistent" else ()),
        )
        _opening(opened, config)
        hidden = None
        if secret is None:
            _written_out("deal", opened.facts, game.Facts, 0)
        else:
            if commit_of(secret, opened.agent_id, opened.games) != opened.commit:
                raise _Broken("commit", "seed, salt, agent and number make another commit", 0)
            hidden = deal_again(game, opened, config, secret.seed)
            if not _same(game.first(config, hidden), opened.facts):
                raise _Broken("deal", "seed and client seed deal other facts", 0)
        with _following("deal", 0):
            self.live = live = replay(game, [opened])
        self.holding = 1
        for n, event in enumerate(events[1:], 1):
            self.live = live = _next(game, live, hidden, secret, event, n)
            self.holding = n + 1
        try:
            whole = artifact_of(events)
        except ValueError as error:  # sums of hidden points may be beyond what JSON has
            raise _Broken("result", str(error)) from None
        if whole != content:
            raise _Broken("result", "the result is not what the events come to")


def _read(content: bytes) -> _Artifact:
    parsed = parse(content, code="bad_request")
    if isinstance(parsed, Refusal):
        raise _Broken("form", parsed.message)
    value, text = parsed
    if text != content:
        raise _Broken("form", "these bytes are not the canonical form (RFC 8785) of their value")
    try:
        made = msgspec.convert(value, _Artifact)
    except msgspec.ValidationError as error:
        raise _Broken("kind", f"this is no artifact of a session: {error}") from None
    if (made.kind, made.format) != (KIND, FORMAT):
        raise _Broken("kind", f"{KIND}, format {FORMAT}, is what is read here")
    return made


def _config(game: Game, opened: Opened) -> Common:
    config: Common = _written_out("config", opened.config, game.Config, 0)
    seed = config.client_seed
    if opened.client_seed != seed if seed is not None else _HEX.fullmatch(opened.client_seed) is None:
        raise _Broken("config", "the client seed is not the config's, nor a sha256", 0)
    if config.commit not in (None, opened.commit):
        raise _Broken("config", "the config names another commit", 0)
    return config


def _revealed(config: Common, events: Sequence[Event]) -> Secret | None:
    """Seed and salt, where the config has them shown."""
    last, n = events[-1], len(events) - 1
    end = None if isinstance(last, Opened) else last.ended
    if end is None:
        raise _Broken("end", "the last event does not end the session", n)
    if config.reveal == "never":
        return None
    if end.seed is None or end.salt is None or not _HEX.fullmatch(end.seed) or not _HEX.fullmatch(end.salt):
        raise _Broken("reveal", "seed and salt are shown at the end, 64 hex characters each", n)
    return Secret(end.seed, end.salt)


def _opening(opened: Opened, config: Common) -> None:
    """What the account opens with is the mint's, and in a simulation what the config says."""
    change, had = change_of(opened.entries), opened.mode == "persistent"
    if opened.entries != transfer("mint", change):
        raise _Broken("points", "the entries are the mint's and the player's, and sum to 0", 0)
    if opened.balance <= 0 or not (change == opened.balance or (had and change == 0)):
        raise _Broken("points", "the account opens with what the mint gives it", 0)
    if not had and opened.balance != config.points:
        raise _Broken("points", f"a simulation opens with config.points, {config.points}", 0)
    if not 0 <= opened.games < MAX_SAFE:
        raise _Broken("commit", "an agent's sessions are numbered from 0", 0)
    if _HEX.fullmatch(opened.commit) is None:
        raise _Broken("commit", "a commit is a sha256", 0)


def _next(game: Game, live: Live, hidden: Any, secret: Secret | None, event: Event, n: int) -> Live:
    """The state after an event that holds."""
    if isinstance(event, Opened):
        raise _Broken("order", "a session is opened once", n)
    if live.ended is not None:
        raise _Broken("order", "nothing follows the end of a session", n)
    if isinstance(event, Closed):
        made = Closed(Ended("expired") if secret is None else ended(live, secret, "expired"))
        if event != made:
            raise _Broken(
                "end", "a session that nobody ended has expired, with the secret as its config says", n
            )
    else:
        before = _points_before(live, event, n)
        if secret is None:
            _likely(game, event, n)
        else:
            _compare(event, act(game, live, hidden, secret, live.version, event.action, before), n)
    with _following("facts", n):
        return fold(game, live, event)


def _points_before(live: Live, event: Acted, n: int) -> int:
    """The points with which an action was done, by its own entries; in a simulation those that there were."""
    change = change_of(event.entries)
    if event.entries != transfer("house", change):
        raise _Broken("points", "the entries are the house's and the player's, and sum to 0", n)
    before = event.balance - change
    if event.balance < 0 or before < 0:
        raise _Broken("points", "the account is below 0", n)
    if live.opened.mode == "simulation" and before != live.balance:
        raise _Broken("points", f"the account had {live.balance} points, and not {before}", n)
    return before


def _compare(event: Acted, made: Acted | Refusal, n: int) -> None:
    """An event is what its action leads to."""
    if isinstance(made, Refusal):
        raise _Broken("action", f"{made.code}: {made.message}", n)
    if not _same(made.action, event.action):
        raise _Broken("action", "it is not written as it is published", n)
    if not _same(made.facts, event.facts):
        raise _Broken("facts", "the action leads to other facts", n)
    if (made.balance, made.entries) != (event.balance, event.entries):
        raise _Broken("points", f"the action leaves {made.balance} points", n)
    if made.ended != event.ended:
        raise _Broken("end", "the session is over when the game says so, with the secret of all of it", n)


def _likely(game: Game, event: Acted, n: int) -> None:
    """What an event must be whatever was hidden."""
    end = event.ended
    if end is not None and (end.seed is not None or end.salt is not None):
        raise _Broken("reveal", "seed and salt are kept (reveal: never)", n)
    if n >= MAX_ACTIONS and end is None:
        raise _Broken("end", f"a session is over after {MAX_ACTIONS} actions", n)
    if event.action == {"type": STOP}:
        if event.facts is not None or event.entries or end != Ended("stopped"):
            raise _Broken("end", "to stop shows nothing, moves nothing, and ends the session", n)
        return
    _written_out("action", event.action, game.Action, n)
    _written_out("facts", event.facts, game.Facts, n)


def _written_out(what: What, value: Any, kind: Any, n: int) -> Any:
    """A value of a type, as that type is written: with what it has by default, and nothing else."""
    try:
        read = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _Broken(what, str(error), n) from None
    if not _same(read, value):
        raise _Broken(what, "it is not written as it is published", n)
    return read


@contextmanager
def _following(what: What, n: int) -> Iterator[None]:
    """A game follows the facts that it made itself: of others, which are hidden from us, it may raise anything."""
    try:
        yield
    except Exception as error:
        raise _Broken(what, f"the game can't follow these facts: {error!r}", n) from error


def _same(one: Any, other: Any) -> bool:
    """Whether both are the same JSON: 1 is not true."""
    return encode(msgspec.to_builtins(one)) == encode(other)
