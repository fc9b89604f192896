"""What the simulation found, and what it must find: faults that show only under faults, or many at once."""

MUTANTS = (
    (
        "call.rung-is-known",
        "broker/tools/lookup.py",
        "        if actor.state is None:\n            # Who was told",
        "        if False:\n            # Who was told",
    ),
)
