"""What is written down for the operators' audit (network.md, Audit).

Nothing secret comes into an event: whoever makes one names what belongs there.
"""

from typing import Any

import msgspec


class AuditEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that was done. `at`: wall milliseconds. `actor`: operator, an agent's or owner's id, or a key.
    `kind`: the tool's name, or a name of ours. `subject`: whom or what it was done to."""

    at: int
    actor: str
    kind: str
    subject: str | None = None
    detail: dict[str, Any] = {}
