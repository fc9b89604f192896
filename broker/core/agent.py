"""One agent: who it is, whose, and what it may do (network.md, Identity).

1. An agent is a row; its keys are rows of their own, so that a key belongs to one agent at most.
2. What it may do follows from its tier alone: `allowance`.
3. Nothing here knows of tokens: what makes one void (`tokens_after`, a key gone, suspended) is told to Standing.
"""

from typing import Final, Literal

import msgspec

Tier = Literal["standard", "unclaimed", "claimed"]
Policy = Literal["agent-decides", "owner-decides", "auto-accept", "deny"]
MAX_KEYS: Final = 10
UNCLAIMED_MS: Final = 7 * 86_400_000
"""An agent that registered itself lives so long without an owner."""


class Key(msgspec.Struct, frozen=True):
    """A live key of an agent: its thumbprint (RFC 7638) and its public key, hex."""

    kid: str
    pk: str
    added_at: int


class Suspension(msgspec.Struct, frozen=True):
    """Since when an agent is suspended (wall ms), and why, in the operator's words."""

    at: int
    reason: str


class Claim(msgspec.Struct, frozen=True):
    """A claim code that waits: sha256 of it, hex, and the minute's tries."""

    digest: str
    made_at: int
    tries: tuple[int, ...] = ()
    """Wall milliseconds of the tries of the last minute."""


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
    claim: Claim | None = None
    test: bool = False


class Allowance(msgspec.Struct, frozen=True):
    """What a tier may have; None: no limit of its own."""

    agreements: int | None
    messages_a_day: int | None
    own_channels: int | None
    webhook: bool


ALLOWANCES: Final[dict[Tier, Allowance]] = {
    "standard": Allowance(None, None, None, True),
    "claimed": Allowance(None, None, None, True),
    "unclaimed": Allowance(1, 20, 0, False),
}
"""network.md, Identity: tiers."""


def allowance(row: AgentRow) -> Allowance:
    """What this agent may have."""
    return ALLOWANCES[row.tier]


def is_over(row: AgentRow, now_ms: int) -> bool:
    """Whether an unclaimed agent's time has passed: it is gone then, swept or not."""
    return row.expires_at is not None and row.expires_at <= now_ms
