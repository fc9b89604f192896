"""One owner: a person who signs in with an e-mail and a password (network.md, Sign-in).

1. A password is never here: its argon2id hash comes in, and is a text that nobody here looks into.
2. A session is a secret that a browser holds; here is its sha256. It ends unused after a while, after some days in any
   case, when it is signed out, and with the password.
3. Nothing here knows of agents or grants: they name their owner.
"""

import re
import unicodedata
from typing import Final

import msgspec

from broker.core.guessable import is_guessable
from broker.wire.refusals import Refusal, refuse

MAX_EMAIL: Final = 254
"""RFC 5321, 4.5.3.1.3, without the angle brackets."""
MIN_PASSWORD: Final = 12
MAX_PASSWORD: Final = 256
"""Characters; long ones are welcome, endless ones only cost."""
MAX_SESSIONS: Final = 16
"""Browsers in which one owner is signed in; one more ends the one that was quiet longest."""
TOUCH_MS: Final = 5 * 60_000
"""A session's last use is written at most this often: nobody waits for a disk to look at a page."""
_EMAIL: Final = re.compile(r"[^@\s]{1,64}@[^@\s.]+(?:\.[^@\s.]+)*")


class Session(msgspec.Struct, frozen=True):
    """A browser that is signed in: sha256 of its secret (hex), since when, and when it was last seen (wall ms)."""

    digest: str
    made_at: int
    used_at: int


class OwnerRow(msgspec.Struct, frozen=True):
    """An owner as stored (kind "owner", id = owner_id)."""

    owner_id: str
    email: str
    password: str
    """argon2id, in its own encoded form; empty: none yet, since the invitation was not used."""
    created_at: int
    sessions: tuple[Session, ...] = ()
    invitation: str | None = None
    """sha256 of the code (hex) by which an invited owner sets the first password."""


class Life(msgspec.Struct, frozen=True):
    """How long a session lasts, milliseconds: unused, and in any case."""

    idle_ms: int
    whole_ms: int


def read_email(text: str) -> str | Refusal:
    """The one form of an e-mail: NFC, lower case, no blanks around it. Case never tells two owners apart."""
    email = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text.strip()).casefold())
    if len(email) > MAX_EMAIL or not email.isprintable() or not _EMAIL.fullmatch(email):
        return refuse("bad_request", "an e-mail looks like name@example.org", path="email")
    return email


def read_password(text: str) -> str:
    """The one form of a password: what looks the same on two keyboards is the same (NFKC)."""
    return unicodedata.normalize("NFKC", text)


def judge_password(password: str, email: str, path: str = "password") -> Refusal | None:
    """Whether a new password will do: long enough, not endless, none that is tried first. No rule on letters."""
    if len(password) < MIN_PASSWORD:
        return refuse("bad_request", f"a password has at least {MIN_PASSWORD} characters", path=path)
    if len(password) > MAX_PASSWORD:
        return refuse("bad_request", f"a password has at most {MAX_PASSWORD} characters", path=path)
    if len(set(password)) < 4 or is_guessable(password, email):
        return refuse("bad_request", "this password is too easy to guess; choose another", path=path)
    return None


def invite(row: OwnerRow, digest: str) -> OwnerRow | Refusal:
    """With another invitation to set the first password; already_exists for an owner that has one."""
    if row.password:
        return refuse("already_exists", "there is an owner with this e-mail", path="email")
    return msgspec.structs.replace(row, invitation=digest)


def accept(row: OwnerRow, password: str, digest: str, now_ms: int) -> OwnerRow:
    """An invited owner sets the first password, and is signed in in the browser that did."""
    session = Session(digest, now_ms, now_ms)
    return msgspec.structs.replace(row, password=password, sessions=(session,), invitation=None)


def find_session(row: OwnerRow, digest: str, now_ms: int, life: Life) -> Session | None:
    """The session of this secret, if it is still good."""
    return next((each for each in _live(row, now_ms, life) if each.digest == digest), None)


def open_session(row: OwnerRow, digest: str, now_ms: int, life: Life) -> OwnerRow:
    """The owner with one more session; those that are over go, and the quietest where there are too many."""
    live = sorted(_live(row, now_ms, life), key=lambda each: each.used_at)[-(MAX_SESSIONS - 1) :]
    return msgspec.structs.replace(row, sessions=(*live, Session(digest, now_ms, now_ms)))


def touch_session(row: OwnerRow, digest: str, now_ms: int, life: Life) -> OwnerRow:
    """The session was used now. The same row where that need not be written."""
    session = find_session(row, digest, now_ms, life)
    if session is None or now_ms - session.used_at < TOUCH_MS:
        return row
    used = msgspec.structs.replace(session, used_at=now_ms)
    return msgspec.structs.replace(
        row, sessions=tuple(used if each is session else each for each in row.sessions)
    )


def end_session(row: OwnerRow, digest: str) -> OwnerRow:
    """Without this session; the same row where there is none such."""
    left = tuple(each for each in row.sessions if each.digest != digest)
    return row if len(left) == len(row.sessions) else msgspec.structs.replace(row, sessions=left)


def change_password(row: OwnerRow, password: str, digest: str, now_ms: int) -> OwnerRow:
    """Another password: every session ends, and one begins for the browser that changed it."""
    return msgspec.structs.replace(row, password=password, sessions=(Session(digest, now_ms, now_ms),))


def _live(row: OwnerRow, now_ms: int, life: Life) -> list[Session]:
    return [
        each
        for each in row.sessions
        if now_ms - each.used_at < life.idle_ms and now_ms - each.made_at < life.whole_ms
    ]
