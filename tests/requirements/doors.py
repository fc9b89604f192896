"""Tokens at the doors (docs/reference/network.md, Sign-in; docs/decisions/0025-tokens-at-the-doors.md)."""

REQUIREMENTS: dict[str, str] = {
    "doors.agent-stream": "by an agent's token one reads the agent's stream and its keys' desks, and nobody else's",
    "doors.listen-scope": "listening by a token needs the scope message",
    "doors.expiry": "what is open by a token ends when it runs out, and says unauthenticated",
    "doors.right-lost": "what waits or is open ends within a second when its caller loses the right to speak",
}
"""What tokens are worth at each door."""
