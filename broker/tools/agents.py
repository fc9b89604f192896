"""What several tools look up of agents: who lives and may be seen, whether it is online, its desk; and proofs by a key
that it is to have.

What an agent may not be seen by others (gone, its time over, suspended) looks exactly like one that never was.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from broker.actors.agentdocs import NO_AGENT, present, read_agent
from broker.core.agent import CAPABILITY, MAX_CAPABILITIES, MAX_DESCRIPTION, AgentRow, is_over
from broker.store.port import Document
from broker.store.stored import stored
from broker.tools.context import Context, Services
from broker.tools.lookup import desk_of
from broker.tools.paging import Scanned, scan
from broker.tools.proof import prove
from broker.wire.ids import ULID
from broker.wire.jwk import Jwk, read_jwk
from broker.wire.refusals import Refusal, refuse
from broker.wire.statement import read_statement

__all__ = ["NO_AGENT", "Proof", "ask", "find", "named", "page", "presence_of", "prove_key", "seen"]

AgentParam = Annotated[
    str, Meta(pattern=rf"^ag_{ULID}$(?!\n)", description="an agent's id, `ag_` and 26 characters")
]
NameParam = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        description="1 to 64 printable characters of one script; no agent has one that looks like it",
    ),
]
DescriptionParam = Annotated[
    str,
    Meta(
        max_length=MAX_DESCRIPTION,
        description="what the agent does, at most 300 characters, for anybody to read",
    ),
]
Tag = Annotated[str, Meta(pattern=rf"^{CAPABILITY}$(?!\n)")]
CapabilitiesParam = Annotated[
    list[Tag],
    Meta(
        max_length=MAX_CAPABILITIES,
        description="what the agent can do: at most 10 tags such as research or fx-quotes",
    ),
]
CapabilityParam = Annotated[
    str, Meta(pattern=rf"^{CAPABILITY}$(?!\n)", description="only agents with this capability")
]
T = TypeVar("T")
Seen = Literal["online", "away", "offline"]

_LISTED: Final = {
    "agent_id": "list_agents",
    "from_agent_id": "list_agents",
    "to_agent_id": "list_agents",
    "owner_agent_id": "list_agents",
    "new_owner_agent_id": "list_agents",
    "owner_id": "list_owners",
    "kid": "list_agent_public_keys",
}
"""Which operators' tool shows what a param may name."""


class Desk(msgspec.Struct, frozen=True):
    """An agent's desk: its code on the wire, and whether it listens there."""

    code: str
    online: bool


class Profile(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent as others see it. What it says of itself nobody has looked at."""

    agent_id: str
    name: str
    description: str
    capabilities: list[str]
    tier: str
    presence: Seen
    created_at: int
    """Unix milliseconds."""
    desk: Desk | None = None


class Proof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A signed statement (docs/reference/wire.md) by the key that it is about."""

    statement: Annotated[
        msgspec.Raw,
        Meta(description="the statement: do, nonce, pk, ts, wire, …", extra_json_schema={"type": "object"}),
    ]
    sig: Annotated[str, Meta(description="Ed25519 signature over its canonical text, 128 lowercase hex")]


async def find(services: Services, agent_id: str, owner_id: str | None = None) -> AgentRow | None:
    """An agent that lives, suspended or not (and is this owner's, where one is named)."""
    row = await read_agent(services.store, agent_id, services.clock.now_ms())
    return None if row is None or owner_id not in (None, row.owner_id) else row


async def seen(services: Services, agent_id: str) -> AgentRow | None:
    """An agent that others may see: it lives, and is not suspended."""
    return await present(services.store, agent_id, services.clock.now_ms())


def presence_of(services: Services, row: AgentRow) -> Seen:
    """Whether an agent or a key of its listens now, or has called something lately."""
    if any(map(services.presence.online, (row.agent_id, *(key.pk for key in row.keys)))):
        return "online"
    return "away" if services.activity.is_about(row.agent_id) else "offline"


async def profile_of(services: Services, row: AgentRow) -> Profile:
    """An agent as others see it."""
    return Profile(
        agent_id=row.agent_id,
        name=row.name,
        description=row.description,
        capabilities=list(row.capabilities),
        tier=row.tier,
        presence=presence_of(services, row),
        created_at=row.created_at,
        desk=await _desk(services, row),
    )


async def page(
    services: Services,
    index: tuple[str, str],
    keep: Callable[[AgentRow], bool],
    limit: int,
    after: str | None,
) -> Scanned[AgentRow] | Refusal:
    """Agents with an index row that `keep` is true of, in its order; those whose time is over are gone."""
    now = services.clock.now_ms()

    def read(document: Document) -> AgentRow | None:
        row = stored(AgentRow, document.doc, "agent", document.id)
        return row if not is_over(row, now) and keep(row) else None

    return await scan(services.store, "agent", index, read, after, limit)


async def ask(context: Context, agent_id: str, command: Any, kind: type[T]) -> T | Refusal:
    """What an agent's actor answers: a Refusal, or the members of `kind` in their order, as they are remembered."""
    del kind
    answer: T | Refusal = await context.services.house.ask("agent", agent_id, command)
    return answer


def named(answer: T, path: str) -> T | Refusal:
    """An operators' tool's answer, where not_found says which param it is about, and what to do next."""
    if not isinstance(answer, Refusal) or answer.code != "not_found":
        return answer
    path = str(answer.detail.get("path", path))
    listed = f"; {_LISTED[path]} shows what there is" if path in _LISTED else ""
    return refuse("not_found", answer.message + listed, path=path)


async def prove_key(context: Context, jwk: Jwk, proof: Proof, path: str, do: str, **members: Any) -> Any:
    """Have a key say by a statement what is asked for it: Proven, a Refusal, or the stored answer of the identical
    statement, a dict."""
    pk = read_jwk(jwk, path)
    if isinstance(pk, Refusal):
        return pk
    read = read_statement(bytes(proof.statement), do=do)
    if isinstance(read, Refusal):
        return read
    if read.pk != pk:
        return refuse("bad_statement", f"the statement is of another key than {path}", path="pk")
    for name, value in members.items():
        if read.members[name] != value:
            return refuse("bad_statement", f"the statement says another {name}", path=name)
    return await prove(context, bytes(proof.statement), proof.sig, do)


async def _desk(services: Services, row: AgentRow) -> Desk | None:
    for key in row.keys:
        desk = await desk_of(services, key.pk)
        if desk is not None:
            return Desk(desk.code, services.presence.online(key.pk))
    return None
