"""What tokens are given for (network.md, Sign-in): verbs for the token, revocation and introspection endpoints.

1. Who shows a wrong secret is counted, and stopped for a while after many (the guessing limit of wire.md).
2. A subject that may not speak gets no token; what it was granted stays, and serves again once it may.
3. An unknown client or agent is refused in the same words as one that proves nothing.
"""

import hmac
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from broker.actors.grant import Assert, End, Redeem, Refresh, Use, read_grant
from broker.core.agent import AgentRow
from broker.core.client import proves
from broker.core.grant import Fresh, GrantRow, Shown, knows, read_code, read_refresh
from broker.core.secret import digest
from broker.tools import agents
from broker.tools.clients import client_of
from broker.tools.context import Caller, Context
from broker.tools.registry import tool
from broker.wire.ids import AGENT
from broker.wire.refusals import Refusal, refuse_oauth

Text = Annotated[str, Meta(max_length=2048)]
"""What a client sent as one parameter."""


class Granted(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an access token may say, and the refresh token that goes with it."""

    subject: str
    scopes: tuple[str, ...] = ()
    resource: str | None = None
    owner: str | None = None
    grant: str | None = None
    kid: str | None = None
    after: int = 0
    """Unix seconds: tokens of this agent made before are over, so this one must not be."""
    refresh_token: str | None = None


class AgentKey(msgspec.Struct, frozen=True):
    """A live key of an agent."""

    kid: str
    pk: str


class AgentKeys(msgspec.Struct, frozen=True):
    """All of them; none where there is no such agent."""

    keys: list[AgentKey]


@tool(face="signin", title="Redeem a code")
async def redeem_code(
    context: Context,
    client_id: Text,
    code: Text,
    client_secret: Text | None = None,
    redirect_uri: Text | None = None,
    verifier: Text | None = None,
    resource: Text | None = None,
) -> Granted | Refusal:
    """What a code was made for. A refusal's `error` is OAuth's code (invalid_client, invalid_grant, invalid_target)."""
    refused = await _prove_client(context, client_id, client_secret)
    if refused is not None:
        return refused
    read = read_code(code)
    row = await read_grant(context.services.store, read[0]) if read is not None else None
    if read is None or row is None:
        return _guess(context, refuse_oauth("invalid_grant", "the code is not good here, or not any more"))
    agent = await _speaks_for(context, row)
    if isinstance(agent, Refusal):
        return agent
    shown = Shown(
        client_id=client_id, digest=read[1], redirect_uri=redirect_uri, verifier=verifier, resource=resource
    )
    family, token = context.services.new_secret(16), context.services.new_secret()
    command = Redeem(shown, Fresh(digest(family), digest(token)))
    return _granted(context, await _ask(context, row.grant_id, command), agent, family, token)


@tool(face="signin", title="Refresh")
async def refresh_grant(
    context: Context,
    client_id: Text,
    refresh_token: Text,
    client_secret: Text | None = None,
    scopes: list[Text] | None = None,
    resource: Text | None = None,
) -> Granted | Refusal:
    """What a refresh token stands for, and the one that takes its place."""
    refused = await _prove_client(context, client_id, client_secret)
    if refused is not None:
        return refused
    read = read_refresh(refresh_token)
    row = await read_grant(context.services.store, read[0]) if read is not None else None
    if read is None or row is None:
        return _guess(
            context, refuse_oauth("invalid_grant", "the refresh token is not good here, or not any more")
        )
    agent = await _speaks_for(context, row)
    if isinstance(agent, Refusal):
        return agent
    asked = tuple(scopes) if scopes else None
    shown = Shown(client_id=client_id, family=read[1], digest=read[2], scopes=asked, resource=resource)
    token = context.services.new_secret()
    family = refresh_token.split(".")[1]
    redone = await _ask(context, row.grant_id, Refresh(shown, digest(token)))
    if isinstance(redone, GrantRow) and client_id.startswith("cl_"):
        # What lives by being used keeps its client; a store that takes nothing now is asked with the next one.
        await context.services.house.ask("clients", "all", Use(client_id))
    answer = _granted(context, redone, agent, family, token)
    if asked is None or isinstance(answer, Refusal):
        return answer
    return msgspec.structs.replace(answer, scopes=tuple(each for each in answer.scopes if each in asked))


@tool(face="signin", title="The keys of an agent", read_only=True)
async def agent_keys(context: Context, agent_id: Text) -> AgentKeys | Refusal:
    """With which keys an agent may sign a client assertion. rate_limited while the address is stopped."""
    stopped = _stopped(context)
    if stopped is not None:
        return stopped
    row = await agents.find(context.services, agent_id) if AGENT.fullmatch(agent_id) else None
    return AgentKeys([AgentKey(key.kid, key.pk) for key in row.keys] if row is not None else [])


@tool(face="signin", title="Take an assertion")
async def take_assertion(
    context: Context, agent_id: Text, kid: Text, jti: Text, until: int
) -> Granted | Refusal:
    """An agent's assertion was good, and serves now; `until`: Unix seconds at which it is over."""
    row = await agents.find(context.services, agent_id)
    refused = await _bad_agent(context, row, kid)
    if refused is not None or row is None:
        return refused or _unproven()
    answer = await context.services.house.ask("assertion", agent_id, Assert(jti, until * 1000))
    if isinstance(answer, Refusal):
        return answer
    return Granted(agent_id, owner=row.owner_id, kid=kid, after=row.tokens_after)


@tool(face="signin", title="Take an agent's credential")
async def take_credential(context: Context, agent_id: Text, secret: Text) -> Granted | Refusal:
    """An agent shows the credential that an operator made for it."""
    stopped = _stopped(context)
    if stopped is not None:
        return stopped
    row = await agents.find(context.services, agent_id) if AGENT.fullmatch(agent_id) else None
    kept = row.secret_hash if row is not None else None
    if not hmac.compare_digest(kept or "", digest(secret)):
        return _guess(context, _unproven())
    refused = await _bad_agent(context, row, None)
    if refused is not None or row is None:
        return refused or _unproven()
    return Granted(agent_id, owner=row.owner_id, after=row.tokens_after)


@tool(face="signin", title="A proof that failed")
async def failed_proof(context: Context, kind: Text) -> None:
    """Count what the door found wrong by itself: a bad signature (a guess), or a token that is not good."""
    context.services.sign_in.refused(context.caller.address, kind)
    if kind == "invalid_client" and not context.caller.exempt:
        context.services.guard.bad_signature(context.caller.address)


@tool(face="signin", title="A wrong token of the operators")
async def failed_operator(context: Context) -> dict[str, Any] | Refusal:
    """Count it. rate_limited: there were too many from this address in a minute, this machine not excepted."""
    context.services.sign_in.refused(context.caller.address, "operator_token")
    return context.services.attempts.operator(context.caller.address) or {}


@tool(face="signin", title="Whether a client is who it says", read_only=True)
async def prove_client(
    context: Context, client_id: Text, client_secret: Text | None = None
) -> dict[str, Any] | Refusal:
    """Nothing, or invalid_client."""
    return await _prove_client(context, client_id, client_secret) or {}


@tool(face="signin", title="Give tokens back", destructive=True, audited=True)
async def end_grant(
    context: Context, client_id: Text, grant_id: Text | None = None, refresh_token: Text | None = None
) -> dict[str, Any] | Refusal:
    """A client that has proved itself ends a consent that it was given; what is not its own is passed over."""
    read = read_refresh(refresh_token) if refresh_token is not None else None
    name = read[0] if read is not None else grant_id
    row = await read_grant(context.services.store, name) if name is not None else None
    if row is None or row.client_id != client_id or (read is not None and not knows(row, read[1])):
        return _nothing(context)
    if context.once is not None and context.once.note is not None:
        context.once.note.tell(by=client_id, about=row.grant_id)
    answer = await context.services.house.ask(
        "grant", row.grant_id, End(client_id=client_id, once=context.once)
    )
    if isinstance(answer, Refusal):
        return answer if answer.code != "not_found" else _nothing(context)
    return {}


def _nothing(context: Context) -> dict[str, Any]:
    """The answer where nothing was changed: there is nothing to note."""
    if context.once is not None:
        context.once.nothing_to_tell()
    return {}


async def _prove_client(context: Context, client_id: str, secret: str | None) -> Refusal | None:
    """Whether the client is who it says, as far as it can prove that; a public client can't."""
    stopped = _stopped(context)
    if stopped is not None:
        return stopped
    if client_id.startswith("https://"):
        return None if secret is None else _guess(context, _unproven())
    client = await client_of(context, client_id)
    if isinstance(client, Refusal) or not proves(client, secret):
        return _guess(context, _unproven())
    return None


async def _speaks_for(context: Context, row: GrantRow) -> AgentRow | Refusal | None:
    """The agent that a consent is for (None: the owner itself), or why nobody speaks for it now: it is gone,
    suspended, or no more this owner's."""
    acting = row.subject if AGENT.fullmatch(row.subject) else None
    agent = await agents.find(context.services, acting, row.owner_id) if acting is not None else None
    caller = Caller(principal=row.subject, agent=acting, owner=row.owner_id)
    refused = await context.services.standing.judge(caller)
    if refused is not None or (acting is not None and agent is None):
        return refuse_oauth("invalid_grant", "nobody may act for this agent or owner now")
    return agent


async def _bad_agent(context: Context, row: AgentRow | None, kid: str | None) -> Refusal | None:
    if row is None:
        return _unproven()
    caller = Caller(principal=row.agent_id, agent=row.agent_id, owner=row.owner_id, kid=kid)
    refused = await context.services.standing.judge(caller)
    return _unproven() if refused is not None else None


async def _ask(context: Context, grant_id: str, command: Redeem | Refresh) -> Any:
    return await context.services.house.ask("grant", grant_id, command)


def _granted(
    context: Context, answer: Any, agent: AgentRow | None, family: str, token: str
) -> Granted | Refusal:
    if isinstance(answer, Refusal):
        return _guess(context, answer) if answer.detail.get("error") == "invalid_grant" else answer
    row: GrantRow = answer
    return Granted(
        subject=row.subject,
        scopes=row.scopes,
        resource=row.resource,
        owner=row.owner_id,
        grant=row.grant_id,
        after=agent.tokens_after if agent is not None else 0,
        refresh_token=f"{row.grant_id}.{family}.{token}",
    )


def _stopped(context: Context) -> Refusal | None:
    return context.services.guard.check(context.caller.address, context.caller.exempt)


def _guess(context: Context, refusal: Refusal) -> Refusal:
    """A wrong secret costs the address a guess."""
    caller = context.caller
    context.services.sign_in.refused(caller.address, str(refusal.detail.get("error", refusal.code)))
    if not caller.exempt:
        context.services.guard.bad_signature(caller.address)
    return refusal


def _unproven() -> Refusal:
    words = "the client is unknown, suspended or over, or has not proved that it is this one"
    return refuse_oauth("invalid_client", words)
