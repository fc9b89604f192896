"""What the simulation found, and what it must find: faults that show only under faults, or many at once."""

TIMERS = "broker/actors/timers.py"

MUTANTS = (
    (
        "call.idle-by-the-monotonic-clock",
        TIMERS,
        "Due(left_s, before)",
        "Due(left_s)",
    ),
    (
        "call.idle-by-the-monotonic-clock",
        TIMERS,
        "left_s = (row.order - before - mono_ms) / 1000",
        'left_s = float("-inf")',
    ),
    (
        "call.idle-by-the-monotonic-clock",
        TIMERS,
        "moved = ahead > before or row.order",
        "moved = row.order",
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
