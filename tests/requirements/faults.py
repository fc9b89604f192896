"""What holds when the process, its disk or its machine fails."""

REQUIREMENTS: dict[str, str] = {
    "faults.history": "what clients saw fits one append-only order a conversation, the same for all readers",
    "faults.named": "what fails in the store is named in the log, once and not at each request that meets it",
    "faults.disk-error": "after a failed write or flush nothing is acknowledged, reads go on, and /readyz says so",
    "faults.disk-full": "on a full disk new calls are refused, then open ones; nothing is lost; with room all goes on",
    "faults.read-only": "a read-only file system is one clear line at the start, and the store stays as it was",
    "faults.drain": "at SIGTERM under load what was written is acknowledged, and each stream ends with its events",
    "faults.stopped": "a process that stood still goes on: nobody is cut, and nothing is lost",
    "faults.clock": "a wall clock that jumps ends no call, fires no timer early and lets no limit slip",
    "faults.descriptors": "without free file descriptors nothing spins or breaks; with some it takes connections",
    "faults.damage": "a damaged store is found at the start or where it is read, named, and the rest is served",
}
