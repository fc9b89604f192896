"""The wire's keys on disk: DATA/wire.key, one line a key, the present one last (wire.md, Keys).

1. Mode 0600; made at the first start, never again: missing beside a store that has rows, serve refuses to start.
2. The store remembers which keys it was served with, so that another store's wire.key is found out.
3. A directory into which everybody may write is refused: whoever can could put another key there.
"""

from pathlib import Path
from typing import Final

import msgspec

from broker.store.port import Put, Store, Unit
from broker.store.stored import stored
from broker.wire.keyring import Keyring, WireKey
from broker.wire.keys import SigningKey
from gateways.keyfile import write_private

FILE: Final = "wire.key"


class WireKeyError(Exception):
    """The wire's key can't be used; the message is one line for a person."""


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    seed: str
    since: int
    until: int | None = None


class _Known(msgspec.Struct, frozen=True):
    pks: tuple[str, ...]


async def open_keyring(directory: Path, store: Store, now_ms: int) -> Keyring:
    """The wire's keys for an open store; makes the first one for a store that was never served.

    Raises WireKeyError: the file is missing beside a store with rows, open to others, or another store's; or
    everybody may write into the directory.
    """
    path = directory / FILE
    _check_directory(directory)
    document = await store.get("wire", "keys")
    known = stored(_Known, document.doc, "wire", "keys").pks if document is not None else ()
    if not path.exists():
        if known:
            raise WireKeyError(
                f"{path} is missing, and the store was served with it: put back the copy that you keep of it"
            )
        _write(path, [_Line(SigningKey.generate().seed, now_ms)])
    keyring = Keyring(
        tuple(WireKey(SigningKey.from_seed(line.seed), line.since, line.until) for line in _read(path))
    )
    pks = tuple(row["pk"] for row in keyring.listing())
    if not set(known) <= set(pks):
        raise WireKeyError(f"{path} lacks a key that this store was served with: it belongs to another store")
    if pks != known:
        doc = msgspec.json.encode(_Known(pks))
        await store.commit(Unit(puts=(Put("wire", "keys", document.version if document else 0, doc),)))
    return keyring


def rotate(directory: Path, now_ms: int) -> str:
    """Add a new key to a stopped broker's wire.key; the old one signs on in its conversations. Returns the new pk.

    Raises WireKeyError where there is no usable file.
    """
    path = directory / FILE
    _check_directory(directory)
    lines = _read(path)
    lines[-1] = msgspec.structs.replace(lines[-1], until=now_ms)
    key = SigningKey.generate()
    _write(path, [*lines, _Line(key.seed, now_ms)])
    return key.pk


def _read(path: Path) -> list[_Line]:
    try:
        if path.stat().st_mode & 0o077:
            raise WireKeyError(f"{path} is open to others: chmod 600 {path}")
        lines = [
            msgspec.json.decode(line, type=_Line) for line in path.read_bytes().splitlines() if line.strip()
        ]
        for line in lines:
            SigningKey.from_seed(line.seed)
    except OSError as error:
        raise WireKeyError(f"{path}: {error.strerror}") from None
    except (msgspec.MsgspecError, ValueError):
        raise WireKeyError(f"{path} is not a wire.key: a line is no key") from None
    if not lines or lines[-1].until is not None:
        raise WireKeyError(f"{path} is not a wire.key: it ends without a present key")
    return lines


def _check_directory(directory: Path) -> None:
    try:
        mode = directory.stat().st_mode
    except OSError as error:
        raise WireKeyError(f"{directory}: {error.strerror}") from None
    if mode & 0o002:
        raise WireKeyError(f"{directory} can be written to by everybody: chmod o-w {directory}")


def _write(path: Path, lines: list[_Line]) -> None:
    try:
        write_private(path, b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    except OSError as error:
        raise WireKeyError(f"{path}: {error.strerror}") from None
