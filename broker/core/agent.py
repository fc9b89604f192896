"""One agent: who it is, whose, and what it may do (network.md, Identity).

1. An agent is a row; its keys are rows of their own, so that a key belongs to one agent at most.
2. What it may do follows from its tier alone: `allowance`.
3. Nothing here knows of tokens: what makes one void (`tokens_after`, a key gone, suspended) is told to Standing.
4. Each change is a function from a row to the next one, or to why not.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from broker.core.claim import ClaimCode
from broker.wire.refusals import Refusal, refuse

Tier = Literal["standard", "unclaimed", "claimed"]
Policy = Literal["agent-decides", "owner-decides", "auto-accept", "deny"]
MAX_KEYS: Final = 10
DAY_MS: Final = 86_400_000
UNCLAIMED_MS: Final = 7 * DAY_MS
"""An agent that registered itself lives so long without an owner."""
MAX_DESCRIPTION: Final = 300
MAX_CAPABILITIES: Final = 10
CAPABILITY: Final = "[a-z0-9][a-z0-9-]{0,31}"
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
"""What a description never has: control characters but tab and line feed."""


class Key(msgspec.Struct, frozen=True):
    """A live key of an agent: its thumbprint (RFC 7638) and its public key, hex."""

    kid: str
    pk: str
    added_at: int


class Suspension(msgspec.Struct, frozen=True):
    """Since when an agent is suspended (wall ms), and why, in the operator's words."""

    at: int
    reason: str


class AgentRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent as stored (kind "agent", id = agent_id). Times are wall milliseconds but `tokens_after`."""

    agent_id: str
    name: str
    tier: Tier
    created_at: int
    description: str = ""
    capabilities: tuple[str, ...] = ()
    owner_id: str | None = None
    policy: Policy = "agent-decides"
    public: bool = False
    """Shown in the directory to anybody."""
    keys: tuple[Key, ...] = ()
    secret_hash: str | None = None
    """sha256, hex, of the credential that an operator made for it: 32 random bytes, so that no salt is needed."""
    tokens_after: int = 0
    """Unix seconds: tokens made before are over."""
    suspended: Suspension | None = None
    expires_at: int | None = None
    claim: ClaimCode | None = None
    test: bool = False


class Sending(msgspec.Struct, frozen=True):
    """When an agent whose tier limits them sent the direct messages of the last day (kind "sending", id = agent_id),
    wall milliseconds. Written in each message's own commit: what was not sent is not counted."""

    at: tuple[int, ...] = ()


class Allowance(msgspec.Struct, frozen=True):
    """What a tier may have; None: no limit of its own."""

    agreements: int | None
    messages_a_day: int | None
    own_channels: int | None
    webhook: bool
    publishes: bool
    """Whether it may publish resources."""


ALLOWANCES: Final[dict[Tier, Allowance]] = {
    "standard": Allowance(None, None, None, True, True),
    "claimed": Allowance(None, None, None, True, True),
    "unclaimed": Allowance(1, 20, 0, False, False),
}
"""network.md, Identity: tiers."""


def allowance(row: AgentRow) -> Allowance:
    """What this agent may have."""
    return ALLOWANCES[row.tier]


def is_over(row: AgentRow, now_ms: int) -> bool:
    """Whether an unclaimed agent's time has passed: it is gone then, swept or not."""
    return row.expires_at is not None and row.expires_at <= now_ms


def judge_description(text: str) -> Refusal | None:
    """Why a description is not taken."""
    if len(text) > MAX_DESCRIPTION or _CONTROL.search(text):
        said = f"a description has at most {MAX_DESCRIPTION} characters, and no control characters"
        return refuse("bad_request", said, path="description")
    return None


def capabilities_of(tags: Sequence[str]) -> tuple[str, ...] | Refusal:
    """Capabilities as kept: each once, in the order given."""
    kept = tuple(dict.fromkeys(tags))
    if len(kept) > MAX_CAPABILITIES or not all(re.fullmatch(CAPABILITY, each) for each in kept):
        said = (
            f"at most {MAX_CAPABILITIES} tags of small letters, digits and lines, at most 32 characters each"
        )
        return refuse("bad_request", said, path="capabilities")
    return kept


def owned(row: AgentRow, owner_id: str, now_s: int) -> AgentRow:
    """The same agent, an owner's from now on. Whoever acted for it as another owner's does no more."""
    moved = row.owner_id not in (None, owner_id)
    return replace(
        row,
        owner_id=owner_id,
        tier="claimed",
        claim=None,
        expires_at=None,
        tokens_after=max(row.tokens_after, now_s + 1) if moved else row.tokens_after,
    )


def with_key(row: AgentRow, key: Key) -> AgentRow | Refusal:
    """With a key more."""
    if len(row.keys) >= MAX_KEYS:
        said = f"an agent has at most {MAX_KEYS} keys; revoke one first"
        return refuse("quota_exceeded", said, reason="keys", limit=MAX_KEYS)
    return replace(row, keys=(*row.keys, key))


def without_key(row: AgentRow, kid: str, by_itself: bool) -> AgentRow | Refusal:
    """With a key less. Without a credential the agent itself keeps its last one: it could never sign in again."""
    left = tuple(key for key in row.keys if key.kid != kid)
    if len(left) == len(row.keys):
        return refuse("not_found", "this agent has no such key", path="kid")
    if by_itself and not left and row.secret_hash is None:
        return refuse(
            "bad_request",
            "this is the agent's last key, and without it nobody could sign in as the agent; have the operators add "
            "another key first (by a bind_key statement of that key), then revoke this one",
            path="kid",
        )
    return replace(row, keys=left)


def count_message(row: AgentRow, sending: Sending, now_ms: int) -> Sending | Refusal:
    """With a direct message more in its day, a window of 24 hours."""
    most = allowance(row).messages_a_day
    recent = tuple(at for at in sending.at if now_ms - at < DAY_MS)
    if most is None or len(recent) < most:
        return Sending((*recent, now_ms))
    return refuse(
        "quota_exceeded",
        f"an unclaimed agent sends {most} direct messages a day; an owner's claim lifts this",
        reason="messages_a_day",
        limit=most,
    )
