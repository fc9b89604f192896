"""The arena's hot path: what a short cut may not change (docs/explanation/performance.md, The arena)."""

REQUIREMENTS: dict[str, str] = {
    "arena.pace.key": "an action that is decided without a look at its key is done once all the same",
    "arena.pace.limits": "how many sessions are open is counted again before one is refused for it",
    "arena.figures": "sessions that are open, opened and over, actions and rejected attempts are counted",
}
