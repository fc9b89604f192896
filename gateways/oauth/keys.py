"""The authorization server's keys: DATA/oauth.keys, the present one last (network.md, Sign-in; RFC 7517).

1. Mode 0600; made when it is missing. Losing it ends no sign-in: tokens live 15 minutes, and refresh tokens are the
   store's.
2. The present key signs for 30 days. An old one stays in the JWK set until every token that it signed is over.
3. A private key leaves this module to sign, and in no text.
"""

import logging
from pathlib import Path
from typing import Any, Final

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey

from gateways.keyfile import write_private
from gateways.oauth import jose

FILE: Final = "oauth.keys"
ROTATE_MS: Final = 30 * 86_400_000
"""A key signs so long."""
ACCESS_S: Final = 900
"""How long an access token lives."""
MARGIN_MS: Final = 300_000
"""How much longer an old key stays than the last token that it signed: clocks of others differ."""
AGAIN_MS: Final = 60_000
"""How long after a key that could not be written another is tried."""
log = logging.getLogger(__name__)


class SignInKeyError(Exception):
    """The file of keys can't be used; the message is one line for a person."""


class _Row(msgspec.Struct, frozen=True, omit_defaults=True):
    d: str
    x: str
    since: int
    until: int | None = None
    """Wall milliseconds since when it signs no more."""


class SigningKeys:
    """The keys of one authorization server. `path` None keeps them in memory alone (tests)."""

    def __init__(self, path: Path | None, rows: list[_Row]) -> None:
        self._path = path
        self._rows = rows
        self._keys = [_key(row) for row in rows]
        self._again_at = 0

    @classmethod
    def open(cls, directory: Path | None, now_ms: int) -> "SigningKeys":
        """The keys of a data directory, made if there are none. Raises SignInKeyError."""
        path = directory / FILE if directory is not None else None
        keys = cls(path, _read(path) if path is not None and path.exists() else [])
        if not keys._rows:
            keys.rotate(now_ms)
        return keys

    def present(self, now_ms: int) -> OKPKey:
        """The key that signs now: a new one when its time has come. Where that can't be written, the old one signs on,
        and it is tried again a minute later."""
        if now_ms - self._rows[-1].since >= ROTATE_MS and now_ms >= self._again_at:
            try:
                self.rotate(now_ms)
            except SignInKeyError as error:
                self._again_at = now_ms + AGAIN_MS
                log.warning("no new key signs tokens: %s", error)
        return self._keys[-1]

    def rotate(self, now_ms: int) -> str:
        """A new key signs from now on; those whose tokens are all over go. Returns the new kid. Raises SignInKeyError
        where it can't be written; then all is as it was."""
        rows = [row for row in self._rows if not _is_over(row, now_ms)]
        if rows:
            rows[-1] = msgspec.structs.replace(rows[-1], until=now_ms)
        made = OKPKey.generate_key("Ed25519").as_dict(private=True)
        rows.append(_Row(str(made["d"]), str(made["x"]), now_ms))
        if self._path is not None:
            _write(self._path, rows)
        self._rows, self._keys = rows, [_key(row) for row in rows]
        return self._keys[-1].thumbprint()

    def verifying(self, now_ms: int) -> list[OKPKey]:
        """Those whose tokens may still be good."""
        return [key for row, key in zip(self._rows, self._keys, strict=True) if not _is_over(row, now_ms)]

    def jwks(self, now_ms: int) -> dict[str, Any]:
        """The JWK set that anybody may read."""
        return {
            "keys": [
                {**key.as_dict(private=False), "kid": key.thumbprint(), "alg": "EdDSA", "use": "sig"}
                for key in self.verifying(now_ms)
            ]
        }

    def __repr__(self) -> str:
        return f"SigningKeys({len(self._rows)})"


def _is_over(row: _Row, now_ms: int) -> bool:
    return row.until is not None and row.until + ACCESS_S * 1000 + MARGIN_MS < now_ms


def _key(row: _Row) -> OKPKey:
    key = OKPKey.import_key({"kty": "OKP", "crv": "Ed25519", "d": row.d, "x": row.x})
    key.thumbprint()
    if jose.public_key(key.public_key.public_bytes_raw().hex()).thumbprint() != key.thumbprint():
        raise ValueError("d and x are not of one key")
    return key


def _read(path: Path) -> list[_Row]:
    try:
        if path.stat().st_mode & 0o077:
            raise SignInKeyError(f"{path} is open to others: chmod 600 {path}")
        rows = msgspec.json.decode(path.read_bytes(), type=list[_Row])
        for row in rows:
            _key(row)
    except OSError as error:
        raise SignInKeyError(f"{path}: {error.strerror}") from None
    except (msgspec.MsgspecError, JoseError, ValueError):
        raise SignInKeyError(f"{path} holds no keys: move it away, and new ones are made") from None
    if rows and rows[-1].until is not None:
        raise SignInKeyError(f"{path} ends without a present key: move it away, and new ones are made")
    return rows


def _write(path: Path, rows: list[_Row]) -> None:
    try:
        write_private(path, msgspec.json.encode(rows))
    except OSError as error:
        raise SignInKeyError(f"{path}: {error.strerror}") from None
