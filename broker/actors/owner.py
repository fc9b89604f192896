"""An owner's actor: the row, the e-mail that is claimed with it, and the browsers that are signed in.

An e-mail is claimed like a desk's code: a document under its one form, so that no two owners have the same. What is
hashed was hashed before it comes here; a password that was changed meanwhile shows, since commands name the hash that
they held theirs against.
"""

from typing import Any, Final

import msgspec

from broker.actors.once import Once
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
    owner_id: str | None = None
    """The owner, made before, whose first password it sets; None: it makes one."""


class Make(msgspec.Struct, frozen=True):
    """Operators make an owner: with a password's hash, or (`invited`: sha256 of a code, hex, good until `until`) with
    an invitation to set one. Answer: `answer`, or already_exists. An invited owner that has set none yet is invited
    anew, and the invitation before is over. Times are wall milliseconds."""

    email: str
    made_at: int
    answer: dict[str, Any]
    password: str = ""
    invited: str | None = None
    until: int = 0
    once: Once | None = None


class SignUp(msgspec.Struct, frozen=True):
    """A new owner, or an invited one that has no password yet, signed in at once. Answer: the row, or already_exists,
    or not_found (the invitation)."""

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
    once: Once | None = None


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
        if isinstance(command, Make):
            return await self._make(command)
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
            case ChangePassword(seen, password, digest, once):
                if seen != row.password:
                    return signed_out()
                row = core.change_password(row, password, digest, now)
                return await self.write(row, row, once=once)
        raise TypeError(type(command))

    async def _sign_up(self, command: SignUp) -> Any:
        now, email = self.clock.now_ms(), command.email
        if self.row is not None:
            return await self._accept(self.row, command, now)
        used = await self._use(command.invitation, email, now)
        if isinstance(used, Refusal):
            return used
        claimed = await self._claim(email)
        if isinstance(claimed, Refusal):
            return claimed
        row = OwnerRow(self.key, email, command.password, now)
        row = core.open_session(row, command.digest, now, self._life)
        return await self.write(row, row, puts=[*claimed, *used])

    async def _accept(self, row: OwnerRow, command: SignUp, now: int) -> Any:
        if row.password or command.invitation is None:
            return refuse("already_exists", "there is an owner of this id")
        used = await self._use(command.invitation, command.email, now)
        if isinstance(used, Refusal):
            return used
        row = core.accept(row, command.password, command.digest, now)
        return await self.write(row, row, puts=used)

    async def _make(self, command: Make) -> Any:
        row, now, puts = self.row, self.clock.now_ms(), list[Put]()
        if row is None:
            claimed = await self._claim(command.email)
            if isinstance(claimed, Refusal):
                return claimed
            row, puts = OwnerRow(self.key, command.email, command.password, command.made_at), claimed
        elif command.invited is None:
            return refuse("already_exists", "there is an owner with this e-mail", path="email")
        if command.invited is not None:
            before = row.invitation
            invited = core.invite(row, command.invited)
            if isinstance(invited, Refusal):
                return invited
            row, made = invited, InvitationRow(now, command.until, command.email, self.key)
            puts.append(Put("invitation", command.invited, 0, msgspec.json.encode(made)))
            document = await self.store.get("invitation", before) if before is not None else None
            if document is not None:
                puts.append(Put("invitation", document.id, document.version, None))
        return await self.write(row, command.answer, once=command.once, puts=puts)

    async def _claim(self, email: str) -> list[Put] | Refusal:
        """What makes an e-mail this owner's, or already_exists."""
        if await self.store.get("email", email) is not None:
            return refuse("already_exists", "there is an owner with this e-mail", path="email")
        return [Put("email", email, 0, msgspec.json.encode(EmailRow(self.key)))]

    async def _use(self, digest: str | None, email: str, now: int) -> list[Put] | Refusal:
        """What uses an invitation up; nothing where none is needed."""
        document = await self.store.get("invitation", digest) if digest is not None else None
        if document is not None:
            invitation = stored(InvitationRow, document.doc, "invitation", document.id)
            for_us = invitation.owner_id in (None, self.key) and invitation.email in (None, email)
            if invitation.expires_at > now and for_us:
                return [Put("invitation", document.id, document.version, None)]
        if digest is None:
            return []
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


async def find_invited(store: Store, digest: str) -> str | None:
    """The owner, made before, that an invitation (sha256 of its code, hex) is for; None for one that makes an owner,
    and where there is none such."""
    row = await read_row(store, InvitationRow, "invitation", digest)
    return None if row is None else row.owner_id


async def read_owner(store: Store, owner_id: str) -> OwnerRow | None:
    """The owner with this id, or None."""
    return await read_row(store, OwnerRow, "owner", owner_id)


async def read_facts(store: Store, owner_id: str) -> Facts | None:
    """What Standing is told of an owner; None where there is no such owner."""
    return None if await read_owner(store, owner_id) is None else Facts()
