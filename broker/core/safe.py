"""Secrets that agents keep here, and templates that name them as `${NAME}` (docs/reference/trial.md, Secrets; pure).

1. A value is printable ASCII: wherever a template puts it, it ends no line and begins no header.
2. A template is filled once. What a value says is never read as a template.
3. `$${` is the text `${`. Every other `${` begins a name and its `}`; a template where it does not is refused when it
   is set, and not when it is used.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from broker.wire.refusals import Refusal, refuse

NAME: Final = "[A-Z][A-Z0-9_]{0,63}"
MOST: Final = 64
"""Secrets of one holder."""
MAX_VALUE: Final = 4_096
VALUE: Final = rf"[!-~]([ -~]{{0,{MAX_VALUE - 2}}}[!-~])?"
"""Printable ASCII, without spaces around it: a header would lose them."""
NO_SECRET: Final = refuse("NOT_FOUND", "there is no secret of this name", path="name")
_FULL: Final = refuse(
    "quota_exceeded", f"{MOST} secrets are kept; unset one first", reason="secrets", limit=MOST
)
_PART: Final = re.compile(rf"(?P<text>\$\$\{{)|\$\{{(?P<name>{NAME})\}}|(?P<wrong>\$\{{)")


class Kept(msgspec.Struct, frozen=True):
    """A secret as stored: its name, its value sealed by the key with the id `key`. Times are wall milliseconds."""

    name: str
    sealed: str
    key: str
    created_at: int
    updated_at: int


class SafeRow(msgspec.Struct, frozen=True):
    """What one holder keeps (kind "safe", id: an owner's, or an agent's that has none), in order of name."""

    kept: tuple[Kept, ...] = ()

    def find(self, name: str) -> Kept | None:
        """The secret of this name, or None."""
        return next((each for each in self.kept if each.name == name), None)


def with_secret(row: SafeRow, name: str, sealed: str, key: str, now: int) -> SafeRow | Refusal:
    """With this secret, new or instead of the one of its name."""
    before = row.find(name)
    if before is None and len(row.kept) >= MOST:
        return _FULL
    made = Kept(name, sealed, key, now if before is None else before.created_at, now)
    others = (each for each in row.kept if each.name != name)
    return replace(row, kept=tuple(sorted((*others, made), key=lambda each: each.name)))


def without_secret(row: SafeRow, name: str) -> SafeRow | Refusal:
    """Without this secret."""
    if row.find(name) is None:
        return NO_SECRET
    return replace(row, kept=tuple(each for each in row.kept if each.name != name))


def names_in(template: str) -> tuple[str, ...] | None:
    """The secrets that a template names, each once, in its order; None where a `${` begins none."""
    found: dict[str, None] = {}
    for part in _PART.finditer(template):
        if part["wrong"]:
            return None
        if part["name"]:
            found[part["name"]] = None
    return tuple(found)


def fill(template: str, values: Mapping[str, str]) -> str:
    """A template with the values of all that it names. KeyError for one that is not there."""
    return _PART.sub(lambda part: values[part["name"]] if part["name"] else "${", template)
