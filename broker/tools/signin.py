"""What an owner consents to, and what came of it (network.md, Sign-in): verbs for the consent page and its door.

1. The door has looked at the request's own form; here it is looked whose the client and the redirect are. What is
   wrong with those never leads anywhere; anything else is told to the client by way of its redirect.
2. A request waits ten minutes for its owner, and is decided once.
3. What is not this owner's is missing, in the same words as what there is not.
"""

from typing import Annotated, Any, Final
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from broker.actors.grant import End, Make, Register, Use
from broker.actors.signin import Ask
from broker.core.client import described, host_of, is_loopback, redirect_of
from broker.core.grant import ASK_MS, CHALLENGE, CODE_MS, SCOPES, Code, GrantRow
from broker.core.secret import digest
from broker.store.stored import stored
from broker.tools import agents
from broker.tools.clients import client_of
from broker.tools.context import Context
from broker.tools.registry import tool
from broker.wire.refusals import Refusal, refuse, refuse_oauth

Text = Annotated[str, Meta(max_length=2048)]
State = Annotated[str, Meta(max_length=4096)]
GRANTS: Final = 100
"""Consents of one owner that live at once; one more ends the one that was used least lately."""


class Registered(msgspec.Struct, frozen=True, omit_defaults=True):
    """A client that has registered; `client_secret` is told this once."""

    client_id: str
    client_name: str
    redirect_uris: tuple[str, ...]
    token_endpoint_auth_method: str
    client_id_issued_at: int
    client_secret: str | None = None


class Begun(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the user goes from here: to the consent page for `ask`, or back to the client (`redirect`)."""

    ask: str | None = None
    redirect: str | None = None
    host: str | None = None
    """Of a redirect that leads off the user's own machine: nobody is sent there unasked."""


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an owner is asked to consent to."""

    client_name: str
    redirect_host: str
    loopback_only: bool
    """Whether the answer goes to a program on the owner's own machine: any program there can call itself this."""
    scopes: tuple[str, ...]
    resource: str
    client_id: str
    client_uri: str | None = None


class Decided(msgspec.Struct, frozen=True):
    """Where the owner's browser goes now."""

    redirect: str


class Grant(msgspec.Struct, frozen=True):
    """One place where an owner is signed in. Times are Unix milliseconds."""

    grant_id: str
    client_id: str
    client_name: str
    redirect_host: str
    subject: str
    scopes: tuple[str, ...]
    resource: str
    made_at: int
    used_at: int


class Grants(msgspec.Struct, frozen=True):
    """All of them, the latest first."""

    grants: list[Grant]


@tool(face="signin", title="Register a client")
async def register_client(context: Context, metadata: dict[str, Any]) -> Registered | Refusal:
    """Anybody may register a client, 20 an hour an address (RFC 7591). A refusal's `error` is OAuth's code."""
    services, caller = context.services, context.caller
    row = described(services.new_id("cl_"), metadata, default="client_secret_basic")
    if isinstance(row, Refusal):
        return row
    refused = services.sign_in.register(caller.address, caller.loopback)
    if refused is not None:
        return refused
    secret = None if row.method == "none" else context.services.new_secret()
    now = services.clock.now_ms()
    row = msgspec.structs.replace(
        row, made_at=now, secret_hash=digest(secret) if secret is not None else None
    )
    refused = await services.house.ask("clients", "all", Register(row))
    if isinstance(refused, Refusal):
        return refused
    return Registered(row.client_id, row.name, row.redirects, row.method, now // 1000, secret)


@tool(face="signin", title="Begin a sign-in")
async def begin_authorization(
    context: Context,
    client_id: Text,
    issuer: Text,
    redirect_uri: Text | None = None,
    document: dict[str, Any] | None = None,
    state: State | None = None,
    challenge: Text | None = None,
    scopes: list[Text] | None = None,
    resource: Text | None = None,
    wrong: dict[str, str] | None = None,
) -> Begun | Refusal:
    """Have a client's request wait for an owner. `document`: the metadata of a client whose id is a URL. `wrong`: the
    members error and error_description of what the door found wrong with the rest of the request.

    A refusal is for the user's eyes alone: the client or its redirect is not good.
    """
    client = await client_of(context, client_id, document)
    if isinstance(client, Refusal):
        return client
    target = redirect_of(client, redirect_uri)
    if target is None:
        return refuse_oauth("invalid_request", "the redirect_uri is not one that this client has registered")
    if wrong is None and (challenge is None or CHALLENGE.fullmatch(challenge) is None or resource is None):
        wrong = {"error": "invalid_request"}
    named = tuple(scope for scope in SCOPES if scope in (scopes or ()))
    if wrong is None and not named:
        wrong = {"error": "invalid_scope"}
    if wrong is None:
        services = context.services
        ask = Ask(
            ask=context.services.new_secret(16),
            client_id=client.client_id,
            client_name=client.name,
            client_uri=client.uri,
            redirect_uri=target,
            named=redirect_uri is not None,
            state=state,
            challenge=challenge or "",
            scopes=named,
            resource=resource or "",
            issuer=issuer,
            until=services.clock.now_ms() + ASK_MS,
        )
        refused = services.sign_in.ask(ask, context.caller.address)
        if refused is None:
            return Begun(ask=ask.ask)
        wrong = {"error": "temporarily_unavailable", "error_description": refused.message}
    host = None if is_loopback(target) else host_of(target)
    return Begun(redirect=_back(target, issuer, state, **wrong), host=host)


@tool(face="signin", title="What is asked of an owner", read_only=True)
async def authorization_request(context: Context, ask: Text) -> Asked | Refusal:
    """What a request asks for; not_found once it is decided, or ten minutes old."""
    found = context.services.sign_in.find(ask)
    if found is None:
        return _no_ask()
    uri = found.redirect_uri
    return Asked(
        client_name=found.client_name,
        redirect_host=host_of(uri),
        loopback_only=is_loopback(uri),
        scopes=found.scopes,
        resource=found.resource,
        client_id=found.client_id,
        client_uri=found.client_uri,
    )


@tool(face="signin", title="Decide", audited=True)
async def decide_authorization(
    context: Context,
    ask: Text,
    owner_id: Text,
    allow: bool,
    subject: Text | None = None,
    scopes: list[Text] | None = None,
) -> Decided | Refusal:
    """The owner's answer: `subject` is one of its agents, or the owner itself; `scopes` some of those asked (none
    given: all of them). Whatever the answer, the redirect says it to the client.

    not_found: no such request (any more), or no such agent; bad_request: other scopes than asked, or none.
    """
    services = context.services
    found = services.sign_in.find(ask)
    if found is None:
        return _no_ask()
    if not allow:
        services.sign_in.take(ask)
        return Decided(_back(found.redirect_uri, found.issuer, found.state, error="access_denied"))
    acting = subject or owner_id
    if acting != owner_id and await agents.find(context.services, acting, owner_id) is None:
        return refuse("not_found", "you have no such agent", path="subject")
    given = tuple(scope for scope in found.scopes if scopes is None or scope in scopes)
    if not given or len(given) < len(set(scopes or given)):
        return refuse("bad_request", "choose some of the scopes that were asked for", path="scopes")
    if services.sign_in.take(ask) is None:  # another tab was faster
        return _no_ask()
    secret = context.services.new_secret()
    row = _grant(context, found, owner_id, acting, given, secret)
    refused = await _make(context, row)
    if refused is not None:
        if refused.retryable:
            services.sign_in.ask(found, context.caller.address)
        return refused
    code = f"{row.grant_id}.{secret}"
    return Decided(_back(found.redirect_uri, found.issuer, found.state, code=code))


@tool(face="signin", title="Where an owner is signed in", read_only=True)
async def list_grants(context: Context, owner_id: Text) -> Grants:
    """The clients that act for this owner or its agents, the latest first."""
    rows = [row for row in await _grants(context, owner_id) if row.code is None]
    return Grants(
        [
            Grant(
                row.grant_id, row.client_id, row.client_name, row.redirect_host, row.subject,
                row.scopes, row.resource, row.made_at, row.used_at,
            )
            for row in sorted(rows, key=lambda row: row.made_at, reverse=True)
        ]
    )  # fmt: skip


@tool(face="signin", title="Sign a client out", destructive=True, audited=True)
async def revoke_grant(context: Context, owner_id: Text, grant_id: Text) -> dict[str, Any] | Refusal:
    """End a consent, and all tokens that came of it, at once."""
    missing = refuse("not_found", "there is no such grant")
    if await context.services.store.get("grant", grant_id) is None:
        return missing
    answer = await context.services.house.ask("grant", grant_id, End(owner_id=owner_id, once=context.once))
    return answer if isinstance(answer, Refusal) else {}


def _grant(
    context: Context, ask: Ask, owner_id: str, subject: str, scopes: tuple[str, ...], secret: str
) -> GrantRow:
    now = context.services.clock.now_ms()
    code = Code(digest(secret), ask.challenge, ask.redirect_uri, ask.named, now + CODE_MS)
    return GrantRow(
        grant_id=context.services.new_id("gr_"),
        client_id=ask.client_id,
        client_name=ask.client_name,
        redirect_host=host_of(ask.redirect_uri),
        owner_id=owner_id,
        subject=subject,
        scopes=scopes,
        resource=ask.resource,
        made_at=now,
        used_at=now,
        code=code,
    )


async def _make(context: Context, row: GrantRow) -> Refusal | None:
    """Write a consent, in place of the owner's stalest where there are too many."""
    house = context.services.house
    refused: Refusal | None = None
    if row.client_id.startswith("cl_"):
        refused = await house.ask("clients", "all", Use(row.client_id))
    if refused is None:
        refused = await house.ask("grant", row.grant_id, Make(row, context.once))
    if refused is None:
        rows = await _grants(context, row.owner_id)
        for stale in sorted(rows, key=lambda each: each.used_at)[: len(rows) - GRANTS]:
            await house.ask("grant", stale.grant_id, End(owner_id=row.owner_id))
    return refused


async def _grants(context: Context, owner_id: str) -> list[GrantRow]:
    now, page = context.services.clock.now_ms(), 2 * GRANTS
    found = await context.services.store.find("grant", "owner", owner_id, limit=page)
    rows = [stored(GrantRow, each.doc, "grant", each.id) for each in found]
    return [row for row in rows if row.over_at > now]


def _back(uri: str, issuer: str, state: str | None, **members: str) -> str:
    """The redirect with an answer in its query (RFC 6749 4.1.2; RFC 9207)."""
    given = {**members, **({"state": state} if state is not None else {}), "iss": issuer}
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode(given)}"


def _no_ask() -> Refusal:
    return refuse("not_found", "this sign-in is over; start again in your application")
