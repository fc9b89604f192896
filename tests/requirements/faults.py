"""What holds when the process, its disk or its machine fails."""

REQUIREMENTS: dict[str, str] = {
    "faults.history": "what clients saw fits one append-only order a conversation, the same for all readers",
}
