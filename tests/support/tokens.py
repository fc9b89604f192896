"""Tokens in tests of doors: a judge that knows what it was told, and the gate before it."""

from collections.abc import Collection
from typing import Any, Final, cast

import msgspec
import trio

from broker.app import Caller
from broker.wire.refusals import Refusal, refuse
from gateways.gate import Gate
from gateways.oauth.metadata import Resources

ORIGIN: Final = "http://127.0.0.1:8766"
HERE: Final = Resources(issuer="https://issuer.example", origins=(ORIGIN,))
SCOPES: Final = frozenset({"profile", "contacts", "message", "channel", "task", "resource", "arena", "trial"})


class FakeBearers:
    """Knows tokens by `give`; all others are bad. `asked`: each token that came, with the audiences."""

    def __init__(self, broker: Any = None) -> None:
        """`broker`: who says whether a token's subject may speak now, as for the real judge; None: all may."""
        self._broker = broker
        self.known: dict[str, tuple[str, dict[str, Any]]] = {}
        self.asked: list[tuple[str, frozenset[str]]] = []

    def give(
        self, token: str, caller: Caller | None = None, *, aud: str = f"{ORIGIN}/mcp", **members: Any
    ) -> str:
        """A token that makes its bearer this caller (address and key stay its own), meant for a resource."""
        said = {} if caller is None else msgspec.structs.asdict(caller)
        for own in ("address", "loopback", "pk", "code", "authenticated", "operator"):
            said.pop(own, None)
        self.known[token] = aud, {**said, **members}
        return token

    async def identify(
        self, caller: Caller, token: str, audiences: Collection[str], scopes: Collection[str] = ()
    ) -> Caller | Refusal:
        await trio.lowlevel.checkpoint()
        self.asked.append((token, frozenset(audiences)))
        aud, said = self.known.get(token, ("", {}))
        if aud not in audiences:
            return refuse("unauthenticated", "the token is not valid here, or not any more")
        found = msgspec.structs.replace(caller, **said)
        if self._broker is not None and (refused := await self._broker.judge(found)) is not None:
            return cast(Refusal, refused)
        if scopes and found.scopes.isdisjoint(scopes):
            return refuse("insufficient_scope", f"this needs a token with one of: {', '.join(scopes)}")
        return found


def agent_of(name: str = "ag_1", **members: Any) -> Caller:
    """The caller that a token of an agent makes, with all scopes; no broker need know the agent."""
    return Caller(principal=name, agent=name, **{"scopes": SCOPES, "issued": 1, **members})


def gate_of(broker: Any, bearers: FakeBearers | None = None) -> tuple[Gate, FakeBearers]:
    """A gate before a broker, and the judge behind it."""
    bearers = bearers or FakeBearers(broker)
    return Gate(bearers, HERE), bearers
