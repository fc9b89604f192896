"""POST /oauth/token, /oauth/revoke and /oauth/introspect: who asks, and what it gets.

1. A client proves itself in one way: Basic, client_secret, client_assertion, or not at all where it has nothing to
   prove itself by.
2. Tokens are made for one resource of ours; one that was made for another is not widened.

Source: RFC 6749 2.3, 4.1.3, 4.4.2 and 6; RFC 7009 2; RFC 7662 2; RFC 8707 2.2.
"""

from typing import Any, Final

import msgspec

from broker.app import Caller
from broker.wire.ids import AGENT
from broker.wire.refusals import Refusal, refuse_oauth
from gateways.oauth import assertion, forms
from gateways.oauth.forms import Reply, refused
from gateways.oauth.server import SCOPES, AuthorizationServer, Target

_REFRESH: Final = "gr_"
"""How refresh tokens begin."""


class Client(msgspec.Struct, frozen=True):
    """Who asks, as far as it says: its id with a secret or none, or what its assertion has already proved."""

    id: str
    secret: str | None = None
    granted: Any = None

    @property
    def is_agent(self) -> bool:
        """Whether it is an agent itself."""
        return AGENT.fullmatch(self.id) is not None


async def token(
    server: AuthorizationServer, caller: Caller, form: dict[str, str], authorization: str | None
) -> Reply:
    """Tokens for a code, a refresh token, or an agent's own proof."""
    kind = form.get("grant_type")
    if kind is None:
        return refused(refuse_oauth("invalid_request", "grant_type is missing"))
    if kind not in ("authorization_code", "refresh_token", "client_credentials"):
        return refused(refuse_oauth("unsupported_grant_type", "this grant_type is not known here"))
    client = await identify(server, caller, form, authorization)
    if isinstance(client, Refusal):
        return refused(client)
    if kind == "client_credentials":
        return await _for_agent(server, caller, client, form)
    if client.is_agent:
        return refused(refuse_oauth("unauthorized_client", "an agent gets its tokens by client_credentials"))
    granted = await _granted(server, caller, client, form, kind)
    if isinstance(granted, Refusal):
        return refused(granted)
    return server.give(granted, client.id, Target(granted.resource, granted.scopes), granted.scopes)


async def _granted(
    server: AuthorizationServer, caller: Caller, client: Client, form: dict[str, str], kind: str
) -> Any:
    """What the broker grants for a code or a refresh token."""
    shown: dict[str, Any] = {
        "client_id": client.id,
        "client_secret": client.secret,
        "resource": form.get("resource"),
    }
    name = "code" if kind == "authorization_code" else "refresh_token"
    if name not in form:
        return refuse_oauth("invalid_request", f"{name} is missing")
    if kind == "authorization_code":
        shown.update(
            redirect_uri=form.get("redirect_uri"), verifier=form.get("code_verifier"), code=form[name]
        )
        return await server.ask(caller, "redeem_code", **shown)
    shown.update(scopes=forms.scopes_in(form), refresh_token=form[name])
    return await server.ask(caller, "refresh_grant", **shown)


async def _for_agent(
    server: AuthorizationServer, caller: Caller, client: Client, form: dict[str, str]
) -> Reply:
    """An agent's own token: no consent is needed, and no refresh token given (RFC 6749 4.4.3)."""
    if not client.is_agent:
        return refused(refuse_oauth("unauthorized_client", "client_credentials are for agents"))
    target = server.target(form.get("resource"))
    if target is None:
        return refused(refuse_oauth("invalid_target", "resource is none of this server's"))
    asked = forms.scopes_in(form)
    scopes = [scope for scope in SCOPES if scope in (target.scopes if asked is None else asked)]
    if not scopes:
        return refused(refuse_oauth("invalid_scope", "none of these scopes is known here"))
    granted = client.granted or await server.ask(
        caller, "take_credential", agent_id=client.id, secret=client.secret or ""
    )
    if isinstance(granted, Refusal):
        return refused(granted)
    return server.give(granted, client.id, target, scopes)


async def identify(
    server: AuthorizationServer, caller: Caller, form: dict[str, str], authorization: str | None
) -> Client | Refusal:
    """The client that asks; what a secret proves is looked at by the broker, with what it is shown for."""
    given = [name for name in ("client_assertion", "client_secret") if name in form]
    if len(given) + (authorization is not None) > 1:
        return refuse_oauth("invalid_request", "a client proves itself in one way")
    if authorization is not None:
        pair = forms.read_basic(authorization) if authorization.lower().startswith("basic ") else None
        if pair is None or form.get("client_id", pair[0]) != pair[0]:
            return refuse_oauth("invalid_client", "the Authorization header is not this client's")
        return Client(*pair)
    if "client_assertion" in form:
        if form.get("client_assertion_type") != assertion.TYPE:
            return refuse_oauth("invalid_client", "client_assertion_type is not jwt-bearer")
        granted = await assertion.take_assertion(server, caller, form["client_assertion"])
        if isinstance(granted, Refusal):
            return granted
        if form.get("client_id", granted.subject) != granted.subject:
            return refuse_oauth("invalid_client", "client_id is not the one that signed the assertion")
        return Client(granted.subject, None, granted)
    if "client_id" not in form:
        return refuse_oauth("invalid_client", "client_id is missing")
    return Client(form["client_id"], form.get("client_secret"))


async def revoke(
    server: AuthorizationServer, caller: Caller, form: dict[str, str], authorization: str | None
) -> Reply:
    """End the grant that a refresh or access token came of. What is not this client's is passed over (RFC 7009 2.2)."""
    client = await _proved(server, caller, form, authorization)
    if isinstance(client, Refusal):
        return refused(client)
    text = form.get("token")
    if text is None:
        return refused(refuse_oauth("invalid_request", "token is missing"))
    shown: dict[str, str | None] = {"refresh_token": text}
    if not text.startswith(_REFRESH):
        read = server.read(text)
        if read is None:
            return Reply(200, {})
        if read.grant is None:
            return refused(
                refuse_oauth("unsupported_token_type", "an agent's own token ends with its key or credential")
            )
        shown = {"grant_id": read.grant}
    answer = await server.ask(caller, "end_grant", client_id=client.id, **shown)
    return refused(answer) if isinstance(answer, Refusal) else Reply(200, {})


async def introspect(
    server: AuthorizationServer, caller: Caller, form: dict[str, str], authorization: str | None
) -> Reply:
    """What an access token of ours says, while it is good; for agents and clients that have proved themselves."""
    client = await _proved(server, caller, form, authorization)
    if isinstance(client, Refusal):
        return refused(client)
    if client.secret is None and client.granted is None:
        return refused(refuse_oauth("invalid_client", "a client without a secret may not ask"))
    if "token" not in form:
        return refused(refuse_oauth("invalid_request", "token is missing"))
    read = server.read(form["token"])
    if read is None or await server.judge(read.caller(caller)) is not None:
        return Reply(200, {"active": False})
    return Reply(200, {"active": True, "token_type": "Bearer", **msgspec.to_builtins(read)})


async def _proved(
    server: AuthorizationServer, caller: Caller, form: dict[str, str], authorization: str | None
) -> Client | Refusal:
    client = await identify(server, caller, form, authorization)
    if isinstance(client, Refusal) or client.granted is not None:
        return client
    if client.is_agent:
        answer = await server.ask(caller, "take_credential", agent_id=client.id, secret=client.secret or "")
    else:
        answer = await server.ask(caller, "prove_client", client_id=client.id, client_secret=client.secret)
    return answer if isinstance(answer, Refusal) else client
