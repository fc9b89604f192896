"""What a game of the arena is: a module of pure functions (docs/reference/arena.md, Games).

1. `deal` makes all that chance decides; `apply` alone sees it. What becomes public stands in facts, and the state is
   what `fold` makes of them: whoever has the facts has the state, without a secret.
2. Whole numbers alone: no float, no clock, no chance but the draws given. The same on every machine.
3. A version never changes once published: another rule is another version, in another file.
"""

import re
from types import ModuleType
from typing import Annotated, Any, Final, Literal, Protocol, cast

import msgspec
from msgspec import Meta

from broker.core.chance import Draws

MAX_ACTIONS: Final = 2_000
"""The most actions that a session of any game may have: its log is read at once."""
STOP: Final = "stop"
"""The arena's own action, which ends a session of any game."""
Over = str
"""Why a session is over: the game's word (`shoe_empty`, `bust`), or the arena's (`stopped`, `actions`, `expired`)."""


class Common(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What config has in every game; a game's Config adds its own to it."""

    client_seed: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=64,
                description="your part of the chance; without it the sha256 of the idempotency_key",
            ),
        ]
        | None
    ) = None
    commit: (
        Annotated[
            str,
            Meta(
                max_length=64,
                description="the next_commit that you saw: if it is another by now, nothing is opened (CONFLICT)",
            ),
        ]
        | None
    ) = None
    points: Annotated[
        int, Meta(ge=1, le=1_000_000, description="what the account of a simulation opens with")
    ] = 1_000
    reveal: Annotated[
        Literal["on_end", "never"],
        Meta(description="whether seed and salt are shown when the session is over"),
    ] = "on_end"


class Step(msgspec.Struct, frozen=True):
    """What an action led to."""

    facts: Any
    """What everybody may know of it, the game's Facts."""
    change: int = 0
    """Points that the player gains (from the house) or loses (to it). A loss beyond the account is cut to it."""
    over: Over | None = None
    """Why the game is over with this."""


class No(msgspec.Struct, frozen=True):
    """Why an action is not taken. `short`: the points that it needs, where it is for want of them."""

    message: str
    short: int | None = None


class Game(Protocol):
    """A module that is a game. Struct types are msgspec's, with `forbid_unknown_fields` for what comes from outside."""

    NAME: str
    """1 to 16 small letters, digits and hyphens."""
    VERSION: int
    TITLE: str
    RULES: str
    """The rules, for agents and people: Markdown."""
    WAGER: dict[str, Any]
    """What may be staked, for get_game."""
    Config: type[Common]
    Action: Any
    """The type of an action: a tagged struct, or a union of them (tag field `type`)."""
    Facts: type[msgspec.Struct]
    State: type[msgspec.Struct]

    def deal(self, config: Any, draws: Draws) -> Any:
        """All that chance decides in the session, hidden until it is over."""
        ...

    def first(self, config: Any, hidden: Any) -> Any:
        """The facts with which the session opens."""
        ...

    def begin(self, config: Any, facts: Any) -> Any:
        """The state with which it opens."""
        ...

    def legal_actions(self, state: Any, points: int) -> list[dict[str, Any]]:
        """What may be done now, as JSON; each with its `type` and what its members may be."""
        ...

    def apply(self, state: Any, hidden: Any, action: Any, points: int) -> Step | No:
        """What an action of the type Action leads to."""
        ...

    def fold(self, state: Any, facts: Any) -> Any:
        """The state after a step with these facts."""
        ...

    def observe(self, state: Any) -> dict[str, Any]:
        """What the player sees, as JSON."""
        ...


_NAME: Final = re.compile(r"[a-z0-9-]{1,16}")
_FUNCTIONS: Final = ("deal", "first", "begin", "legal_actions", "apply", "fold", "observe")
_TYPES: Final[dict[str, type]] = {"TITLE": str, "RULES": str, "WAGER": dict}


def as_game(module: ModuleType) -> Game:
    """A module as the game that it is. Raises ValueError with what it lacks."""
    members = vars(module)
    name, version = members.get("NAME"), members.get("VERSION")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise ValueError("NAME is 1 to 16 small letters, digits and hyphens")
    if type(version) is not int or not 1 <= version <= 10_000:
        raise ValueError("VERSION is a whole number from 1 to 10,000")
    for member, kind in _TYPES.items():
        if not isinstance(members.get(member), kind):
            raise ValueError(f"{member} is a {kind.__name__}")
    for member in _FUNCTIONS:
        if not callable(members.get(member)):
            raise ValueError(f"it has no function {member}")
    for member, base in (("Config", Common), ("Facts", msgspec.Struct), ("State", msgspec.Struct)):
        found = members.get(member)
        if not isinstance(found, type) or not issubclass(found, base):
            raise ValueError(f"{member} is a {base.__name__}")
    tags = action_types(members.get("Action"))
    if not tags or STOP in tags:
        raise ValueError(f"Action is one tagged struct or a union of them, and none of type {STOP!r}")
    return cast(Game, module)


def action_types(action: Any) -> tuple[str, ...]:
    """The `type`s of a game's actions; empty where it has another form."""
    try:
        info = msgspec.inspect.type_info(action)
    except TypeError:
        return ()
    each = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    structs = [one for one in each if isinstance(one, msgspec.inspect.StructType)]
    tags = [one.tag for one in structs if one.tag_field == "type" and isinstance(one.tag, str)]
    return tuple(tags) if len(tags) == len(each) else ()
