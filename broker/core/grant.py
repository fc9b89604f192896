"""An owner's consent: the code, the tokens that follow from it, and how it ends (pure; network.md, Sign-in).

1. A code serves once, for a minute, for the client, redirect and verifier that it was made for. One that comes a
   second time has been stolen: the consent ends, and all that came of it.
2. A refresh token serves once: the next one comes with the answer. An old one that comes again ends the consent too.
3. What is refused changes nothing, but for these two.
4. Secrets are kept as digests. Whoever knows a grant's id alone can do nothing to it.

Source: RFC 6749 4.1 and 6; RFC 7636 4.6; RFC 8707 2.2; RFC 9700 2.1.1, 2.2.2 and 4.14.
"""

import hashlib
import hmac
import re
from typing import Final

import msgspec

from broker.core.secret import digest
from broker.wire import base64url
from broker.wire.refusals import Refusal, refuse_oauth

SCOPES: Final = ("profile", "contacts", "message", "channel", "task", "resource", "arena", "trial")
"""What an owner can consent to."""
ASK_MS: Final = 600_000
"""How long an owner may take to decide."""
CODE_MS: Final = 60_000
IDLE_MS: Final = 30 * 86_400_000
"""A consent that nobody refreshes for so long is over."""
_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")
CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_CODE: Final = re.compile(r"(gr_[0-9A-Z]{26})\.([A-Za-z0-9_-]{43})")
_REFRESH: Final = re.compile(r"(gr_[0-9A-Z]{26})\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})")


class Code(msgspec.Struct, frozen=True):
    """A code that was given out and has not come back yet."""

    digest: str
    challenge: str
    redirect_uri: str
    named: bool
    """Whether the client named its redirect; then it must again."""
    until: int


class GrantRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A consent as stored (kind "grant"). Times are wall milliseconds; digests sha256, hex."""

    grant_id: str
    client_id: str
    client_name: str
    redirect_host: str
    owner_id: str
    subject: str
    """For whom the client acts: one of the owner's agents, or the owner."""
    scopes: tuple[str, ...]
    resource: str
    made_at: int
    used_at: int
    code: Code | None = None
    spent: str | None = None
    """The code's digest, once it has served."""
    family: str | None = None
    """Of what all refresh tokens of this consent have in common."""
    refresh: str | None = None
    """Of the refresh token that serves next."""

    @property
    def over_at(self) -> int:
        """When it ends by itself."""
        return self.code.until if self.code is not None else self.used_at + IDLE_MS


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What a client shows for tokens. For a refresh: `family`, `digest`; for a code: the rest with `digest`."""

    client_id: str
    digest: str
    family: str | None = None
    redirect_uri: str | None = None
    verifier: str | None = None
    scopes: tuple[str, ...] | None = None
    resource: str | None = None


class Fresh(msgspec.Struct, frozen=True):
    """Digests of the refresh token that is given out now."""

    family: str
    refresh: str


class Stolen(msgspec.Struct, frozen=True):
    """What was shown has served before: the consent ends."""

    refusal: Refusal


def read_code(text: str) -> tuple[str, str] | None:
    """The grant and the digest that a code names; None for what is none."""
    found = _CODE.fullmatch(text)
    return None if found is None else (found[1], digest(found[2]))


def read_refresh(text: str) -> tuple[str, str, str] | None:
    """The grant and the digests (family, token) that a refresh token names; None for what is none."""
    found = _REFRESH.fullmatch(text)
    return None if found is None else (found[1], digest(found[2]), digest(found[3]))


def redeem(row: GrantRow, shown: Shown, fresh: Fresh, now: int) -> GrantRow | Stolen | Refusal:
    """A code comes back: the grant with its first refresh token."""
    refused = refuse_oauth("invalid_grant", "the code is not good here, or not any more")
    if row.spent is not None and _same(row.spent, shown.digest):
        return Stolen(refused)
    code = row.code
    if code is None or not _same(code.digest, shown.digest) or code.until <= now:
        return refused
    if row.client_id != shown.client_id:
        return refused
    if (code.named or shown.redirect_uri is not None) and shown.redirect_uri != code.redirect_uri:
        return refuse_oauth("invalid_grant", "redirect_uri is not the one that the code was made for")
    if shown.verifier is None or not _proves(shown.verifier, code.challenge):
        return refuse_oauth("invalid_grant", "code_verifier does not fit the challenge")
    if shown.resource not in (None, row.resource):
        return refuse_oauth("invalid_target", "the code was made for another resource")
    return msgspec.structs.replace(
        row, code=None, spent=code.digest, family=fresh.family, refresh=fresh.refresh, used_at=now
    )


def refresh(row: GrantRow, shown: Shown, fresh: str, now: int) -> GrantRow | Stolen | Refusal:
    """A refresh token comes back: the grant with the next one."""
    refused = refuse_oauth("invalid_grant", "the refresh token is not good here, or not any more")
    if row.family is None or row.refresh is None or not _same(row.family, shown.family or ""):
        return refused
    if row.client_id != shown.client_id or row.over_at <= now:
        return refused
    if not _same(row.refresh, shown.digest):
        return Stolen(refused)
    if shown.resource not in (None, row.resource):
        return refuse_oauth("invalid_target", "the refresh token was made for another resource")
    if not set(shown.scopes or ()) <= set(row.scopes):
        return refuse_oauth("invalid_scope", "the owner has not consented to all of these scopes")
    return msgspec.structs.replace(row, refresh=fresh, used_at=now)


def knows(row: GrantRow, family: str) -> bool:
    """Whether a digest is that of what this consent's refresh tokens have in common."""
    return row.family is not None and _same(row.family, family)


def _proves(verifier: str, challenge: str) -> bool:
    if _VERIFIER.fullmatch(verifier) is None:
        return False
    hashed = base64url.encode(hashlib.sha256(verifier.encode()).digest())
    return _same(hashed, challenge)


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one, other)
