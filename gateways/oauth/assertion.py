"""Client assertions: an agent proves itself by a signature of one of its keys (private_key_jwt).

1. iss = sub = the agent; aud names us and nobody else; at most five minutes long; its jti serves once.
2. An agent that does not exist, a key that is not its own and a signature that is none look alike.

Source: RFC 7521 4.2, 7523 2.2 and 3; OpenID Connect Core 9; network.md, Sign-in.
"""

from typing import Any, Final

from broker.app import Caller
from broker.wire.ids import AGENT
from broker.wire.refusals import Refusal, refuse_oauth
from gateways.oauth import jose
from gateways.oauth.server import TOKEN, AuthorizationServer

TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
LONGEST_S: Final = 300
SKEW_S: Final = 30
"""How far the agent's clock may be ahead of ours."""
JTI: Final = 128


async def take_assertion(server: AuthorizationServer, caller: Caller, text: str) -> Any:
    """What the broker grants the agent that signed it, or invalid_client. It serves once."""
    token = jose.read(text)
    agent_id = token.claims.get("iss") if token is not None else None
    if token is None or not isinstance(agent_id, str) or AGENT.fullmatch(agent_id) is None:
        return await _failed(server, caller)
    known = await server.ask(caller, "agent_keys", agent_id=agent_id)
    if isinstance(known, Refusal):
        return known
    keys = [jose.public_key(key.pk) for key in known.keys]
    key = jose.verified(token, keys, jose.ED25519)
    if key is None or not is_good(token.claims, agent_id, server.issuer, server.clock.now_ms() // 1000):
        return await _failed(server, caller)
    kid = next(each.kid for each, jwk in zip(known.keys, keys, strict=True) if jwk is key)
    until = int(token.claims["exp"]) + SKEW_S
    return await server.ask(
        caller, "take_assertion", agent_id=agent_id, kid=kid, jti=token.claims["jti"], until=until
    )


def is_good(claims: dict[str, Any], agent_id: str, issuer: str, now: int) -> bool:
    """Whether an assertion's claims are those of this agent, for us, now (pure). `now`: Unix seconds."""
    jti, exp, since, made = (claims.get(name) for name in ("jti", "exp", "nbf", "iat"))
    if not (isinstance(exp, int | float) and jose.is_time(exp)):
        return False
    audiences = jose.texts(claims.get("aud"))
    return bool(
        claims.get("iss") == claims.get("sub") == agent_id
        and audiences
        and audiences <= {issuer, issuer + TOKEN}
        and now < exp <= now + LONGEST_S + SKEW_S
        and (since is None or (jose.is_time(since) and since <= now + SKEW_S))
        and (made is None or (jose.is_time(made) and made <= now + SKEW_S))
        and isinstance(jti, str)
        and 0 < len(jti) <= JTI
    )


async def _failed(server: AuthorizationServer, caller: Caller) -> Refusal:
    await server.ask(caller, "failed_proof", kind="invalid_client")
    words = "the client is unknown, suspended or over, or has not proved that it is this one"
    return refuse_oauth("invalid_client", words)
