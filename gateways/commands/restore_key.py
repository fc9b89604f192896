"""The wire's key beside a backup: read and judged before anything is written. No message holds a seed."""

from pathlib import Path
from typing import Final

import msgspec

from broker.wire.keys import SigningKey
from gateways.commands.common import USAGE, Failure

FILE: Final = "wire.key"


class _Line(msgspec.Struct):
    seed: str
    since: int
    until: int | None = None


class _Known(msgspec.Struct):
    pks: tuple[str, ...]


def read_wire_key(path: Path) -> tuple[bytes, tuple[str, ...]]:
    """A key file's text and its public keys. Raises Failure: open to others, or no key file; OSError."""
    if path.stat().st_mode & 0o077:
        raise Failure("key_file", f"{path} is open to others: chmod 600 {path}", USAGE)
    text = path.read_bytes()
    return text, keys_in(text, str(path))


def keys_in(text: bytes, where: str) -> tuple[str, ...]:
    """The public keys of a key file's text, the present one last. Raises Failure."""
    try:
        lines = [msgspec.json.decode(line, type=_Line) for line in text.splitlines() if line.strip()]
        pks = tuple(SigningKey.from_seed(line.seed).pk for line in lines)
    except (msgspec.MsgspecError, ValueError):
        pks = ()
    if not pks:
        raise Failure("key_file", f"{where} is not a wire's key file", USAGE)
    return pks


def check_belongs(pks: tuple[str, ...], served_with: bytes | None, where: str) -> None:
    """See that the keys are those that the store was served with (its document). Raises Failure."""
    known = () if served_with is None else msgspec.json.decode(served_with, type=_Known).pks
    if not set(known) <= set(pks):
        raise Failure("key_file", f"{where} lacks a key that the store was served with", USAGE)
