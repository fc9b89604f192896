"""An owner's actor: the row, the e-mail that is claimed with it, and the browsers that are signed in.

An e-mail is claimed like a desk's code: a document under its one form, so that no two owners have the same. What is
hashed was hashed before it comes here; a password that was changed meanwhile shows, since commands name the hash that
they held theirs against.
"""

from typing import Any, Final

import msgspec

from broker.actors.record import Index, RecordActor
from broker.actors.standing import Facts
from broker.config import Owners
from broker.core import owner as core
from broker.core.owner import Life, OwnerRow
from broker.store.port import Put, Store
from broker.store.stored import read_row, stored
from broker.wire.refusals import Refusal, refuse

_HOUR_MS: Final = 3_600_000


class EmailRow(msgspec.Struct, frozen=True):
    """Whose an e-mail is (kind "email", id = its one form)."""

    owner_id: str


class InvitationRow(msgspec.Struct, frozen=True):
    """An operator's invitation to become an owner (kind "invitation", id = sha256 of its code, hex). Serves once.

    `email`: for whom alone it is; None: for whoever has it. Times are wall milliseconds.
    """

    made_at: int
    expires_at: int
    email: str | None = None


class SignUp(msgspec.Struct, frozen=True):
    """A new owner, signed in at once. Answer: the row, or already_exists, or not_found (the invitation)."""

    email: str
    password: str
    digest: str
    invitation: str | None
    """sha256 of the code, hex; None: none is needed."""


class Open(msgspec.Struct, frozen=True):
    """A browser signs in: the password was held against `seen`. Answer: the row or unauthenticated."""

    seen: str
    digest: str
    rehashed: str | None = None
    """The same password by the present settings, where `seen` is of older ones."""


class Touch(msgspec.Struct, frozen=True):
    """A browser shows its session. Answer: the row or unauthenticated."""

    digest: str


class End(msgspec.Struct, frozen=True):
    """A browser signs out. Answer: None; also where it was not signed in."""

    digest: str


class ChangePassword(msgspec.Struct, frozen=True):
    """The old password was held against `seen`. Answer: the row (with one session, `digest`) or unauthenticated."""

    seen: str
    password: str
    digest: str


class OwnerActor(RecordActor[OwnerRow]):
    """One owner."""

    kind = "owner"
    type = OwnerRow

    def __init__(self, key: str, *, settings: Owners, **parts: Any) -> None:
        super().__init__(key, **parts)
        self._life = life_of(settings)

    def index_of(self, row: OwnerRow) -> Index:
        return (("all", "1"),)

    async def do(self, command: Any) -> Any:
        if isinstance(command, SignUp):
            return await self._sign_up(command)
        row, now = self.row, self.clock.now_ms()
        if row is None:
            return None if isinstance(command, End) else signed_out()
        match command:
            case Open(seen, digest, rehashed):
                if seen != row.password:
                    return signed_out()
                row = msgspec.structs.replace(row, password=rehashed or seen)
                row = core.open_session(row, digest, now, self._life)
                return await self.write(row, row)
            case Touch(digest):
                if core.find_session(row, digest, now, self._life) is None:
                    return signed_out()
                row = core.touch_session(row, digest, now, self._life)
                return await self.write(row, row)
            case End(digest):
                return await self.write(core.end_session(row, digest), None)
            case ChangePassword(seen, password, digest):
                if seen != row.password:
                    return signed_out()
                row = core.change_password(row, password, digest, now)
                return await self.write(row, row)
        raise TypeError(type(command))

    async def _sign_up(self, command: SignUp) -> Any:
        now, email = self.clock.now_ms(), command.email
        if self.row is not None:
            return refuse("already_exists", "there is an owner of this id")
        if await self.store.get("email", email) is not None:
            return refuse("already_exists", "there is an owner with this e-mail", path="email")
        puts = [Put("email", email, 0, msgspec.json.encode(EmailRow(self.key)))]
        if command.invitation is not None:
            used = await self._use(command.invitation, email, now)
            if isinstance(used, Refusal):
                return used
            puts.append(used)
        row = OwnerRow(self.key, email, command.password, now)
        row = core.open_session(row, command.digest, now, self._life)
        return await self.write(row, row, puts=puts)

    async def _use(self, digest: str, email: str, now: int) -> Put | Refusal:
        """The op that uses an invitation up."""
        document = await self.store.get("invitation", digest)
        if document is not None:
            invitation = stored(InvitationRow, document.doc, "invitation", digest)
            if invitation.expires_at > now and invitation.email in (None, email):
                return Put("invitation", digest, document.version, None)
        return refuse("not_found", "there is no such invitation, or it is used or over", path="invitation")


def life_of(settings: Owners) -> Life:
    """How long sessions last by these settings."""
    return Life(
        idle_ms=round(settings.session_idle_h * _HOUR_MS),
        whole_ms=round(settings.session_days * 24 * _HOUR_MS),
    )


def signed_out() -> Refusal:
    """What every session that is none gets, and every sign-in that was not good: nothing tells them apart."""
    return refuse("unauthenticated", "sign in")


async def find_owner(store: Store, email: str) -> OwnerRow | None:
    """The owner with this e-mail, in its one form; None where there is none."""
    document = await store.get("email", email)
    if document is None:
        return None
    owner_id = stored(EmailRow, document.doc, "email", f"{email[:2]}…").owner_id
    return await read_owner(store, owner_id)


async def read_owner(store: Store, owner_id: str) -> OwnerRow | None:
    """The owner with this id, or None."""
    return await read_row(store, OwnerRow, "owner", owner_id)


async def read_facts(store: Store, owner_id: str) -> Facts | None:
    """What Standing is told of an owner; None where there is no such owner."""
    return None if await read_owner(store, owner_id) is None else Facts()
