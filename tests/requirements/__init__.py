"""The sentences of the wire that tests show, by id: one module an area, each with `REQUIREMENTS`.

An id is dotted and starts with its section of docs/reference/wire.md (`order.replay-before-signature`).
A test names the ids that it shows with `@pytest.mark.requirement("id", …)`; test_house.py checks both ways:
no sentence without a test, no mark without a sentence.
"""

import importlib
import pkgutil

SECTIONS = (
    "keys",
    "desk",
    "presence",
    "envelope",
    "canonical",
    "chain",
    "call",
    "order",
    "limits",
    "retries",
    "refusals",
    "statements",
    "tools",
    "streams",
    "ws",
    "http",
    "mcp",
    "store",
    "client",
    "cli",
    "agent",
    "oauth",
    "owners",
    "pages",
    "network",
    "idempotency",
    "signin",
    "identity",
    "agreement",
    "message",
    "webhook",
    "loop",
    "moderation",
    "channel",
    "resource",
    "doors",
    "isolation",
    "faults",
    "threat",
    "operator",
    "verifypage",
    "console",
    "observe",
    "audit",
    "arena",
    "games",
    "artifact",
    "tape",
    "catalog",
    "plan",
    "trial",
)
"""What an id may start with."""


def load() -> dict[str, str]:
    """All requirements, id → behaviour. Raises ValueError for an id given twice or of an unknown section."""
    found: dict[str, str] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda each: each.name):
        area: dict[str, str] = importlib.import_module(f"{__name__}.{module.name}").REQUIREMENTS
        for name, behaviour in area.items():
            if name in found:
                raise ValueError(f"requirement {name} stands in two areas")
            if name.split(".")[0] not in SECTIONS or "." not in name:
                raise ValueError(f"requirement {name} starts with no known section")
            found[name] = behaviour
    return found
