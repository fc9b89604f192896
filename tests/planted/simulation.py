"""What the simulation found, and what it must find: faults that show only under faults, or many at once."""

TIMERS = "broker/actors/timers.py"

MUTANTS = (
    (
        "call.idle-by-the-monotonic-clock",
        TIMERS,
        "Due(left_ms / 1000, before)",
        "Due(left_ms / 1000)",
    ),
    (
        "call.idle-by-the-monotonic-clock",
        TIMERS,
        "Due(left_ms / 1000, before)",
        'Due(float("-inf"), before)',
    ),
    (
        "call.idle-by-the-monotonic-clock",
        TIMERS,
        "moved = left_ms <= limit if ahead > before else row.order",
        "moved = row.order",
    ),
    (
        "call.idle-by-the-monotonic-clock",
        TIMERS,
        "moved = left_ms <= limit if ahead > before else",
        "moved = ahead > before or",
    ),
    (
        "call.idle-by-the-monotonic-clock",
        TIMERS,
        "if moved and row.id not in self._told:",
        "if moved:",
    ),
    (
        "call.rung-is-known",
        "broker/tools/lookup.py",
        "        if actor.state is None:\n            # Who was told",
        "        if False:\n            # Who was told",
    ),
)
