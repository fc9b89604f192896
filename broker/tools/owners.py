"""Owners sign up, in and out, and change their password: verbs for their pages (network.md, Sign-in).

1. These are verbs for the pages, which have looked who asks: no door lists them, and `owner_id` is never what a
   browser said but what its session says.
2. A session is a secret that the browser alone holds: the owner's id and 32 random bytes. Here is its sha256.
"""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from broker.actors.owner import (
    ChangePassword,
    End,
    Open,
    SignUp,
    Touch,
    find_invited,
    find_owner,
    life_of,
    read_owner,
    signed_out,
)
from broker.core.owner import (
    MAX_EMAIL,
    TOUCH_MS,
    OwnerRow,
    find_session,
    judge_password,
    read_email,
    read_password,
)
from broker.core.secret import digest
from broker.tools.context import Context
from broker.tools.registry import tool
from broker.wire.ids import OWNER
from broker.wire.refusals import Refusal, refuse

Text = Annotated[str, Meta(max_length=1024)]
"""What somebody typed into one line."""
WRONG: Final = refuse("unauthenticated", "the e-mail or the password is wrong")
"""One answer to both, so that nobody learns who is an owner."""


class SignedIn(msgspec.Struct, frozen=True):
    """An owner in one browser; `session` is what the browser keeps."""

    owner_id: str
    email: str
    session: str


class Signed(msgspec.Struct, frozen=True):
    """Whose a session is."""

    owner_id: str
    email: str


@tool(face="signin", title="Sign up")
async def sign_up(
    context: Context, email: Text, password: Text, invitation: Text | None = None
) -> SignedIn | Refusal:
    """A new owner, or one that operators invited, signed in at once. Refusals name their field in `path`."""
    services, made = context.services, read_email(email)
    mode, given = services.settings.owners.sign_up or "invitation", (invitation or "").strip()
    if mode == "closed" and not given:
        return refuse("not_found", "nobody signs up here; the operators make owners")
    if isinstance(made, Refusal):
        return made
    password = read_password(password)
    refused = judge_password(password, made)
    if refused is None and mode == "invitation" and not given:
        refused = refuse("bad_request", "an invitation is needed", path="invitation")
    refused = refused or services.attempts.sign_up(context.caller.address)
    if refused is not None:
        return refused
    encoded = await services.passwords.hash(password)
    if isinstance(encoded, Refusal):
        return encoded
    code = digest(given) if given else None
    invited = await find_invited(services.store, code) if code is not None else None
    owner_id = invited or services.new_id("ow_")
    secret = context.services.new_secret()
    command = SignUp(made, encoded, digest(secret), code)
    return _signed_in(await services.house.ask("owner", owner_id, command), secret)


@tool(face="signin", title="Sign in")
async def sign_in(context: Context, email: Text, password: Text) -> SignedIn | Refusal:
    """A browser more for an owner. unauthenticated (the same for any mistake), rate_limited or overloaded."""
    services, address = context.services, context.caller.address
    read = read_email(email)
    tried = email.strip()[:MAX_EMAIL] if isinstance(read, Refusal) else read
    stopped = services.attempts.begin(tried, address)
    if stopped is not None:
        services.sign_in.refused(address, stopped.code)
        return stopped
    owner = await find_owner(services.store, tried)
    good = await _is_password(context, password, owner)
    if good is not True or owner is None:
        if isinstance(good, Refusal):
            services.attempts.take_back(tried, address)
            return good
        services.sign_in.refused(address, "password")
        return WRONG
    services.attempts.take_back(tried, address)
    rehashed = None
    if services.passwords.is_old(owner.password):
        made = await services.passwords.hash(read_password(password))
        rehashed = made if isinstance(made, str) else None
    secret = context.services.new_secret()
    command = Open(owner.password, digest(secret), rehashed)
    answer = await services.house.ask("owner", owner.owner_id, command)
    return WRONG if isinstance(answer, Refusal) and answer.code == WRONG.code else _signed_in(answer, secret)


@tool(face="signin", title="Whose a session is")
async def session(context: Context, session: Text) -> Signed | Refusal:
    """The owner that this browser is signed in as, or unauthenticated. Notes that the browser was seen."""
    services, found = context.services, _split(session)
    if found is None:
        return signed_out()
    owner_id, digest = found
    row = await read_owner(services.store, owner_id)
    now = services.clock.now_ms()
    seen = find_session(row, digest, now, life_of(services.settings.owners)) if row is not None else None
    if row is None or seen is None:
        return signed_out()
    if now - seen.used_at >= TOUCH_MS:
        touched = await services.house.ask("owner", owner_id, Touch(digest))
        if isinstance(touched, Refusal) and touched.code == "unauthenticated":
            return touched  # it was signed out just now; a store that takes no writes signs nobody out
    return Signed(owner_id, row.email)


@tool(face="signin", title="Sign out")
async def sign_out(context: Context, session: Text) -> dict[str, Any] | Refusal:
    """Ends a session; also one that is over."""
    found = _split(session)
    if found is not None and await read_owner(context.services.store, found[0]) is not None:
        answer = await context.services.house.ask("owner", found[0], End(found[1]))
        if isinstance(answer, Refusal):
            return answer
    return {}


@tool(face="signin", title="Change the password", audited=True)
async def change_password(
    context: Context, owner_id: Text, password: Text, new_password: Text
) -> SignedIn | Refusal:
    """Another password; every session of the owner ends, and the one returned begins.

    A wrong present password counts as a try to sign in. Refusals name their field in `path`.
    """
    services, address = context.services, context.caller.address
    owner = await read_owner(services.store, owner_id)
    if owner is None:
        return signed_out()
    new_password = read_password(new_password)
    refused = judge_password(new_password, owner.email, "new_password")
    refused = refused or services.attempts.begin(owner.email, address)
    if refused is not None:
        return refused
    good = await _is_password(context, password, owner)
    if good is False:
        services.sign_in.refused(address, "password")
        return refuse("bad_request", "this is not your present password", path="password")
    services.attempts.take_back(owner.email, address)
    encoded = good if isinstance(good, Refusal) else await services.passwords.hash(new_password)
    if isinstance(encoded, Refusal):
        return encoded
    secret = context.services.new_secret()
    command = ChangePassword(owner.password, encoded, digest(secret), context.once)
    return _signed_in(await services.house.ask("owner", owner_id, command), secret)


async def _is_password(context: Context, password: str, owner: OwnerRow | None) -> bool | Refusal:
    encoded = owner.password if owner is not None else None
    return await context.services.passwords.verify(read_password(password), encoded)


def _split(session: str) -> tuple[str, str] | None:
    """The owner's id in a session, and the digest of its secret; None for what has not the form."""
    owner_id, _, secret = session.partition(".")
    return (owner_id, digest(secret)) if OWNER.fullmatch(owner_id) and secret else None


def _signed_in(answer: OwnerRow | Refusal, secret: str) -> SignedIn | Refusal:
    if isinstance(answer, Refusal):
        return answer
    return SignedIn(answer.owner_id, answer.email, f"{answer.owner_id}.{secret}")
