"""Guard rails: what the key may sign for a model, decided before anything is signed (pure).

1. A rail looks at the bytes to be signed and at what they answer, never at what the model says about them.
2. What a rail can't judge it refuses: an amount that is no plain number, a counterparty that it can't name.
3. Every envelope passes all rails but END: hanging up is always allowed.

A rail narrows what the holder of the key allows; whoever can change the settings or read the key file is not
held by it.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,64}(\.[0-9]{1,64})?([eE][+-]?[0-9]{1,6})?", re.ASCII)
FREE: Final = frozenset({"CALL", "PICKUP"})
"""Types that the list of types does not govern: the wire gives them their place, and they agree to nothing."""


class Blocked(msgspec.Struct, frozen=True):
    """The agent's own "no", beside the wire's refusals: `code` is always guard_rail.

    `rule`: counterparty, type, cap, ask_before or code. `way_out`: what can be done instead. `detail`: figures.
    """

    rule: str
    message: str
    way_out: str
    detail: Mapping[str, Any] = {}

    def body(self) -> dict[str, Any]:
        """In the form of a refusal: {code, status, message, retryable, rule, …}."""
        head = {"code": "guard_rail", "status": 403, "message": self.message, "retryable": False}
        return {**head, "rule": self.rule, **self.detail}


class Rails(msgspec.Struct, frozen=True, kw_only=True):
    """What is allowed. None allows everything of its kind; an empty set nothing."""

    counterparties: frozenset[str] | None = None
    """Desk codes and pks."""
    caps: Mapping[str, Decimal] = {}
    """By a body's member (in any case of letters): the largest amount, whatever its sign."""
    types: frozenset[str] | None = None
    """Envelope types, beside CALL, PICKUP and END."""
    ask_before: frozenset[str] = frozenset()
    """Envelope types for which the client's user is asked first."""
    code: str | None = None
    """The only desk that may be opened."""

    def knows_code(self, code: str) -> bool:
        """Whether the code alone is reason enough to deal."""
        return self.counterparties is None or code in self.counterparties

    def check_party(self, pk: str, code: str) -> Blocked | None:
        """Whether this key, which answers to this code, may be dealt with."""
        if self.knows_code(code) or (self.counterparties is not None and pk in self.counterparties):
            return None
        return Blocked(
            "counterparty",
            "this counterparty is not among those that the agent's settings allow",
            "Deal with one that who lists under rails.counterparties, or ask the person who runs the agent.",
            {"pk": pk},
        )

    def check_code(self, code: str) -> Blocked | None:
        """Whether the agent may open this desk."""
        if self.code is None or code == self.code:
            return None
        return Blocked(
            "code",
            f"the agent's settings name {self.code} as its only desk",
            f"Use open_desk with {self.code}.",
            {"allowed": self.code},
        )

    def check_envelope(
        self, type: str, body: Mapping[str, Any], said: Sequence[Mapping[str, Any]] = ()
    ) -> Blocked | None:
        """Whether an envelope may be signed. `said`: the bodies of the call so far, the oldest first."""
        if type == "END":
            return None
        if self.types is not None and type not in self.types and type not in FREE:
            return Blocked(
                "type",
                f"the agent's settings allow no envelope of type {type}",
                f"Allowed are: {', '.join(sorted(self.types)) or 'none'}.",
                {"allowed": sorted(self.types)},
            )
        for name, cap in self.caps.items():
            if (blocked := self._check_cap(name, cap, type, body, said)) is not None:
                return blocked
        return None

    def _check_cap(
        self, name: str, cap: Decimal, type: str, body: Mapping[str, Any], said: Sequence[Mapping[str, Any]]
    ) -> Blocked | None:
        """What the envelope names itself; else what was last named in the call, for it answers that."""
        own = list(_named(body, name))
        for value in own:
            if (why := _beyond(value, cap)) is not None:
                message = f"{name} {why}"
                return _capped(name, cap, message, f"Send {name} as a number of at most {cap:f}, or hang up.")
        if own or type in FREE:
            return None
        inherited = next((found for each in reversed(said) if (found := list(_named(each, name)))), [])
        for value in inherited:
            if (why := _beyond(value, cap)) is not None:
                message = f"{name} as it was last named in this call {why}"
                way_out = f"Name {name} in this envelope, as a number of at most {cap:f}, or hang up."
                return _capped(name, cap, message, way_out)
        return None

    def shown(self) -> dict[str, Any]:
        """The settings for the tool `who` and for the log."""
        return {
            "counterparties": _listed(self.counterparties),
            "types": _listed(self.types),
            "caps": {name: f"{cap:f}" for name, cap in self.caps.items()},
            "ask_before": sorted(self.ask_before),
            **({} if self.code is None else {"code": self.code}),
        }


def read_amount(value: Any) -> Decimal | None:
    """A JSON number or a numeric string, exactly; None for anything else (also for `5M`, `5,000` and `5_000`)."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = value if isinstance(value, str) else repr(value)
    if _NUMBER.fullmatch(text) is None:
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _beyond(value: Any, cap: Decimal) -> str | None:
    """Why the value does not pass; None where it does."""
    amount = read_amount(value)
    if amount is None:
        return "is no plain number, so that its cap can't be checked"
    # copy_abs and comparing are exact; abs() would round to the context's precision.
    return f"is beyond the cap of {cap:f}" if amount.copy_abs() > cap else None


def _capped(name: str, cap: Decimal, message: str, way_out: str) -> Blocked:
    return Blocked("cap", message, way_out, {"member": name, "cap": f"{cap:f}"})


def _named(value: Any, name: str) -> Iterator[Any]:
    """Every value that stands under this name, at any depth. A body is at most 32 deep (wire.md)."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if str(key).casefold() == name.casefold():
                yield inner
            yield from _named(inner, name)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _named(inner, name)


def _listed(names: Collection[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)
