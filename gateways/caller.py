"""Who asks: from the ASGI scope (client address, headers) to a Caller.

1. The address is the peer's own, unless the peer is a proxy that the settings name; then X-Forwarded-For
   counts, read from the right, up to the first hop that is no such proxy. What a client writes never counts,
   and a header that can't be read makes nobody loopback: whoever it hides is counted.
2. A signed follow statement is judged by the broker (`admit`), never here.
3. A token comes in the Authorization header alone (RFC 6750 2.1): `?access_token=` is nothing to us.
4. Neither header nor query is ever logged: they carry capabilities.
"""

import ipaddress
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol
from urllib.parse import parse_qsl

from broker.app import Caller
from broker.wire import base64url
from broker.wire.refusals import Refusal, refuse
from gateways.listen import Address, Network, Scope, is_proxy, peer_of, read_hop, values_of

__all__ = [
    "Admitting",
    "Network",
    "Scope",
    "connect",
    "identify",
    "is_local",
    "read_hop",
    "read_proof",
    "read_proxies",
    "write_proof",
]

log = logging.getLogger(__name__)
_FORWARDING: Final = frozenset({b"x-forwarded-for", b"forwarded"})
_told: Final[set[Address]] = set()
"""Peers on loopback that were named in the log as proxies that nobody has named."""
_TOLD: Final = 16
"""At most so many."""
_PROOF: Final = re.compile(r"([A-Za-z0-9_-]+)={0,2}\.([!-~]+)")


class Admitting(Protocol):
    """The broker's verb that turns a statement into a Caller."""

    async def admit(
        self, caller: Caller, statement: bytes, sig: str, *, challenge: str | None = None
    ) -> Caller | Refusal: ...


Bearing = Callable[[Caller, str], Awaitable[Caller | Refusal]]
"""Judges the token that a caller shows, and gives the caller that it makes."""


def read_proxies(texts: Sequence[str]) -> tuple[Network, ...]:
    """The proxies of the setting `behind_proxy`: addresses or networks; else ValueError."""
    return tuple(ipaddress.ip_network(text) for text in texts)


def connect(scope: Scope, proxies: Sequence[Network] = ()) -> Caller:
    """The caller as far as the connection tells: address and loopback, no identity."""
    peer = peer_of(scope)
    if peer is None:
        return Caller(address="unknown", loopback=False)
    known = is_proxy(peer, proxies)
    address = _origin(scope, peer, proxies) if known else peer
    if peer.is_loopback and not known and peer not in _told:
        _look_for_proxy(scope, peer)
    if address is None:
        # Not an address, so that no one who counts by address takes it for the loopback that the proxy may be.
        return Caller(address=f"behind {peer}", loopback=False)
    return Caller(address=str(address), loopback=peer.is_loopback and address.is_loopback)


def is_local(scope: Scope, proxies: Sequence[Network] = ()) -> bool:
    """Whether this machine itself asks, and nobody through it: no proxy, named or not, stands between.

    One that says nothing of whom it forwards for is known by the Host that it passes on: a name that others use.
    """
    peer = peer_of(scope)
    if peer is None or not peer.is_loopback or is_proxy(peer, proxies):
        return False
    headers = {name.lower(): value for name, value in scope["headers"]}
    host = headers.get(b"host", b"").decode("latin-1")
    asked = read_hop(host)
    here = asked.is_loopback if asked is not None else host.partition(":")[0].lower() == "localhost"
    return here and _FORWARDING.isdisjoint(headers)


async def identify(
    broker: Admitting,
    scope: Scope,
    proxies: Sequence[Network] = (),
    *,
    query: bool = False,
    bearer: Bearing | None = None,
) -> Caller | Refusal:
    """The caller with what it proves: `Authorization: Turret <base64url of the statement>.<sig>`.

    With `query` (EventSource can't send headers) `?auth=` carries the same where the header is absent. No
    proof at all is no refusal. `bearer` judges `Authorization: Bearer <token>`; without it that is unauthenticated,
    as other schemes are. A malformed proof: bad_statement.
    """
    caller = connect(scope, proxies)
    given = values_of(scope, b"authorization")
    if len(given) > 1:
        return refuse("bad_request", "more than one Authorization header")
    if given:
        scheme, _, proof = given[0].decode("latin-1").strip().partition(" ")
        if scheme.lower() == "bearer" and bearer is not None:
            return await bearer(caller, proof.strip())
        if scheme.lower() == "bearer":
            return refuse("unauthenticated", "this door takes no tokens")
        if scheme.lower() != "turret":
            return refuse(
                "unauthenticated", "send `Authorization: Turret <statement>.<sig>`, or `Bearer <token>`"
            )
    elif query and (found := _query_auth(scope)) is not None:
        proof = found
    else:
        return caller
    read = read_proof(proof.strip())
    if read is None:
        return refuse("bad_statement", "a proof is <base64url of the statement's canonical text>.<sig>")
    return await broker.admit(caller, *read)


def read_proof(proof: str) -> tuple[bytes, str] | None:
    """The statement's text and its sig, or None where the form is wrong. Padding may be left out."""
    found = _PROOF.fullmatch(proof)
    if found is None:
        return None
    encoded, sig = found.groups()
    try:
        return base64url.decode(encoded), sig
    except ValueError:
        return None


def write_proof(statement: bytes, sig: str) -> str:
    """The proof as `Authorization: Turret …` and `?auth=` carry it."""
    return base64url.encode(statement) + "." + sig


def _origin(scope: Scope, peer: Address, proxies: Sequence[Network]) -> Address | None:
    """The right-most hop that is no proxy of ours; the peer where the header is absent, None where malformed."""
    values = values_of(scope, b"x-forwarded-for")
    address = peer
    for hop in reversed(b",".join(values).decode("latin-1").split(",") if values else []):
        found = read_hop(hop)
        if found is None:
            return None
        address = found
        if not is_proxy(address, proxies):
            break
    return address


def _look_for_proxy(scope: Scope, peer: Address) -> None:
    """Say once of a peer on this machine that it forwards for others, and that no setting names it."""
    if len(_told) < _TOLD and not _FORWARDING.isdisjoint(name.lower() for name, _ in scope["headers"]):
        _told.add(peer)
        log.warning(
            "%s forwards for others, and behind_proxy does not name it: all its clients count as this machine's own,"
            " and no limit by address holds for them; if it is your proxy, name it with --behind-proxy",
            peer,
        )


def _query_auth(scope: Scope) -> str | None:
    pairs = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    return next((value for name, value in pairs if name == "auth"), None)
