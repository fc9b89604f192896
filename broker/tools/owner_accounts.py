"""Owners as operators make and see them (network.md, Operator tools, Sign-in).

1. An owner's e-mail is shown to operators alone, and no password to anybody.
2. An invitation is shown once; kept is its sha256. It sets the first password on the owners' pages, once, whoever may
   sign up there otherwise.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from broker.actors.owner import Make, find_owner
from broker.core.owner import MAX_EMAIL, MAX_PASSWORD, OwnerRow, judge_password, read_email, read_password
from broker.core.secret import digest
from broker.store.stored import every, stored
from broker.tools.context import Context
from broker.tools.paging import AfterParam, LimitParam, read_page
from broker.tools.registry import tool
from broker.tools.sealing import HIDDEN, seal
from broker.wire.refusals import Refusal, refuse

INVITED_MS: Final = 7 * 86_400_000
"""How long an invitation is good."""
EmailParam = Annotated[
    str, Meta(min_length=3, max_length=MAX_EMAIL, description="the e-mail by which the owner signs in")
]
PasswordParam = (
    Annotated[
        str,
        Meta(
            max_length=MAX_PASSWORD,
            description="the first password: 12 to 256 characters",
            extra_json_schema=HIDDEN,
        ),
    ]
    | None
)
InvitationParam = Annotated[
    bool, Meta(description="true: make an invitation, by which the owner sets the first password itself")
]


class MadeOwner(msgspec.Struct, frozen=True, omit_defaults=True):
    """A new owner. `invitation`, the code, and `link`, the page with it, are shown here alone; good until `expires_at`
    (Unix milliseconds)."""

    owner_id: str
    email: str
    created_at: int
    invitation: str | None = None
    link: str | None = None
    expires_at: int | None = None


class HeldOwner(msgspec.Struct, frozen=True):
    """An owner as operators see it. `agents`: how many it has; `invited`: it has set no password yet. Times are Unix
    milliseconds."""

    owner_id: str
    email: str
    created_at: int
    agents: int
    invited: bool


class HeldOwners(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of owners, the oldest first; `next`: `after` of the page that follows."""

    owners: list[HeldOwner]
    next: str | None = None


@tool(face="operator", title="Make an owner", secrets=("invitation", "link"), idempotent=False)
async def create_owner(
    context: Context, email: EmailParam, password: PasswordParam = None, invitation: InvitationParam = False
) -> MadeOwner | Refusal:
    """Make an owner, whatever the setting owners.sign_up says: with a password that you tell it, or (better) with an
    invitation, good for 7 days, by whose link it sets one itself. assign_agent_owner gives it agents at once.

    For an owner that has set no password yet it makes another invitation, and the one before is over.
    """
    services, read = context.services, read_email(email)
    if isinstance(read, Refusal):
        return read
    if (password is None) != invitation:
        said = "give either a password, or invitation = true"
        return refuse("bad_request", said, path="password" if invitation else "invitation")
    found = await find_owner(services.store, read)
    owner_id = found.owner_id if found is not None else services.new_id("ow_")
    now = services.clock.now_ms()
    made_at = found.created_at if found is not None else now
    answer = {"owner_id": owner_id, "email": read, "created_at": made_at}
    if password is None:
        command = _invited(context, read, made_at, now + INVITED_MS, answer)
    else:
        password = read_password(password)
        refused = judge_password(password, read)
        encoded = refused or await services.passwords.hash(password)
        if isinstance(encoded, Refusal):
            return encoded
        command = Make(read, made_at, answer, encoded, once=context.once)
    made: MadeOwner | Refusal = await services.house.ask("owner", owner_id, command)
    return made


@tool(face="operator", title="List owners", read_only=True)
async def list_owners(
    context: Context, limit: LimitParam = 100, after: AfterParam = None
) -> HeldOwners | Refusal:
    """All owners, the oldest first, with how many agents each has. list_agents with owner_id shows an owner's."""
    store = context.services.store
    page = await read_page(store, "owner", "all", "1", after, limit, newest=False)
    if isinstance(page, Refusal):
        return page
    owners = []
    for document in page.documents:
        row = stored(OwnerRow, document.doc, "owner", document.id)
        count = 0
        async for _ in every(store, "agent", "owner", row.owner_id):
            count += 1
        owners.append(HeldOwner(row.owner_id, row.email, row.created_at, count, not row.password))
    return HeldOwners(owners, page.next)


def _invited(context: Context, email: str, made_at: int, until: int, answer: dict[str, object]) -> Make:
    services = context.services
    code = services.new_secret(20)
    page = (services.info()["mcp"]["url"] or "").removesuffix("/mcp") + f"/sign-up?invitation={code}"
    shown = {
        **answer,
        "invitation": seal(services, code),
        "link": seal(services, page),
        "expires_at": until,
    }
    return Make(email, made_at, shown, invited=digest(code), until=until, once=context.once)
