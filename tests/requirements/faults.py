"""What holds when the process, its disk or its machine fails."""

REQUIREMENTS: dict[str, str] = {
    "faults.history": "what clients saw fits one append-only order a conversation, the same for all readers",
    "faults.named": "what fails in the store is named in the log, once and not at each request that meets it",
    "faults.disk-error": "after a failed write or flush nothing is acknowledged, reads go on, and /readyz says so",
    "faults.disk-full": "a full disk refuses new calls, then open ones; nothing is lost, and all goes on when there is room",
    "faults.read-only": "a read-only file system is one clear line at the start, and the store stays as it was",
}
