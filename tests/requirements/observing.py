"""What an operator sees of a running broker: figures, logs, traces, health, and the pages that say how."""

REQUIREMENTS: dict[str, str] = {
    "observe.names": "a figure's name has a base unit last, _total where it only grows, and a sentence",
    "observe.documented": "every figure that is shown is declared, printed in the reference, and of the kind it says",
    "observe.envelopes": "envelopes are counted as accepted, duplicate or by the refusal's code, and an "
    "acknowledgement is timed from its frame's reading to its commit",
    "observe.sign-ins": "steps of sign-ins are counted by outcome",
    "observe.connections": "open connections are counted by door, with the bytes that wait to be sent on them",
    "observe.resumes": "readers that begin are counted as recovered or not, with the reason; polls are not",
    "observe.store": "commits are timed and their units counted, checkpoints timed, the file and its log measured",
    "observe.mailboxes": "requests that a full mailbox turned away are counted",
    "observe.local-alone": "figures are for who asks from this machine itself, or who reaches a port of their own",
    "observe.health": "readiness goes at once with the stop, a full disk, a broken store; the process's life does not",
    "observe.actors-apart": "an actor runs in a context of its own, not in that of the request that started it",
    "observe.pages": "every name in the dashboard, the alert rules and the pages is one that the broker shows",
    "observe.request-ids": "every request and WebSocket has an id, ours or that of a proxy that is known; its client, "
    "its incidents and its lines of the log have it",
    "observe.logs": "the log is one line a record, JSON or text; nothing that somebody wrote leaves its place in it",
    "observe.no-secrets": "no secret that any door is shown stands in the log, also where code fails with it",
    "observe.operators": "operators' calls are counted as all are, and what the last look at the audit log found",
    "observe.hsts": "a host with a name that is reached by TLS tells browsers to come by TLS alone",
    "observe.root": "/ leads a browser to the owner's pages and tells a program where to begin",
    "observe.service": "a service manager is told that the broker is ready, stops, and that its loop turns",
    "observe.deployment": "the unit and the image name what is there, and set what the broker takes",
    "observe.traces": "where the setting asks for it a request, its call, its commit and a delivery have spans; their "
    "trace goes on that of who asked; nothing that a client sent is in them",
}
