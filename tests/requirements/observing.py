"""What an operator sees of a running broker: figures, logs, traces, health, and the pages that say how."""

REQUIREMENTS: dict[str, str] = {
    "observe.names": "a figure's name has a base unit last, _total where it only grows, and a sentence that says what it "
    "answers",
    "observe.documented": "every figure that is shown is declared, printed in the reference, and of the kind it says",
    "observe.envelopes": "envelopes are counted as accepted, duplicate or by the refusal's code, and an acknowledgement is "
    "timed from its frame's reading to its commit",
    "observe.sign-ins": "steps of sign-ins are counted by outcome",
    "observe.connections": "open connections are counted by door, with the bytes that wait to be sent on them",
    "observe.resumes": "readers that begin are counted as recovered or not, with the reason; polls are not",
    "observe.store": "commits are timed and their units counted, checkpoints timed, the file and its log measured",
    "observe.mailboxes": "requests that a full mailbox turned away are counted",
    "observe.local-alone": "figures are for who asks from this machine itself, or who reaches a port of their own",
    "observe.health": "readiness goes with the stop, a full disk and a broken store, at once; the process's life does not",
    "observe.actors-apart": "an actor runs in a context of its own, not in that of the request that started it",
    "observe.pages": "every name in the dashboard, the alert rules and the pages is one that the broker shows",
}
