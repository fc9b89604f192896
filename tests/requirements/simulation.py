"""What the simulation shows: the rules of the wire under faults, many at once, seed by seed."""

REQUIREMENTS: dict[str, str] = {
    "call.idle-by-the-monotonic-clock": (
        "a step of the wall clock ends no call early, and keeps none open for longer than it stepped"
    ),
    "call.rung-is-known": "a ring proves its CALL: who has it can pick up, though the commit has not returned yet",
    "faults.simulated": (
        "whatever breaks: nothing acknowledged is lost, no gap, no fork, one order, the limits, true presence, "
        "contiguous cursors, nothing left at rest"
    ),
    "faults.one-seed-one-run": "a seed of the simulation is the same run each time, in any process",
    "faults.shrunk": "a seed that fails is shrunk, and the command that is printed replays it",
}
