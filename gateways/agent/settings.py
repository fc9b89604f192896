"""The agent's rails out of a TOML file and the command line.

1. A setting that can't be read stops the agent before it starts: a misspelled rail must not vanish.
2. What the command line gives stands in place of the file's setting; caps are merged member by member.

    counterparties = ["BRAV"]
    types = ["RFQ", "HIT", "CONFIRM"]
    ask_before = ["HIT"]
    code = "ALFA"

    [caps]
    qty = "5000000"
"""

import tomllib
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

import msgspec

from broker.wire.ids import CODE, PK, TYPE
from gateways.agent.rails import Rails, read_amount


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings as they were written; None and empty: not given."""

    counterparties: list[str] | None = None
    types: list[str] | None = None
    ask_before: list[str] | None = None
    code: str | None = None
    caps: dict[str, int | str] = {}


def read_file(path: Path) -> Given:
    """The settings of a TOML file. Raises ValueError with the file's name, OSError."""
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), type=Given)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as fault:
        raise ValueError(f"{path}: {fault}") from None


def read_caps(texts: Iterable[str]) -> dict[str, int | str]:
    """MEMBER=AMOUNT as the command line has it. Raises ValueError."""
    found: dict[str, int | str] = {}
    for text in texts:
        name, equals, amount = text.partition("=")
        if not equals:
            raise ValueError(f"a cap is MEMBER=AMOUNT, not {text!r}")
        found[name] = amount
    return found


def make_rails(file: Given, line: Given) -> Rails:
    """The rails of a file and a command line. Raises ValueError for what has not the form of its kind."""
    counterparties = _chosen(line.counterparties, file.counterparties)
    types = _chosen(line.types, file.types)
    ask_before = _chosen(line.ask_before, file.ask_before) or []
    code = line.code if line.code is not None else file.code
    for each in counterparties or ():
        if not CODE.fullmatch(each) and not PK.fullmatch(each):
            raise ValueError(f"a counterparty is a desk's code or a pk, not {each!r}")
    for each in [*(types or ()), *ask_before]:
        if not TYPE.fullmatch(each):
            raise ValueError(f"a type is written in capitals, as RFQ, not {each!r}")
    if "END" in ask_before:
        raise ValueError("END can't be asked for: hanging up is always allowed")
    if code is not None and not CODE.fullmatch(code):
        raise ValueError(f"a desk's code is four capital letters, not {code!r}")
    return Rails(
        counterparties=None if counterparties is None else frozenset(counterparties),
        caps={name: _cap(name, amount) for name, amount in {**file.caps, **line.caps}.items()},
        types=None if types is None else frozenset(types),
        ask_before=frozenset(ask_before),
        code=code,
    )


def _chosen(line: list[str] | None, file: list[str] | None) -> list[str] | None:
    return line if line is not None else file


def _cap(name: str, amount: int | str) -> Decimal:
    value = read_amount(amount)
    if not name or value is None or value < 0:
        raise ValueError(f"a cap is a member's name and a number from 0, not {name}={amount}")
    return value
